// Every kind of element through the C++ wrapper: what goes in comes out, as Identity
// says.
#include "libtypes.hpp"

#include <cstdio>

namespace {

template <std::size_t I> struct Same {
  static_assert(svod::InputTensor<types, I>::count ==
                svod::OutputTensor<types, I>::count);
  std::array<typename svod::InputTensor<types, I>::type,
             svod::InputTensor<types, I>::count>
      in = {},
      out = {};
};

} // namespace

int main() {
  Same<0> half;
  Same<1> brain;
  Same<2> truth;
  Same<3> nibbles;
  Same<4> text;
  Same<5> complex;
  Same<6> eight;
  Same<7> scalar;
  Same<8> nothing;
  std::array<std::int64_t, 2> places = {}, extents = {};
  half.in[1] = svod::Float16{0x3c00};
  brain.in[0] = svod::BFloat16{0x3f80};
  truth.in[1] = true;
  nibbles.in[1] = svod::Packed{7};
  text.in[0] = svod::Character{'s'};
  complex.in[1] = {1, -2};
  eight.in[2] = svod::Float8{0x3c};
  scalar.in[0] = 2.5;
  svod::Model<types> model;
  const svod::Status status = model.run(
      half.in, brain.in, truth.in, nibbles.in, text.in, complex.in, eight.in, scalar.in,
      nothing.in, half.out, brain.out, truth.out, nibbles.out, text.out, complex.out,
      eight.out, scalar.out, nothing.out, places, extents);
  std::puts(model.text(status));
  const bool same = half.in == half.out && brain.in == brain.out &&
                    truth.in == truth.out && nibbles.in == nibbles.out &&
                    text.in == text.out && complex.in == complex.out &&
                    eight.in == eight.out && scalar.in == scalar.out;
  // NonZero of {false, true}: one index, of the bound of two.
  return same && status == svod::Status::Ok && extents[1] == 1 && places[0] == 1 ? 0 : 1;
}
