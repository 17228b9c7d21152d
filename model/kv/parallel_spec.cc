#include "model/kv/parallel_spec.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>

// The order of axes in the text has no meaning: it says sizes, not which axis is inside which.
namespace crossdock {
namespace {

struct Axis {
  std::string_view name;
  uint64_t ParallelSpec::*size;
};
constexpr std::array kAxes = {Axis{"dp", &ParallelSpec::dp}, Axis{"pp", &ParallelSpec::pp},
                              Axis{"tp", &ParallelSpec::tp}, Axis{"cp", &ParallelSpec::cp}};
constexpr std::string_view kSeparators = "xX-_";

// Of ASCII only: what the locale says does not matter.
char lower(char letter) { return 'A' <= letter && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }
bool is_letter(char letter) { return 'a' <= lower(letter) && lower(letter) <= 'z'; }
bool is_digit(char letter) { return '0' <= letter && letter <= '9'; }

// By hand and not by a regular expression, because every refusal says at which character.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<ParallelSpec> parse() {
    if (text_.empty()) return refuse(0, "there is nothing; write for example tp4pp2");
    while (true) {
      TRY_STATUS(parse_axis());
      if (at_ == text_.size()) return spec_;
      if (kSeparators.find(text_[at_]) != kSeparators.npos) ++at_;
    }
  }

 private:
  Status refuse(size_t at, const std::string& what) const {
    return Status(Code::kInvalidArgument, fmt::format("parallel sizes '{}', character {}: {}", text_, at + 1, what));
  }

  // `named_` makes an axis that is listed twice an error instead of letting the last one win.
  Status parse_axis() {
    const size_t begin = at_;
    const Axis* axis = nullptr;
    for (const Axis& each : kAxes)
      if (begin + 2 <= text_.size() && lower(text_[begin]) == each.name[0] && lower(text_[begin + 1]) == each.name[1])
        axis = &each;
    if (axis == nullptr) return refuse(begin, not_an_axis(begin));
    at_ = begin + axis->name.size();
    if ((named_ & bit_of(*axis)) != 0) return refuse(begin, fmt::format("{} is listed twice", axis->name));
    named_ |= bit_of(*axis);
    return parse_size(*axis);
  }

  Status parse_size(const Axis& axis) {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty()) return refuse(begin, fmt::format("{} has no size", axis.name));
    if (digits.size() > 1 && digits.front() == '0')
      return refuse(begin, fmt::format("the size of {} begins with a zero", axis.name));
    uint64_t size = 0;
    // from_chars knows no locale and reports what passes 64 bits.
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || size < 1 || size > kParallelSizeMax)
      return refuse(begin, fmt::format("the size of {} is {}, not 1 to {}", axis.name, digits, kParallelSizeMax));
    spec_.*axis.size = size;
    return Status();
  }

  std::string not_an_axis(size_t begin) const {
    size_t end = begin;
    while (end < text_.size() && is_letter(text_[end])) ++end;
    if (begin == text_.size()) return "an axis is missing at the end; there are dp, pp, tp and cp";
    const std::string_view found = text_.substr(begin, end == begin ? 1 : end - begin);
    return fmt::format("'{}' is no axis; there are dp, pp, tp and cp", found);
  }

  static unsigned bit_of(const Axis& axis) { return 1u << (&axis - kAxes.data()); }

  std::string_view text_;
  size_t at_ = 0;
  unsigned named_ = 0;  // axes, as bits
  ParallelSpec spec_;
};

}  // namespace

Result<ParallelSpec> parse_parallel_spec(std::string_view text) { return Parser(text).parse(); }

}  // namespace crossdock
