// The clock, the actors and the flows of the simulation. Each simulation runs in a child process.
#include "sim/world/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/run/isolated.h"
#include "tests/support/max_min.h"

namespace crossdock::testing {
namespace {

constexpr Duration kLimit = Duration::from_s(120);

// Machines with one GPU and one NIC each, whose NICs are what limits everything.
Cluster pairs(uint32_t machine_count, double gbit_per_s, double nic_latency_us) {
  Cluster cluster;
  cluster.name = "pairs";
  cluster.machine_count = machine_count;
  MachineSpec& machine = cluster.machine;
  machine.gpu_count = 1;
  machine.hbm_gbyte_per_s = 1000;
  machine.pcie_gbyte_per_s = 1e6;
  machine.dram_gbyte_per_s = 1e6;
  machine.ssd_read_gbyte_per_s = 5;
  machine.ssd_write_gbyte_per_s = 2;
  machine.nics = {NicSpec{gbit_per_s, {0}}};
  cluster.fabric.machines_per_leaf = machine_count;
  cluster.fabric.nic_latency_us = nic_latency_us;
  return cluster;
}

// Two machines per leaf, four NICs, uplinks too small: links of every kind matter.
Cluster small_fabric(bool rail_optimized) {
  Cluster cluster;
  cluster.name = "small";
  cluster.machine_count = 4;
  MachineSpec& machine = cluster.machine;
  machine.gpu_count = 4;
  machine.hbm_gbyte_per_s = 800;
  machine.nvlink_gbyte_per_s = 300;
  machine.nvlink_latency_us = 0.5;
  machine.pcie_gbyte_per_s = 30;
  machine.pcie_latency_us = 1;
  machine.dram_gbyte_per_s = 70;
  machine.ssd_read_gbyte_per_s = 11;
  machine.ssd_write_gbyte_per_s = 6;
  machine.ssd_latency_us = 20;
  machine.nics = {NicSpec{200, {0, 1}}, NicSpec{100, {2, 3}}};
  cluster.fabric.machines_per_leaf = 2;
  cluster.fabric.rail_optimized = rail_optimized;
  cluster.fabric.oversubscription = 2.5;
  cluster.fabric.nic_latency_us = 1.5;
  cluster.fabric.leaf_latency_us = 0.75;
  return cluster;
}

Place gpu(uint32_t machine, uint32_t index = 0) { return Place{machine, PlaceKind::kGpu, index}; }

// What the world writes into `out`, one line for each thing it saw.
using World = std::function<void(SimEngine&, std::ostream& out)>;

std::string run_world(const Cluster& cluster, TimePoint origin, const World& world) {
  const Result<std::string> result = run_isolated(
      [&] {
        const ClusterLinks links(cluster);
        SimEngine engine(links, origin);
        std::ostringstream out;
        world(engine, out);
        for (const std::string& name : engine.run()) out << "stuck " << name << '\n';
        // Or a failure in the child would be lost with it.
        return ::testing::Test::HasFailure() ? "an expectation of the child failed\n" : out.str();
      },
      kLimit);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? result.value() : "";
}

std::string run_world(const Cluster& cluster, const World& world) { return run_world(cluster, TimePoint(), world); }

// Keeps the simulation going until something opens the gate.
void spawn_waiter(SimEngine& engine, Gate& gate) {
  engine.spawn("waiter", [&] { EXPECT_TRUE(engine.wait(gate, TimePoint::never())); });
}

struct PlannedFlow {
  Place from;
  Place to;
  uint64_t bytes;
  int64_t start_ns;
  double rate_max = 0;
};

// When each flow ended, in ns.
std::vector<double> simulated_ends(const Cluster& cluster, const std::vector<PlannedFlow>& plan) {
  const std::string text = run_world(cluster, [&](SimEngine& engine, std::ostream& out) {
    auto gate = std::make_shared<Gate>();
    auto left = std::make_shared<size_t>(plan.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      engine.at(TimePoint::from_ns(plan[i].start_ns), [&engine, &out, &plan, i, gate, left] {
        engine.start(plan[i].from, plan[i].to, plan[i].bytes, plan[i].rate_max,
                     [&engine, &out, &plan, i, gate, left](const FlowResult& result) {
                       out << i << ' ' << engine.now().ns() << '\n';
                       EXPECT_EQ(result.moved_bytes, plan[i].bytes);
                       if (--*left == 0) gate->open();
                     });
      });
    }
    engine.spawn("waiter", [&engine, gate] { engine.wait(*gate, TimePoint::never()); });
  });
  std::vector<double> ends(plan.size(), -1);
  std::istringstream in(text);
  size_t number = 0;
  double end = 0;
  while (in >> number >> end) ends.at(number) = end;
  return ends;
}

std::vector<double> expected_ends(const Cluster& cluster, const std::vector<PlannedFlow>& plan) {
  const ClusterLinks links(cluster);
  std::vector<double> capacities;
  for (const LinkSpec& link : links.links()) capacities.push_back(link.bytes_per_s);
  std::vector<FluidFlow> flows;
  for (const PlannedFlow& flow : plan)
    flows.push_back(FluidFlow{links.path(flow.from, flow.to), static_cast<double>(flow.bytes),
                              static_cast<double>(flow.start_ns) / 1e9, links.latency_s(flow.from, flow.to),
                              flow.rate_max});
  std::vector<double> ends = max_min_ends(capacities, flows);
  for (double& end : ends) end *= 1e9;
  return ends;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  // now() is in whole nanoseconds.
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], wanted[i] * tolerance + 1) << "flow " << i;
}

