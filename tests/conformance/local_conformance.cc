// The backend of this process, bare and inside decorators that do nothing.
#include "backends/store/heap_tables.h"
#include "tests/conformance/completion_queue_conformance.h"
#include "tests/conformance/local_backend.h"
#include "tests/conformance/messenger_conformance.h"
#include "tests/conformance/object_store_conformance.h"
#include "tests/conformance/runtime_conformance.h"
#include "tests/conformance/transport_conformance.h"

namespace crossdock::testing {
namespace {

std::unique_ptr<Backend> make_local(const BackendOptions& options) {
  return make_local_backend(options, {std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>()});
}

std::string name_of(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

const BackendCase kLocal = {"local", make_local};

INSTANTIATE_TEST_SUITE_P(Local, CompletionQueueConformance, ::testing::Values(kLocal, decorated(kLocal)), name_of);
INSTANTIATE_TEST_SUITE_P(Local, MessengerConformance, ::testing::Values(kLocal, decorated(kLocal)), name_of);
INSTANTIATE_TEST_SUITE_P(Local, RuntimeConformance, ::testing::Values(kLocal, decorated(kLocal)), name_of);
INSTANTIATE_TEST_SUITE_P(Local, TransportConformance, ::testing::Values(kLocal, decorated(kLocal)), name_of);
INSTANTIATE_TEST_SUITE_P(Local, HeldAccessConformance, ::testing::Values(kLocal, decorated(kLocal)), name_of);
INSTANTIATE_TEST_SUITE_P(Local, ObjectStoreConformance, ::testing::Values(kLocal, decorated(kLocal)), name_of);

}  // namespace
}  // namespace crossdock::testing
