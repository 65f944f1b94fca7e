// What check_cpp lets through and what it refuses, with the place it names.
#include "compiler/codegen/check_cpp.h"

#include <catch2/catch.hpp>

using svod::codegen::check_cpp;

TEST_CASE("check_cpp accepts code that only computes", "[check_cpp]") {
  const char* text = GENERATE(
      "static float f(float x) { return x * 2; }\nextern \"C\" float k(float x) { return "
      "f(x); }",
      "float g(const float* p) { return __builtin_elementwise_max(p[0], p[1]); }",
      "typedef float V __attribute__((ext_vector_type(16)));\n"
      "template <class T> T twice(T x) { return x + x; }\nV h(V x) { return twice(x); }",
      "static const int table[] = {1, 2};\nconstexpr float c = 2;\n"
      "int t(int i) { return table[i & 1]; }",
      "struct P { int x; P operator+(P o) const { return {x + o.x}; } };\n"
      "P add(P a, P b) { return a + b; }",
      "template <class T> T one() { return T(1); }\n"
      "template <class T> T uninstantiated(T x) { return x + one<int>(); }",
      "void copy(char* a, const char* b) { __builtin_memcpy(a, b, 16); }",
      "typedef float V __attribute__((ext_vector_type(4)));\n"
      "float q(float x) { return __builtin_sqrtf(__builtin_fabsf(x)) + __builtin_inff(); "
      "}\n"
      "V q(V x) { return __builtin_elementwise_floor(__builtin_elementwise_sqrt(x)); }",
      "int r(int x); int r(int x) { return x; } int q() { return r(1); }",
      "#include <stdint.h>\nint32_t f() { return 0; }");
  INFO(text);
  CHECK(check_cpp(text) == std::vector<std::string>{});
}

TEST_CASE("check_cpp refuses what does more", "[check_cpp]") {
  struct Case {
    const char* text;
    const char* finding;
  };
  const Case c = GENERATE(
      Case{"int puts(const char*);\nint f() { return puts(0); }",
           "2:18: call of 'puts', which is not defined here"},
      Case{"extern \"C\" int abort_all();\nint f() { return abort_all(); }",
           "2:18: call of 'abort_all', which is not defined here"},
      Case{"int f(int (*p)(int)) { return p(1); }", "1:31: call through a pointer"},
      Case{"int state;", "1:5: variable 'state' is writable and global"},
      Case{"int f() { static int n; return ++n; }",
           "1:22: variable 'n' is writable and global"},
      Case{"thread_local int t;", "1:18: variable 't' is writable and global"},
      Case{"const char* names[] = {\"a\"};",
           "1:13: variable 'names' is writable and global"},
      Case{"void f() { asm(\"nop\"); }", "1:12: inline assembly"},
      Case{"asm(\".globl x\");", "1:1: inline assembly at file scope"},
      Case{"extern \"C\" void* memcpy(void*, const void*, unsigned long);\n"
           "void f(void* a) { memcpy(a, a, 4); }",
           "2:19: call of 'memcpy', which is not defined here"});
  INFO(c.text);
  CHECK(check_cpp(c.text) == std::vector<std::string>{c.finding});
}

TEST_CASE("check_cpp refuses builtins that are calls of the C library", "[check_cpp]") {
  const char* call =
      GENERATE("__builtin_expf(x)", "__builtin_pow(x, x)", "__builtin_elementwise_exp(x)",
               "__builtin_tanh(x)", "__builtin_malloc(4) ? x : 0", "__builtin_roundf(x)");
  const std::vector<std::string> found =
      check_cpp("float f(float x) { return " + std::string(call) + "; }");
  INFO(call);
  REQUIRE(found.size() == 1);
  const std::string name = std::string(call).substr(0, std::string(call).find('('));
  CHECK(found[0].find("call of '" + name + "', which is a function of the C library") !=
        std::string::npos);
}

TEST_CASE("check_cpp refuses text that does not compile and foreign headers",
          "[check_cpp]") {
  const std::vector<std::string> broken = check_cpp("int f() { return x; }");
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].find("undeclared identifier 'x'") != std::string::npos);
  const char* text = "#include \"own.h\"\nown f() { return 1; }";
  CHECK(check_cpp(text, {}, {{"own.h", "typedef int own;"}}).empty());
  CHECK(check_cpp(text).front() == "1:1: #include of 'own.h'");
  CHECK(check_cpp("#include </etc/passwd>").front() == "1:1: #include of '/etc/passwd'");
}