// ---- Flows

// With lazy updates SimGrid says 0.000676644 s.
TEST(SimEngine, SevenFlowsOfThreeMachinesEndWhenMaxMinFairnessSays) {
  const std::vector<PlannedFlow> plan = {{gpu(0), gpu(2), 2042522, 0},  {gpu(2), gpu(0), 5059408, 0},
                                         {gpu(1), gpu(0), 29110178, 0}, {gpu(1), gpu(2), 19854100, 0},
                                         {gpu(2), gpu(1), 30922147, 0}, {gpu(0), gpu(1), 17837368, 0},
                                         {gpu(1), gpu(2), 25753629, 0}};
  const Cluster cluster = pairs(3, 400, 2);
  const std::vector<double> ends = simulated_ends(cluster, plan);
  EXPECT_NEAR(ends[5], 717495, 1);
  expect_near(ends, expected_ends(cluster, plan), 1e-6);
}

Place random_place(Rng& rng, const Cluster& cluster) {
  const auto machine = static_cast<uint32_t>(rng.below(cluster.machine_count));
  if (rng.chance(1, 8)) return Place{machine, PlaceKind::kDram, 0};
  if (rng.chance(1, 8)) return Place{machine, PlaceKind::kSsd, 0};
  return gpu(machine, static_cast<uint32_t>(rng.below(cluster.machine.gpu_count)));
}

TEST(SimEngine, RandomFlowsEndWhenMaxMinFairnessSays) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Cluster cluster = small_fabric(rng.chance(1, 2));
    std::vector<PlannedFlow> plan;
    const uint64_t count = 2 + rng.below(14);
    for (uint64_t i = 0; i < count; ++i) {
      PlannedFlow flow{random_place(rng, cluster), random_place(rng, cluster), 1 + rng.below(40'000'000),
                       rng.chance(1, 2) ? 0 : static_cast<int64_t>(rng.below(2'000'000))};
      if (rng.chance(1, 4)) flow.rate_max = 1e9 + static_cast<double>(rng.below(20)) * 1e9;
      plan.push_back(flow);
    }
    expect_near(simulated_ends(cluster, plan), expected_ends(cluster, plan), 1e-6);
  }
}

