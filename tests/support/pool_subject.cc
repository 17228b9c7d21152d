#include "tests/support/pool_subject.h"

namespace crossdock::testing {

PoolRequest pages_of(uint64_t page_tokens) {
  PoolRequest request;
  request.operation = OperationId("op");
  request.page_tokens = page_tokens;
  return request;
}

}  // namespace crossdock::testing
