// The ports of the simulator. All tests run in one actor of one simulation.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/conformance/completion_queue_conformance.h"
#include "tests/conformance/messenger_conformance.h"
#include "tests/conformance/object_store_conformance.h"
#include "tests/conformance/runtime_conformance.h"
#include "tests/conformance/sim_backend.h"
#include "tests/conformance/transport_conformance.h"

namespace crossdock::testing {
namespace {

std::string name_of(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

const BackendCase kSim = {"sim", make_sim_backend};

INSTANTIATE_TEST_SUITE_P(Sim, CompletionQueueConformance, ::testing::Values(kSim), name_of);
INSTANTIATE_TEST_SUITE_P(Sim, MessengerConformance, ::testing::Values(kSim), name_of);
INSTANTIATE_TEST_SUITE_P(Sim, RuntimeConformance, ::testing::Values(kSim), name_of);
INSTANTIATE_TEST_SUITE_P(Sim, TransportConformance, ::testing::Values(kSim), name_of);
INSTANTIATE_TEST_SUITE_P(Sim, ObjectStoreConformance, ::testing::Values(kSim), name_of);

}  // namespace

// Here a revoke stops copies that are on their way, and waits for none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HeldAccessConformance);

}  // namespace crossdock::testing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  GTEST_FLAG_SET(catch_exceptions, false);  // an actor that waits for ever is ended by one
  int result = 1;
  if (!crossdock::testing::run_in_simulation([&] { result = RUN_ALL_TESTS(); }))
    std::cerr << "a test waits for what never comes\n";
  return result;
}