TEST(SimEngine, OneFlowTakesItsLatencyAndItsBytesAtTheBottleneck) {
  const std::vector<double> ends = simulated_ends(pairs(2, 400, 2), {{gpu(0), gpu(1), 50'000'000, 0}});
  EXPECT_NEAR(ends[0], 4'000 + 1'000'000, 1);
}

TEST(SimEngine, FlowsThroughOneLinkShareItEqually) {
  std::vector<PlannedFlow> plan;
  for (uint32_t i = 1; i <= 8; ++i) plan.push_back({gpu(i), gpu(0), 50'000'000, 0});
  for (const double end : simulated_ends(pairs(9, 400, 2), plan)) EXPECT_NEAR(end, 8'004'000, 80'000);
}

TEST(SimEngine, AllToAllOnANonBlockingFabricTakesWhatEachNicSends) {
  std::vector<PlannedFlow> plan;
  constexpr uint32_t kCount = 16;
  for (uint32_t i = 0; i < kCount; ++i)
    for (uint32_t k = 1; k < kCount; ++k) plan.push_back({gpu(i), gpu((i + k) % kCount), 5'000'000, 0});
  for (const double end : simulated_ends(pairs(kCount, 400, 2), plan)) EXPECT_NEAR(end, 1'504'000, 15'040);
}

TEST(SimEngine, RateMaxHoldsAFlowBack) {
  const std::vector<double> ends =
      simulated_ends(pairs(3, 400, 2), {{gpu(0), gpu(1), 50'000'000, 0, 10e9}, {gpu(0), gpu(2), 40'000'000, 0}});
  EXPECT_NEAR(ends[0], 5'004'000, 1);
  EXPECT_NEAR(ends[1], 1'004'000, 1);
}

TEST(SimEngine, BytesOfAPlaceStayOnItsOwnLinks) {
  const Cluster cluster = small_fabric(false);
  const std::vector<double> ends =
      simulated_ends(cluster, {{gpu(0), gpu(0), 800'000'000, 0},
                               {Place{1, PlaceKind::kDram, 0}, Place{1, PlaceKind::kDram, 0}, 70'000'000, 0},
                               {Place{1, PlaceKind::kSsd, 0}, Place{1, PlaceKind::kSsd, 0}, 6'000'000, 0}});
  EXPECT_NEAR(ends[0], 1'000'000, 1);
  EXPECT_NEAR(ends[1], 1'000'000, 1);
  EXPECT_NEAR(ends[2], 1'040'000, 1);
}

TEST(SimEngine, AFlowWithoutBytesTakesItsLatency) {
  EXPECT_EQ(simulated_ends(pairs(2, 400, 2), {{gpu(0), gpu(1), 0, 7}})[0], 4'007);
}

const char* end_name(FlowEnd end) {
  return end == FlowEnd::kDone ? "done" : end == FlowEnd::kFailed ? "failed" : "cancelled";
}

// Starts 50 MB of 1 ms, tells how it ended and opens the gate.
FlowId start_one(SimEngine& engine, Gate& gate, std::ostream& out) {
  return engine.start(gpu(0), gpu(1), 50'000'000, 0, [&engine, &gate, &out](const FlowResult& result) {
    out << end_name(result.end) << ' ' << result.moved_bytes << " at " << engine.now().ns() << '\n';
    gate.open();
  });
}

// Two machines, one flow, and what is done to it.
std::string one_flow(const std::function<void(SimEngine&, FlowId, const ClusterLinks&)>& disturb) {
  const ClusterLinks links(pairs(2, 400, 2));
  auto gate = std::make_shared<Gate>();
  return run_world(pairs(2, 400, 2), [&](SimEngine& engine, std::ostream& out) {
    engine.spawn("one", [&] {
      const FlowId flow = start_one(engine, *gate, out);
      disturb(engine, flow, links);
      engine.wait(*gate, TimePoint::never());
      EXPECT_EQ(engine.flow_count(), 0u);
      out << "carried " << engine.carried_bytes()[links.named("h0/nic0/out").at(0)] << '\n';
    });
  });
}

TEST(SimEngine, ACancelledFlowSaysHowFarItCame) {
  EXPECT_EQ(one_flow([](SimEngine& engine, FlowId flow, const ClusterLinks&) {
              engine.at(TimePoint::from_ns(504'000), [&engine, flow] { engine.cancel(flow); });
            }),
            "cancelled 25000000 at 504000\ncarried 2.5e+07\n");
}

TEST(SimEngine, AFlowCancelledDuringItsLatencyMovedNothing) {
  EXPECT_EQ(one_flow([](SimEngine& engine, FlowId flow, const ClusterLinks&) {
              engine.at(TimePoint::from_ns(3'000), [&engine, flow] { engine.cancel(flow); });
            }),
            "cancelled 0 at 3000\ncarried 0\n");
}

TEST(SimEngine, AFlowCancelledAtOnceEndsAfterStartHasReturned) {
  EXPECT_EQ(one_flow([](SimEngine& engine, FlowId flow, const ClusterLinks&) {
              engine.cancel(flow);
              EXPECT_EQ(engine.flow_count(), 1u);
            }),
            "cancelled 0 at 0\ncarried 0\n");
}

TEST(SimEngine, CancellingAFlowThatHasEndedDoesNothing) {
  EXPECT_EQ(one_flow([](SimEngine& engine, FlowId flow, const ClusterLinks&) {
              engine.at(TimePoint::from_ns(1'004'001), [&engine, flow] { engine.cancel(flow); });
            }),
            "done 50000000 at 1004000\ncarried 5e+07\n");
}

TEST(SimEngine, ACancelledFlowLeavesItsBandwidthToTheOthersAtOnce) {
  const std::string text = run_world(pairs(3, 400, 2), [](SimEngine& engine, std::ostream& out) {
    auto gate = std::make_shared<Gate>();
    const auto tell = [&engine, &out, gate](const char* name, bool is_last) {
      return [&engine, &out, gate, name, is_last](const FlowResult& result) {
        out << name << ' ' << end_name(result.end) << ' ' << result.moved_bytes << " at " << engine.now().ns() << '\n';
        if (is_last) gate->open();
      };
    };
    const FlowId first = engine.start(gpu(0), gpu(1), 50'000'000, 0, tell("first", false));
    engine.start(gpu(0), gpu(2), 50'000'000, 0, tell("second", true));
    engine.at(TimePoint::from_ns(1'004'000), [&engine, first] { engine.cancel(first); });
    engine.spawn("waiter", [gate, &engine] { engine.wait(*gate, TimePoint::never()); });
  });
  EXPECT_EQ(text, "first cancelled 25000000 at 1004000\nsecond done 50000000 at 1504000\n");
}

TEST(SimEngine, ALinkThatGoesOffFailsTheFlowsOnIt) {
  EXPECT_EQ(one_flow([](SimEngine& engine, FlowId, const ClusterLinks& links) {
              engine.at(TimePoint::from_ns(254'000),
                        [&] { engine.set_link_on(links.named("h1/nic0/in").at(0), false); });
            }),
            "failed 12500000 at 254000\ncarried 1.25e+07\n");
}

TEST(SimEngine, AFlowOverALinkThatIsOffFailsAtOnceAndAfterStart) {
  const ClusterLinks links(pairs(2, 400, 2));
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [&](SimEngine& engine, std::ostream& out) {
                        engine.spawn("one", [&] {
                          Gate gate;
                          const uint32_t link = links.named("h0/nic0/out").at(0);
                          engine.set_link_on(link, false);
                          EXPECT_FALSE(engine.is_link_on(link));
                          start_one(engine, gate, out);
                          out << "started\n";
                          engine.wait(gate, TimePoint::never());
                          engine.set_link_on(link, true);
                          start_one(engine, gate, out);
                          engine.wait(gate, TimePoint::never());
                        });
                      }),
            "started\nfailed 0 at 0\ndone 50000000 at 1004000\n");
}

TEST(SimEngine, AFlowThatIsStartedBeforeTheRunOverALinkThatIsOffFails) {
  const ClusterLinks links(pairs(2, 400, 2));
  auto gate = std::make_shared<Gate>();
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [&](SimEngine& engine, std::ostream& out) {
                        engine.set_link_on(links.named("h0/nic0/out").at(0), false);
                        start_one(engine, *gate, out);
                        spawn_waiter(engine, *gate);
                      }),
            "failed 0 at 0\n");
}

TEST(SimEngine, AFactorSlowsALinkDown) {
  EXPECT_EQ(one_flow([](SimEngine& engine, FlowId, const ClusterLinks& links) {
              const uint32_t link = links.named("h1/nic0/in").at(0);
              engine.at(TimePoint::from_ns(504'000), [&engine, link] { engine.set_link_factor(link, 0.25); });
              engine.at(TimePoint::from_ns(1'504'000), [&engine, link] { engine.set_link_factor(link, 1); });
            }),
            "done 50000000 at 1754000\ncarried 5e+07\n");
}

TEST(SimEngine, ManyFlowsThatEndTogetherAreToldInTurn) {
  std::vector<PlannedFlow> plan;
  for (uint32_t i = 0; i < 200; ++i)
    for (uint32_t k = 0; k < 10; ++k) plan.push_back({gpu(i), gpu((i + 1) % 200), 1'000'000, 0});
  for (const double end : simulated_ends(pairs(200, 400, 2), plan)) EXPECT_NEAR(end, 204'000, 2'040);
}

// ---- Time

TEST(SimEngine, EventsComeAtTheirTimeAndInTheOrderInWhichTheyWereAdded) {
  EXPECT_EQ(run_world(pairs(2, 400, 2), TimePoint::from_ns(1000),
                      [](SimEngine& engine, std::ostream& out) {
                        const auto tell = [&](const char* name) {
                          return [&engine, &out, name] { out << name << ' ' << engine.now().ns() << '\n'; };
                        };
                        engine.at(TimePoint::from_ns(1500), tell("c"));
                        engine.at(TimePoint::from_ns(1200), tell("a"));
                        engine.at(TimePoint::from_ns(1500), tell("d"));
                        engine.at(TimePoint::from_ns(1201), [&engine, &out, tell] {
                          tell("b")();
                          engine.at(TimePoint::from_ns(3), tell("past"));
                          engine.after(Duration::from_ns(1), tell("soon"));
                          out << "after past\n";
                        });
                        engine.at(TimePoint::from_ns(9000), tell("never"));
                        auto gate = std::make_shared<Gate>();
                        engine.spawn("clock", [&engine, gate] { engine.wait(*gate, TimePoint::from_ns(8000)); });
                      }),
            "a 1200\nb 1201\nafter past\npast 1201\nsoon 1202\nc 1500\nd 1500\n");
}

TEST(SimEngine, ADeadlineIsToldToTheNanosecond) {
  for (const int64_t origin : {int64_t{0}, int64_t{4'000'000'000'000'000'000}, int64_t{-4'000'000'000'000'000'000}}) {
    const std::string text =
        run_world(pairs(2, 400, 2), TimePoint::from_ns(origin), [&](SimEngine& engine, std::ostream& out) {
          engine.spawn("clock", [&, origin] {
            Gate gate;
            Rng rng(7);
            int64_t time = 0;
            for (int i = 0; i < 2000; ++i) {
              time += static_cast<int64_t>(rng.below(rng.chance(1, 100) ? 100'000'000'000'000 : 1'000'000)) +
                      (i % 3 == 0 ? 1 : 0);
              const TimePoint deadline = TimePoint::from_ns(origin + time);
              EXPECT_FALSE(engine.wait(gate, deadline));
              if (engine.now() != deadline) out << deadline.ns() << " was " << engine.now().ns() << '\n';
            }
          });
        });
    EXPECT_EQ(text, "");
  }
}

TEST(SimEngine, TheClockMayBeFarFromZero) {
  constexpr int64_t kOrigin = 4'000'000'000'000'000'000;
  EXPECT_EQ(run_world(pairs(2, 400, 2), TimePoint::from_ns(kOrigin),
                      [](SimEngine& engine, std::ostream& out) {
                        engine.spawn("one", [&] {
                          Gate gate;
                          start_one(engine, gate, out);
                          engine.wait(gate, TimePoint::never());
                        });
                      }),
            "done 50000000 at 4000000000001004000\n");
}

// ---- Gates

TEST(SimEngine, AGateThatIsOpenLetsOneThroughAndCloses) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        engine.spawn("one", [&] {
                          Gate gate;
                          gate.open();
                          gate.open();
                          out << engine.wait(gate, TimePoint::never());
                          out << engine.wait(gate, TimePoint::from_ns(5)) << ' ' << engine.now().ns() << '\n';
                          out << engine.wait(gate, TimePoint::from_ns(4)) << ' ' << engine.now().ns() << '\n';
                        });
                      }),
            "10 5\n0 5\n");
}

TEST(SimEngine, AGateThatOpensAtTheDeadlineItselfLetsThrough) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        auto gate = std::make_shared<Gate>();
                        engine.spawn("one", [&, gate] {
                          out << engine.wait(*gate, TimePoint::from_ns(500)) << ' ' << engine.now().ns() << '\n';
                          // Five steps of one instant, and then the end of a flow.
                          out << engine.wait(*gate, TimePoint::from_ns(700)) << ' ' << engine.now().ns() << '\n';
                          engine.start(gpu(0), gpu(1), 50'000'000, 0, [gate](const FlowResult&) { gate->open(); });
                          out << engine.wait(*gate, TimePoint::from_ns(1'004'700)) << ' ' << engine.now().ns() << '\n';
                        });
                        engine.at(TimePoint::from_ns(500), [gate] { gate->open(); });
                        auto step = std::make_shared<std::function<void(int)>>();
                        *step = [&engine, gate, step](int left) {
                          if (left == 0) return gate->open();
                          engine.spawn("step", [&engine, step, left] {
                            Gate own;
                            engine.at(engine.now(), [&own] { own.open(); });
                            engine.wait(own, TimePoint::never());
                            (*step)(left - 1);
                          });
                        };
                        engine.at(TimePoint::from_ns(700), [step] { (*step)(5); });
                      }),
            "1 500\n1 700\n1 1004700\n");
}

