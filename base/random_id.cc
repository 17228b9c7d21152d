#include "base/random_id.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <cstdint>

#include "base/check.h"

namespace crossdock {

// Without randomness two attempts could have one name, so there is no way to go on.
std::string random_id() {
  std::array<uint8_t, 16> bytes;
  CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace crossdock
