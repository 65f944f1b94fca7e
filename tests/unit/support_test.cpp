// The support library: digests are those of the standard, diagnostics name the user's
// model and never print a control byte, a failed check throws with its text.
#include "compiler/support/check.h"
#include "compiler/support/diags.h"
#include "compiler/support/digest.h"

#include <catch2/catch.hpp>

using namespace svod;

// FIPS 180-4 examples, and sizes around the 64-byte block.
TEST_CASE("sha256 gives the digests of the standard", "[support]") {
  CHECK(sha256("").hex() ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc").hex() ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex() ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a')).hex() ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 does not depend on how the bytes come in", "[support]") {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 7);
  for (size_t size : {0, 1, 55, 56, 63, 64, 65, 127, 128, 200}) {
    std::string_view whole(text.data(), size);
    for (size_t cut = 0; cut <= size; ++cut) {
      Sha256 parts;
      parts.update(whole.substr(0, cut));
      parts.update(whole.substr(cut));
      REQUIRE(parts.finish() == sha256(whole));
    }
  }
}

TEST_CASE("sha256 of a message longer than 2^32 bits", "[support][long]") {
  std::string block(size_t(1) << 20, '\0');
  Sha256 hash;
  for (int i = 0; i < 600; ++i) hash.update(block);
  CHECK(hash.finish().hex() ==
        "987523e7780392e283b404990c4e84e580bc75c451138b0c86c4f81c296eeebe");
}

TEST_CASE("the digest encoding keeps neighbours apart", "[support]") {
  DigestWriter ab_c, a_bc;
  ab_c.text("ab"), ab_c.text("c");
  a_bc.text("a"), a_bc.text("bc");
  CHECK(ab_c.finish() != a_bc.finish());

  const int64_t two[] = {1, 2};
  DigestWriter list, loose;
  list.numbers(two);
  loose.number(1), loose.number(2);
  CHECK(list.finish() != loose.finish());
}

TEST_CASE("diagnostics name the node and count the errors", "[support]") {
  Diags diags;
  CHECK(diags.exit() == Exit::Done);
  diags.warning("odd");
  CHECK_FALSE(diags.failed());
  diags.error(Exit::Unsupported, "dilations [2, 2] are not supported",
              {17, "", "head/pool", "MaxPool"});
  diags.note("its input f32[1,64,56,56] is made here", {12, "", "head/conv", "Conv"});
  CHECK(diags.exit() == Exit::Unsupported);
  CHECK(diags.text("model.onnx") ==
        "model.onnx: warning: odd\n"
        "model.onnx: node 17 'head/pool' (MaxPool): error: dilations [2, 2] are not "
        "supported\n"
        "model.onnx: node 12 'head/conv' (Conv): note: its input f32[1,64,56,56] is made "
        "here\n"
        "1 error, nothing was written\n");
  diags.error(Exit::InvalidModel, "no output");
  CHECK(diags.exit() == Exit::InvalidModel);
}

TEST_CASE("model strings reach the terminal escaped and cut", "[support]") {
  CHECK(escaped("a\x1b[31m\n\xff") == "a\\x1b[31m\\x0a\\xff");
  CHECK(escaped(std::string(100, 'x'), 10) == "xxxxxxxxxx...");
}

TEST_CASE("UTF-8 is read by its bytes, and what Unicode forbids is told apart",
          "[support]") {
  for (uint32_t character :
       {0u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text = "-";
    append_utf8(text, character);
    const Utf8Character read = decode_utf8(text, 1);
    CHECK(read.value == character);
    CHECK(read.size == text.size() - 1);
    CHECK(is_well_formed(read));
    CHECK(decode_utf8(text.substr(0, text.size() - 1) + "-", 1).size ==
          (read.size == 1 ? 1 : 0));
  }
  CHECK(decode_utf8("\x80", 0).size == 0);                     // no first byte
  CHECK(decode_utf8("\xc0\xaf", 0).size == 0);                 // always a longer form
  CHECK(decode_utf8("\xe2\x82", 0).size == 0);                 // cut
  CHECK_FALSE(is_well_formed(decode_utf8("\xe0\x81\xa1", 0))); // a longer form of 'a'
  CHECK_FALSE(is_well_formed(decode_utf8("\xed\xa0\x80", 0))); // half of a pair
  CHECK_FALSE(is_well_formed(decode_utf8("\xf4\x90\x80\x80", 0)));
}

TEST_CASE("a failed check throws with its text", "[support]") {
  int three = 3;
  CHECK_NOTHROW([&] { SVOD_CHECK(three == 3) << "never shown"; }());
  CHECK_THROWS_WITH([&] { SVOD_CHECK(three == 4) << "three is " << three; }(),
                    Catch::Contains("three == 4") && Catch::Contains("three is 3"));
}