TEST(SimEngine, ActorsPassTheTurnToEachOther) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        auto ping = std::make_shared<Gate>();
                        auto pong = std::make_shared<Gate>();
                        engine.spawn("ping", [&, ping, pong] {
                          for (int i = 0; i < 3; ++i) {
                            pong->open();
                            engine.wait(*ping, TimePoint::never());
                            out << "ping " << engine.now().ns() << '\n';
                          }
                        });
                        engine.spawn("pong", [&, ping, pong] {
                          for (int i = 0; i < 3; ++i) {
                            engine.wait(*pong, TimePoint::never());
                            out << "pong\n";
                            engine.after(Duration::from_ns(10), [ping] { ping->open(); });
                          }
                        });
                      }),
            "pong\nping 10\npong\nping 20\npong\nping 30\n");
}

// ---- Actors

struct Tell {
  std::ostream& out;
  std::string text;
  ~Tell() { out << text << '\n'; }
};

TEST(SimEngine, AnActorThatIsKilledIsUnwoundFromWhereItWaitsBeforeKillReturns) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        auto gate = std::make_shared<Gate>();
                        const ActorId victim = engine.spawn("victim", [&, gate] {
                          const Tell tell{out, "unwound"};
                          engine.wait(*gate, TimePoint::never());
                          out << "not here\n";
                        });
                        const ActorId late = engine.spawn("late victim", [&, gate] {
                          const Tell tell{out, "unwound from a deadline"};
                          Gate own;
                          engine.wait(own, TimePoint::from_ns(1'000'000));
                          out << "not here\n";
                        });
                        engine.spawn("killer", [&, victim, gate] {
                          Gate own;
                          engine.wait(own, TimePoint::from_ns(100));
                          out << "kill\n";
                          engine.kill(victim);
                          out << "killed " << engine.now().ns() << '\n';
                          engine.kill(victim);
                          gate->open();  // of which the victim must not hear
                          engine.wait(own, TimePoint::from_ns(2'000'000));
                        });
                        engine.at(TimePoint::from_ns(200), [&, late] {
                          engine.kill(late);
                          out << "killed\n";
                        });
                      }),
            "kill\nunwound\nkilled 100\nunwound from a deadline\nkilled\n");
}

