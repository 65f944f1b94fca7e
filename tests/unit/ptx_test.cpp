// Texts of PTX become one module: what a module says once stands once, and what is local
// to a text is not another's.
#include "compiler/toolchain/ptx.h"

#include <catch2/catch.hpp>

using namespace svod::toolchain;

TEST_CASE("texts of PTX are one module") {
  const char* first = ".version 7.8\n.target sm_90\n.address_size 64\n"
                      ".shared .align 4 .b8 _ZN6kernelL4tileE[8];\n"
                      ".visible .entry k0(\n.param .u64 k0_param_0\n)\n{\n"
                      "mov.u32 %r1, _ZN6kernelL4tileE+4;\n}\n";
  const char* second = ".version 10.0\n.target sm_90a\n.address_size 64\n"
                       ".shared .align 4 .b8 _ZN6kernelL4tileE[4];\n"
                       ".visible .entry k1()\n{\n}\n";
  const std::string module = one_module({{first, "k0"}, {second, "k1"}});
  CHECK(module == ".version 10.0\n.target sm_90a\n.address_size 64\n"
                  ".shared .align 4 .b8 _ZN6kernelL4tileE_k0[8];\n"
                  ".visible .entry k0(\n.param .u64 k0_param_0\n)\n{\n"
                  "mov.u32 %r1, _ZN6kernelL4tileE_k0+4;\n}\n"
                  ".shared .align 4 .b8 _ZN6kernelL4tileE_k1[4];\n"
                  ".visible .entry k1()\n{\n}\n");
  CHECK(target_of(module) == "sm_90a");
  CHECK(target_of(first) == "sm_90");
  CHECK(target_of("") == "");
}
