// SHA-256 (FIPS 180-4), by OpenSSL's libcrypto. The identity of a document is the digest of its canonical form.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace crossdock {

class Sha256Digest {
 public:
  static constexpr size_t kBytes = 32;

  Sha256Digest() = default;  // all zero
  explicit Sha256Digest(const std::array<uint8_t, kBytes>& bytes) : bytes_(bytes) {}
  // From 64 lower-case hexadecimal digits, and nothing else.
  static std::optional<Sha256Digest> from_hex(std::string_view hex);

  std::string hex() const;
  const std::array<uint8_t, kBytes>& bytes() const { return bytes_; }

  friend auto operator<=>(const Sha256Digest&, const Sha256Digest&) = default;

 private:
  std::array<uint8_t, kBytes> bytes_ = {};
};

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  // Ends the computation; call it once.
  Sha256Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256(std::string_view text);

}  // namespace crossdock