TEST(SimEngine, DestructorsMayCallTheEngineWhileTheirActorIsUnwound) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        auto gate = std::make_shared<Gate>();
                        struct Last {
                          SimEngine& engine;
                          std::ostream& out;
                          Gate& gate;
                          FlowId flow;
                          ~Last() {
                            gate.open();
                            engine.cancel(flow);
                            engine.after(Duration::from_ns(50), [this_out = &out, this_engine = &engine] {
                              *this_out << "later " << this_engine->now().ns() << '\n';
                            });
                            engine.spawn("heir", [this_out = &out] { *this_out << "heir\n"; });
                          }
                        };
                        const ActorId victim = engine.spawn("victim", [&, gate] {
                          Gate own;
                          const FlowId flow =
                              engine.start(gpu(0), gpu(1), 50'000'000, 0, [&](const FlowResult& result) {
                                out << end_name(result.end) << ' ' << result.moved_bytes << '\n';
                              });
                          const Last last{engine, out, *gate, flow};
                          engine.wait(own, TimePoint::never());
                        });
                        engine.spawn("waiter", [&, gate] {
                          out << engine.wait(*gate, TimePoint::never()) << ' ' << engine.now().ns() << '\n';
                          Gate own;
                          engine.wait(own, TimePoint::from_ns(1'000'000));
                        });
                        engine.at(TimePoint::from_ns(504'000), [&, victim] { engine.kill(victim); });
                      }),
            "1 504000\nheir\ncancelled 25000000\nlater 504050\n");
}

