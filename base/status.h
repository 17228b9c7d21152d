// Status and Result: how a function says that its input or its world, not its code, is at fault.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace crossdock {

// A code exists only where some caller acts differently on it.
enum class Code {
  kOk,
  kInvalidArgument,    // the input breaks a rule; the same call fails again
  kNotFound,           // the named thing is not there
  kResourceExhausted,  // a stated limit would be passed; nothing happened
  kIo,                 // the operating system refused a read or a write
  kUnavailable,        // not now; the same call may succeed later, and repeating it does no harm
  kOutcomeUnknown,     // a control operation happened in full or not at all; repeat it to learn which
  kCancelled,          // ended early because its own poster asked for it
  kDeadline,           // the time that was given is over
  kConflict,           // another party decided first: aborted, published already, pinned, fenced
  kQuota,              // a tenant's quota would be passed
  kDataLoss,           // bytes are not what their checksum says; they were not handed out
};

std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) { CHECK(code != Code::kOk); }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A value or the reason why there is none. Reading the value of a failed result is a bug and ends the process.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) { CHECK(!std::get<1>(state_).ok()); }

  bool ok() const { return state_.index() == 0; }
  const T& value() const& {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T& value() & {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  // OK where there is a value.
  Status status() const { return ok() ? Status() : *std::get_if<1>(&state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace crossdock

#define CROSSDOCK_CONCAT_INNER(a, b) a##b
#define CROSSDOCK_CONCAT(a, b) CROSSDOCK_CONCAT_INNER(a, b)

// TRY(const Digest digest, compute()): declares `digest`, or returns the failed status from the enclosing function.
#define TRY(declaration, ...) TRY_NAMED(CROSSDOCK_CONCAT(try_result_, __LINE__), declaration, __VA_ARGS__)
#define TRY_NAMED(name, declaration, ...) \
  auto name = (__VA_ARGS__);              \
  if (!name.ok()) return name.status();   \
  declaration = std::move(name).value()

// TRY_STATUS(write()): returns the failed status from the enclosing function.
#define TRY_STATUS(...)                                                                      \
  do {                                                                                       \
    if (::crossdock::Status try_status = (__VA_ARGS__); !try_status.ok()) return try_status; \
  } while (false)
