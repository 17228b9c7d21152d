#include "base/status.h"

namespace crossdock {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kNotFound: return "not found";
    case Code::kResourceExhausted: return "resource exhausted";
    case Code::kIo: return "input/output error";
    case Code::kUnavailable: return "unavailable";
    case Code::kOutcomeUnknown: return "outcome unknown";
    case Code::kCancelled: return "cancelled";
    case Code::kDeadline: return "deadline passed";
    case Code::kConflict: return "conflict";
    case Code::kQuota: return "quota exceeded";
    case Code::kDataLoss: return "data loss";
  }
  check_failed("a known status code", __FILE__, __LINE__);
}

}  // namespace crossdock