TEST(SimEngine, AnActorThatIsKilledBeforeItRunsDoesNotRun) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        engine.spawn("one", [&] {
                          const ActorId other = engine.spawn("other", [&] { out << "ran\n"; });
                          engine.kill(other);
                          out << "killed\n";
                        });
                      }),
            "killed\n");
}

TEST(SimEngine, ActorsThatWaitForEverAreNamedAndUnwound) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        for (const char* name : {"left", "right"})
                          engine.spawn(name, [&engine, &out, name] {
                            const Tell tell{out, std::string("unwound ") + name};
                            Gate gate;
                            engine.wait(gate, TimePoint::never());
                          });
                        engine.spawn("fine", [&engine] {
                          Gate gate;
                          engine.wait(gate, TimePoint::from_ns(10));
                        });
                      }),
            "unwound left\nunwound right\nstuck left\nstuck right\n");
}

TEST(SimEngine, TheRunEndsWithItsLastActorAlthoughFlowsMove) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        auto gate = std::make_shared<Gate>();
                        engine.spawn("one", [&, gate] {
                          start_one(engine, *gate, out);
                          Gate own;
                          engine.wait(own, TimePoint::from_ns(10'000));
                          out << "end " << engine.flow_count() << '\n';
                        });
                      }),
            "end 1\n");
}

