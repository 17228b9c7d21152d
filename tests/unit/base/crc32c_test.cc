// Expected checksums: RFC 3720 appendix B.4, which prints the four bytes in the order they are sent, lowest first; and
// e3069283, the check value of CRC-32C in the catalogue of parametrised CRC algorithms.
#include "base/crc32c.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>

namespace crossdock {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bit-reversed: the top bit is the coefficient of x^0

uint32_t crc_of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

// The product of two polynomials over the field of two, modulo Castagnoli's.
uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t coefficient = uint32_t{1} << 31; coefficient != 0; coefficient >>= 1) {
    if (a & coefficient) product ^= b;
    b = (b & 1) != 0 ? b >> 1 ^ kPolynomial : b >> 1;
  }
  return product;
}

// The checksum of `count` zero bytes without looking at one: each multiplies the register by x^8.
uint32_t crc_of_zeros(uint64_t count) {
  uint32_t power = uint32_t{1} << (31 - 8);  // x^8
  uint32_t state = 0xffffffff;
  for (; count != 0; count >>= 1) {
    if (count & 1) state = multiply(state, power);
    power = multiply(power, power);
  }
  return ~state;
}

TEST(Crc32c, GivesThePublishedChecksums) {
  std::array<uint8_t, 32> bytes = {};
  const auto crc = [&] { return crc32c(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(crc(), 0x8a9136aau);
  bytes.fill(0xff);
  EXPECT_EQ(crc(), 0x62a8ab43u);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_EQ(crc(), 0x46dd794eu);
  std::iota(bytes.rbegin(), bytes.rend(), uint8_t{0});
  EXPECT_EQ(crc(), 0x113fdb5cu);
  EXPECT_EQ(crc_of("123456789"), 0xe3069283u);
}

TEST(Crc32c, GivesThePublishedChecksumOfAReadCommand) {
  constexpr std::array<uint8_t, 48> kRead = {0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                             0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                                             0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
                                             0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(crc32c(std::as_bytes(std::span(kRead))), 0xd9963a56u);
}

TEST(Crc32c, OfNothingIsWhatCameBefore) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c({}, 0xe3069283), 0xe3069283u);
}

TEST(Crc32c, EveryCutGivesTheChecksumOfTheWhole) {
  constexpr std::string_view kText = "the checksum of a followed by b, wherever a ends and b begins";
  const std::span<const std::byte> bytes = std::as_bytes(std::span(kText));
  for (size_t cut = 0; cut <= bytes.size(); ++cut)
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), crc_of(kText)) << cut;
}

TEST(Crc32c, CoversMoreBytesThanOneCallOfTheLibraryTakes) {
  constexpr size_t kBytes = (size_t{1} << 32) + 13;  // as an int, 13
  ASSERT_EQ(crc_of_zeros(32), 0x8a9136aau);
  // The same 64 MiB of zeros again and again, so that no more memory than that is taken.
  constexpr size_t kPieceBytes = size_t{64} << 20;
  const int piece = ::memfd_create("zeros", MFD_CLOEXEC);
  ASSERT_GE(piece, 0);
  ASSERT_EQ(::ftruncate(piece, static_cast<off_t>(kPieceBytes)), 0);
  void* const zeros = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros == MAP_FAILED) GTEST_SKIP() << "no address space for " << kBytes << " bytes";
  for (size_t begin = 0; begin < kBytes; begin += kPieceBytes)
    ASSERT_NE(::mmap(static_cast<std::byte*>(zeros) + begin, std::min(kPieceBytes, kBytes - begin), PROT_READ,
                     MAP_SHARED | MAP_FIXED, piece, 0),
              MAP_FAILED);
  EXPECT_EQ(crc32c(std::span(static_cast<const std::byte*>(zeros), kBytes)), crc_of_zeros(kBytes));
  ::close(piece);
  ::munmap(zeros, kBytes);
}

}  // namespace
}  // namespace crossdock
