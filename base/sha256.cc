#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace crossdock {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

}  // namespace

std::optional<Sha256Digest> Sha256Digest::from_hex(std::string_view hex) {
  if (hex.size() != 2 * kBytes) return std::nullopt;
  std::array<uint8_t, kBytes> bytes = {};
  for (size_t i = 0; i < hex.size(); ++i) {
    const size_t digit = kHexDigits.find(hex[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    bytes[i / 2] = static_cast<uint8_t>(static_cast<size_t>(bytes[i / 2]) << 4 | digit);
  }
  return Sha256Digest(bytes);
}

std::string Sha256Digest::hex() const {
  std::string text;
  text.reserve(2 * kBytes);
  for (const uint8_t byte : bytes_) {
    text.push_back(kHexDigits[byte >> 4]);
    text.push_back(kHexDigits[byte & 15]);
  }
  return text;
}

// libcrypto fails here only when it is out of memory or has no SHA-256 at all; no caller could act on either.
struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  CHECK(context_->handle != nullptr);
  CHECK(EVP_DigestInit_ex(context_->handle, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view text) { update(std::as_bytes(std::span(text))); }

Sha256Digest Sha256::finish() {
  std::array<uint8_t, Sha256Digest::kBytes> bytes = {};
  unsigned int length = 0;
  CHECK(EVP_DigestFinal_ex(context_->handle, bytes.data(), &length) == 1);
  CHECK(length == bytes.size());
  return Sha256Digest(bytes);
}

Sha256Digest sha256(std::string_view text) {
  Sha256 state;
  state.update(text);
  return state.finish();
}

}  // namespace crossdock