TEST(SimEngine, ARunWithoutActorsEndsAtOnce) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        engine.at(TimePoint::from_ns(1), [&] { out << "not here\n"; });
                      }),
            "");
}

TEST(SimEngine, TenThousandActorsWait) {
  EXPECT_EQ(run_world(pairs(2, 400, 2),
                      [](SimEngine& engine, std::ostream& out) {
                        auto left = std::make_shared<int>(10'000);
                        for (int i = 0; i < 10'000; ++i)
                          engine.spawn("actor", [&engine, &out, left, i] {
                            Gate gate;
                            EXPECT_FALSE(engine.wait(gate, TimePoint::from_ns(1000 + i % 7)));
                            if (--*left == 0) out << "all\n";
                          });
                      }),
            "all\n");
}

TEST(SimEngine, TheSameRunInTwoProcessesIsTheSame) {
  const auto run = [] {
    return run_world(small_fabric(true), [](SimEngine& engine, std::ostream& out) {
      auto rng = std::make_shared<Rng>(11);
      const Cluster cluster = small_fabric(true);
      for (int i = 0; i < 30; ++i)
        engine.spawn("actor", [&engine, &out, rng, cluster, i] {
          Gate gate;
          for (int k = 0; k < 10; ++k) {
            const FlowId flow = engine.start(random_place(*rng, cluster), random_place(*rng, cluster),
                                             rng->below(5'000'000), 0, [&, i](const FlowResult& result) {
                                               out << i << ' ' << end_name(result.end) << ' ' << result.moved_bytes
                                                   << ' ' << engine.now().ns() << '\n';
                                               gate.open();
                                             });
            const auto patience = Duration::from_ns(static_cast<int64_t>(rng->below(400'000)));
            if (!engine.wait(gate, engine.now() + patience)) {
              engine.cancel(flow);
              engine.wait(gate, TimePoint::never());
            }
          }
        });
    });
  };
  const std::string first = run();
  EXPECT_GT(first.size(), 3000u);
  EXPECT_NE(first.find("cancelled"), std::string::npos);
  EXPECT_NE(first.find("done"), std::string::npos);
  EXPECT_EQ(run(), first);
}

}  // namespace
}  // namespace crossdock::testing
