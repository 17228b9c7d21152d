// Expected digests: the examples of FIPS 180-2 appendix B and of NIST's "SHA-256 example values"; the empty message's
// is the first short-message vector of NIST's SHAVS.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>

namespace crossdock {
namespace {

constexpr std::string_view kEmptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kMillionDigest = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256("").hex(), kEmptyDigest);
  EXPECT_EQ(sha256("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                   "mnopqrstnopqrstu")
                .hex(),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')).hex(), kMillionDigest);
}

TEST(Sha256, PiecesOfAnySizeGiveTheDigestOfTheWhole) {
  const std::string piece(1000, 'a');
  for (const size_t piece_bytes : {1u, 10u, 64u, 1000u}) {
    Sha256 state;
    for (size_t done = 0; done < 1'000'000; done += piece_bytes)
      state.update(std::string_view(piece).substr(0, std::min<size_t>(piece_bytes, 1'000'000 - done)));
    EXPECT_EQ(state.finish().hex(), kMillionDigest) << piece_bytes;
  }
}

TEST(Sha256, EmptyPiecesAddNothing) {
  Sha256 state;
  state.update(std::string_view());
  state.update(std::span<const std::byte>());
  EXPECT_EQ(state.finish().hex(), kEmptyDigest);
}

TEST(Sha256, BytesAreTheTextTheySpell) {
  constexpr std::array<std::byte, 3> kAbc = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  Sha256 state;
  state.update(kAbc);
  EXPECT_EQ(state.finish(), sha256("abc"));
}

TEST(Sha256Digest, HexIsTwoLowerCaseDigitsForEachByte) {
  std::array<uint8_t, Sha256Digest::kBytes> bytes = {};
  std::iota(bytes.begin(), bytes.end(), uint8_t{0x00});
  const Sha256Digest counting(bytes);
  EXPECT_EQ(counting.hex(), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(counting.bytes(), bytes);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0xe0});
  EXPECT_EQ(Sha256Digest(bytes).hex(), "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
  EXPECT_EQ(Sha256Digest().hex(), std::string(64, '0'));
}

TEST(Sha256Digest, ReadsItsHexBack) {
  const std::optional<Sha256Digest> digest = Sha256Digest::from_hex(kEmptyDigest);
  ASSERT_TRUE(digest.has_value());
  EXPECT_EQ(*digest, sha256(""));
  EXPECT_EQ(digest->bytes()[0], 0xe3);
  EXPECT_EQ(digest->bytes()[31], 0x55);
}

TEST(Sha256Digest, AnyOtherByteAtAnyPlaceIsRefused) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t place = 0; place < kEmptyDigest.size(); ++place)
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(kEmptyDigest);
      text[place] = static_cast<char>(byte);
      const bool is_digit = kDigits.find(text[place]) != std::string_view::npos;
      EXPECT_EQ(Sha256Digest::from_hex(text).has_value(), is_digit) << place << " " << byte;
    }
}

TEST(Sha256Digest, AnyOtherLengthIsRefused) {
  for (size_t length = 0; length <= 130; ++length)
    EXPECT_EQ(Sha256Digest::from_hex(std::string(length, 'a')).has_value(), length == 64) << length;
  EXPECT_FALSE(Sha256Digest::from_hex(" " + std::string(kEmptyDigest)).has_value());
  EXPECT_FALSE(Sha256Digest::from_hex(std::string(kEmptyDigest) + "\n").has_value());
}

TEST(Sha256Digest, IsOrderedLikeItsHex) {
  const std::array<std::string, 4> ascending = {std::string(64, '0'), std::string(63, '0') + "1",
                                                "01" + std::string(62, '0'), "ff" + std::string(62, '0')};
  for (size_t i = 0; i < ascending.size(); ++i)
    for (size_t j = 0; j < ascending.size(); ++j)
      EXPECT_EQ(Sha256Digest::from_hex(ascending[i]) < Sha256Digest::from_hex(ascending[j]), i < j) << i << " " << j;
}

}  // namespace
}  // namespace crossdock
