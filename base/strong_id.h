// Identifiers that cannot be mixed up: a participant is not a region, although both are text.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace crossdock {

// Text that names one kind of thing. Ordered by bytes, so every sorted listing is the same on every machine.
template <class Tag>
class StrongName {
 public:
  StrongName() = default;
  explicit StrongName(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }

  friend auto operator<=>(const StrongName&, const StrongName&) = default;

 private:
  std::string text_;
};

// A number that names one kind of thing.
template <class Tag>
class StrongNumber {
 public:
  constexpr StrongNumber() = default;
  constexpr explicit StrongNumber(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }

  friend constexpr auto operator<=>(const StrongNumber&, const StrongNumber&) = default;

 private:
  uint64_t value_ = 0;
};

}  // namespace crossdock

template <class Tag>
struct std::hash<crossdock::StrongName<Tag>> {
  size_t operator()(const crossdock::StrongName<Tag>& name) const { return std::hash<std::string>()(name.text()); }
};

template <class Tag>
struct std::hash<crossdock::StrongNumber<Tag>> {
  size_t operator()(crossdock::StrongNumber<Tag> number) const { return std::hash<uint64_t>()(number.value()); }
};
