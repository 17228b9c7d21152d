// CRC-32C (Castagnoli, RFC 3720 appendix B.4), by ISA-L. Guards stored bytes against damage, not against an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace crossdock {

// The checksum of `bytes`. To go on with a checksum taken earlier, pass it as `previous`:
// crc32c(b, crc32c(a)) is the checksum of a followed by b.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t previous = 0);

}  // namespace crossdock
