#include "base/status.h"

namespace crossdock {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kNotFound: return "not found";
    case Code::kResourceExhausted: return "resource exhausted";
    case Code::kIo: return "input/output error";
  }
  check_failed("a known status code", __FILE__, __LINE__);
}

}  // namespace crossdock
