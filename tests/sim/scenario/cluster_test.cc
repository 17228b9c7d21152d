// Clusters: reading, writing, presets, and which links lie between two places.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "sim/scenario/cluster_links.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/scenario_files.h"
#include "tests/support/doc_pages.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;
using Scope = ClusterLinks::Scope;

const std::string kFolder = source_path("scenarios/clusters/");
const std::vector<std::string> kPresets = {"dgx-h100",   "ethernet-25g-pair", "h100-1024",
                                           "h100-16384", "hgx-h200",          "roce-8x200g"};

std::string preset_text(const std::string& name) { return read_file(kFolder + name + ".json", 1 << 20).value(); }

Cluster read_or_die(const std::string& text) {
  Diagnostics diagnostics;
  std::optional<Cluster> cluster = read_cluster(text, "cluster", diagnostics);
  EXPECT_TRUE(cluster) << diagnostics.to_status().message();
  return cluster.value();
}

Cluster preset(const std::string& name) { return read_or_die(preset_text(name)); }

// Four machines, two to a leaf, of two GPUs and two NICs each.
Cluster small(bool rail_optimized = false) {
  Cluster cluster = preset("dgx-h100");
  cluster.machine.gpu_count = 2;
  cluster.machine.nics = {NicSpec{400, {0}}, NicSpec{200, {1}}};
  cluster.fabric.machines_per_leaf = 2;
  cluster.fabric.oversubscription = 4;
  cluster.fabric.rail_optimized = rail_optimized;
  return cluster;
}

Place gpu(uint32_t machine, uint32_t index) { return Place{machine, PlaceKind::kGpu, index}; }
Place dram(uint32_t machine) { return Place{machine, PlaceKind::kDram, 0}; }
Place ssd(uint32_t machine) { return Place{machine, PlaceKind::kSsd, 0}; }

std::vector<std::string> names(const ClusterLinks& links, const std::vector<uint32_t>& numbers) {
  std::vector<std::string> texts;
  for (const uint32_t link : numbers) texts.push_back(links.links().at(link).name);
  return texts;
}

using Names = std::vector<std::string>;

// ---- The document

TEST(ClusterDocument, EachPresetIsReadAndWrittenBackWithEqualContent) {
  for (const std::string& name : kPresets) {
    SCOPED_TRACE(name);
    const std::string text = preset_text(name);
    const std::string canonical = write_cluster(read_or_die(text));
    EXPECT_EQ(json::parse(canonical), json::parse(text));
    EXPECT_EQ(write_cluster(read_or_die(canonical)), canonical);
    EXPECT_EQ(read_or_die(text).name, name);
    EXPECT_NE(read_or_die(text).source.find("Assumptions"), std::string::npos);
  }
  size_t file_count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    file_count += entry.is_regular_file() ? 1u : 0u;
  EXPECT_EQ(file_count, kPresets.size()) << "a preset is not in this test";
}

TEST(ClusterDocument, CanonicalTextIsSortedAndWritesWholeNumbersAsSuch) {
  EXPECT_TRUE(write_cluster(preset("ethernet-25g-pair"))
                  .starts_with("{\"costs\":{\"descriptor_ns\":50,\"message_us\":20,\"post_us\":3,\"queue_depth\":64,"));
  EXPECT_NE(write_cluster(preset("roce-8x200g")).find("\"hbm_gbyte_per_s\":1019.5,"), std::string::npos);
}

struct Broken {
  std::string line;
  std::function<void(json&)> mutate;
};

TEST(ClusterDocument, EachBrokenDocumentGetsItsLine) {
  const std::vector<Broken> table = {
      {"machine.pcie.gbyte_per_s: 0 is not above 0 [field-minimum]",
       [](json& d) { d["machine"]["pcie"]["gbyte_per_s"] = 0; }},
      {"machine.pcie.latency_us: -0.5 is below 0 [field-minimum]",
       [](json& d) { d["machine"]["pcie"]["latency_us"] = -0.5; }},
      {"machine.hbm_gbyte_per_s: -1 is not above 0 [field-minimum]",
       [](json& d) { d["machine"]["hbm_gbyte_per_s"] = -1; }},
      {"machine.hbm_gbyte_per_s: 1e+300 is above 1000000000 [field-type]",
       [](json& d) { d["machine"]["hbm_gbyte_per_s"] = 1e300; }},
      {"machine.dram_gbyte_per_s: must be a number, not a string [field-type]",
       [](json& d) { d["machine"]["dram_gbyte_per_s"] = "fast"; }},
      {"machine.dram_gbyte_per_s: must be a number, not null [field-type]",
       [](json& d) { d["machine"]["dram_gbyte_per_s"] = nullptr; }},
      {"machine.gpu_count: 17 is not an integer from 1 to 16 [field-integer]",
       [](json& d) { d["machine"]["gpu_count"] = 17; }},
      {"machine.gpu_count: 1.5 is not an integer from 0 to 18446744073709551615 [field-integer]",
       [](json& d) { d["machine"]["gpu_count"] = 1.5; }},
      {"machine_count: 0 is not an integer from 1 to 8192 [field-integer]", [](json& d) { d["machine_count"] = 0; }},
      {"machine_count: 18446744073709551615 is not an integer from 1 to 8192 [field-integer]",
       [](json& d) { d["machine_count"] = UINT64_MAX; }},
      {"machine.nics: 0 nics, not from 1 to 16 [field-integer]", [](json& d) { d["machine"]["nics"] = json::array(); }},
      {"machine.nics[0].gpus[0]: 8 is not an integer from 0 to 7 [field-integer]",
       [](json& d) { d["machine"]["nics"][0]["gpus"][0] = 8; }},
      {"machine.nics: gpu 1 is behind nic 0 and nic 1 [device-repeated]",
       [](json& d) {
         d["machine"]["nics"][0]["gpus"] = {0, 1};
       }},
      {"machine.nics: gpu 7 is behind no nic [field-missing]",
       [](json& d) { d["machine"]["nics"][7]["gpus"] = json::array(); }},
      {"machine.nvlink: field 'latency_us' is missing [field-missing]",
       [](json& d) { d["machine"]["nvlink"].erase("latency_us"); }},
      {"machine: field 'cores' is unknown [field-unknown]", [](json& d) { d["machine"]["cores"] = 8; }},
      {"fabric.oversubscription: 0.5 is below 1 [field-minimum]",
       [](json& d) { d["fabric"]["oversubscription"] = 0.5; }},
      {"fabric.rail_optimized: must be a boolean, not an integer [field-type]",
       [](json& d) { d["fabric"]["rail_optimized"] = 1; }},
      {"fabric.machines_per_leaf: 0 is not an integer from 1 to 8192 [field-integer]",
       [](json& d) { d["fabric"]["machines_per_leaf"] = 0; }},
      {"costs.queue_depth: 0 is not an integer from 1 to 1048576 [field-integer]",
       [](json& d) { d["costs"]["queue_depth"] = 0; }},
      {"name: a name must not be empty [name]", [](json& d) { d["name"] = ""; }},
      {"schema: 'crossdock.plan' stands where 'crossdock.cluster' is needed [schema-name]",
       [](json& d) { d["schema"] = "crossdock.plan"; }},
      {"version: version 2 of 'crossdock.cluster' is unknown; this program reads version 1 [schema-version]",
       [](json& d) { d["version"] = 2; }},
  };
  for (const Broken& broken : table) {
    SCOPED_TRACE(broken.line);
    json document = json::parse(preset_text("dgx-h100"));
    broken.mutate(document);
    Diagnostics diagnostics("scenario 'x'");
    EXPECT_FALSE(read_cluster(document.dump(), "cluster 'small.json'", diagnostics));
    ASSERT_EQ(diagnostics.total(), 1u);
    EXPECT_EQ(diagnostics.kept()[0].to_line(), "cluster 'small.json' " + broken.line);
    EXPECT_EQ(diagnostics.document(), "scenario 'x'");
  }
}

TEST(ClusterDocument, TextThatIsNotJsonIsRefused) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read_cluster("{\"schema\":", "cluster 'x'", diagnostics));
  EXPECT_TRUE(diagnostics.has(Rule::kJsonSyntax));
  EXPECT_FALSE(read_cluster(std::string((1 << 20) + 1, ' '), "cluster 'x'", diagnostics));
  EXPECT_TRUE(diagnostics.has(Rule::kJsonBytes));
}

TEST(ClusterDocument, TheExampleOfTheFormatsDocumentIsRead) {
  const std::vector<std::string> blocks = code_blocks(doc_page("docs/formats/cluster.md"), "json");
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(read_or_die(blocks[0]).name, "pair");
}

// The page of the format, and the page that says how to write a scenario.
TEST(ScenarioDocument, TheExamplesOfTheDocumentsAreReadAndKeepTheRules) {
  for (const char* path : {"docs/formats/scenario.md", "docs/simulation.md"}) {
    SCOPED_TRACE(path);
    const std::vector<std::string> blocks = code_blocks(doc_page(path), "json");
    ASSERT_EQ(blocks.size(), 1u);
    Diagnostics diagnostics;
    const std::optional<Scenario> scenario =
        read_scenario(blocks[0], clusters_beside(source_path("scenarios/x.json")), "scenario", diagnostics);
    ASSERT_TRUE(scenario) << diagnostics.to_status().message();
    check_scenario(*scenario, diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << diagnostics.to_status().message();
  }
}

// ---- Ways

TEST(ClusterLinks, PathsHaveTheLinksOfTheirScope) {
  const ClusterLinks links(small());
  const auto path = [&](const Place& from, const Place& to) { return names(links, links.path(from, to)); };
  EXPECT_EQ(path(gpu(0, 1), gpu(0, 1)), Names({"h0/gpu1/hbm"}));
  EXPECT_EQ(path(dram(2), dram(2)), Names({"h2/dram/out", "h2/dram/in"}));
  EXPECT_EQ(path(gpu(0, 1), gpu(0, 0)), Names({"h0/gpu1/nvlink/out", "h0/gpu0/nvlink/in"}));
  EXPECT_EQ(path(gpu(0, 1), dram(0)), Names({"h0/gpu1/pcie/out", "h0/dram/in"}));
  EXPECT_EQ(path(ssd(3), gpu(3, 0)), Names({"h3/ssd/read", "h3/gpu0/pcie/in"}));
  EXPECT_EQ(path(dram(3), ssd(3)), Names({"h3/dram/out", "h3/ssd/write"}));
  EXPECT_EQ(path(gpu(0, 1), gpu(1, 0)), Names({"h0/gpu1/pcie/out", "h0/nic1/out", "h1/nic0/in", "h1/gpu0/pcie/in"}));
  EXPECT_EQ(path(gpu(1, 1), gpu(2, 1)),
            Names({"h1/gpu1/pcie/out", "h1/nic1/out", "leaf0/up", "leaf1/down", "h2/nic1/in", "h2/gpu1/pcie/in"}));
  // DRAM takes the NIC of its machine's number, SSD the next one.
  EXPECT_EQ(path(dram(1), ssd(2)),
            Names({"h1/dram/out", "h1/nic1/out", "leaf0/up", "leaf1/down", "h2/nic1/in", "h2/ssd/write"}));
}

TEST(ClusterLinks, WithoutNvlinkGpusReachEachOtherOverPcie) {
  Cluster cluster = small();
  cluster.machine.nvlink_gbyte_per_s.reset();
  const ClusterLinks links(cluster);
  EXPECT_EQ(names(links, links.path(gpu(0, 1), gpu(0, 0))), Names({"h0/gpu1/pcie/out", "h0/gpu0/pcie/in"}));
}

TEST(ClusterLinks, RailsMeetAtTheSpineOnly) {
  const ClusterLinks links(small(true));
  EXPECT_EQ(links.scope(gpu(0, 1), gpu(1, 1)), Scope::kLeaf);
  EXPECT_EQ(links.scope(gpu(0, 1), gpu(1, 0)), Scope::kSpine);
  EXPECT_EQ(names(links, links.path(gpu(0, 1), gpu(3, 0))),
            Names({"h0/gpu1/pcie/out", "h0/nic1/out", "leaf1/up", "leaf2/down", "h3/nic0/in", "h3/gpu0/pcie/in"}));
}

TEST(ClusterLinks, LeavesCarryWhatTheirNicsSendDividedByOversubscription) {
  const auto bytes_per_s = [](const ClusterLinks& links, const char* name) {
    return links.links().at(links.named(name).at(0)).bytes_per_s;
  };
  EXPECT_DOUBLE_EQ(bytes_per_s(ClusterLinks(small()), "leaf0/up"), 2 * 600e9 / 8 / 4);
  EXPECT_DOUBLE_EQ(bytes_per_s(ClusterLinks(small(true)), "leaf3/down"), 2 * 200e9 / 8 / 4);
  Cluster odd = small();
  odd.machine_count = 3;
  EXPECT_DOUBLE_EQ(bytes_per_s(ClusterLinks(odd), "leaf1/up"), 600e9 / 8 / 4) << "one machine below it";
}

TEST(ClusterLinks, EachPathIsAWayOutAndAWayInWithNoLinkTwice) {
  for (const bool rail_optimized : {false, true}) {
    const ClusterLinks links(small(rail_optimized));
    std::vector<Place> places;
    for (uint32_t machine = 0; machine < 4; ++machine)
      for (const Place& place : {gpu(machine, 0), gpu(machine, 1), dram(machine), ssd(machine)})
        places.push_back(place);
    for (const Place& from : places) {
      for (const Place& to : places) {
        std::vector<uint32_t> way = links.way_out(from, links.scope(from, to));
        for (const uint32_t link : links.way_in(to, links.scope(from, to))) way.push_back(link);
        EXPECT_EQ(way, links.path(from, to));
        EXPECT_EQ(links.scope(from, to), links.scope(to, from));
        std::sort(way.begin(), way.end());
        EXPECT_EQ(std::adjacent_find(way.begin(), way.end()), way.end()) << from.to_text() << " " << to.to_text();
      }
    }
  }
}

TEST(ClusterLinks, LatencyIsThatOfAllLinksAndBandwidthThatOfTheSlowest) {
  const ClusterLinks links(small());
  EXPECT_DOUBLE_EQ(links.latency_s(gpu(0, 0), gpu(0, 1)), 1e-6);
  EXPECT_DOUBLE_EQ(links.latency_s(gpu(0, 0), gpu(1, 0)), 3e-6);
  EXPECT_DOUBLE_EQ(links.latency_s(gpu(0, 0), gpu(2, 0)), 4e-6);
  EXPECT_DOUBLE_EQ(links.bytes_per_s(gpu(0, 0), gpu(1, 0)), 50e9);
  EXPECT_DOUBLE_EQ(links.bytes_per_s(gpu(0, 0), gpu(1, 1)), 25e9);
  EXPECT_DOUBLE_EQ(links.bytes_per_s(gpu(0, 0), gpu(0, 1)), 450e9);
}

TEST(ClusterLinks, NamesFindAMachineAThingOrOneDirection) {
  const ClusterLinks links(small());
  const auto named = [&](std::string_view name) { return names(links, links.named(name)); };
  EXPECT_EQ(named("h3/nic0"), Names({"h3/nic0/out", "h3/nic0/in"}));
  EXPECT_EQ(named("h3/gpu1/nvlink"), Names({"h3/gpu1/nvlink/out", "h3/gpu1/nvlink/in"}));
  EXPECT_EQ(named("h3/gpu1").size(), 5u);
  EXPECT_EQ(named("h3/ssd"), Names({"h3/ssd/read", "h3/ssd/write"}));
  EXPECT_EQ(named("h3/nic0/out"), Names({"h3/nic0/out"}));
  EXPECT_EQ(named("leaf1"), Names({"leaf1/up", "leaf1/down"}));
  EXPECT_EQ(links.named("h3"), links.of_machine(3));
  EXPECT_EQ(links.of_machine(3).size(), 2 * 5 + 4 + 2 * 2u);
  for (const char* name : {"", "h", "h3/", "h3/nic", "h4", "leaf2", "spine"}) EXPECT_EQ(named(name), Names()) << name;
}

TEST(ClusterLinks, AMachineNameIsNotThePrefixOfAnother) {
  const ClusterLinks links(preset("h100-1024"));
  EXPECT_EQ(links.named("h1").size(), links.of_machine(1).size());
  EXPECT_EQ(links.named("h12"), links.of_machine(12));
}

TEST(ClusterLinks, OneLeafHasNoLinksUp) {
  const ClusterLinks links(preset("dgx-h100"));
  EXPECT_EQ(links.named("leaf0"), std::vector<uint32_t>());
  EXPECT_EQ(links.scope(gpu(0, 0), gpu(3, 7)), Scope::kLeaf);
}

TEST(ClusterLinks, HasKnowsWhichPlacesThereAre) {
  const ClusterLinks links(small());
  EXPECT_TRUE(links.has(gpu(3, 1)));
  EXPECT_FALSE(links.has(gpu(3, 2)));
  EXPECT_FALSE(links.has(gpu(4, 0)));
  EXPECT_TRUE(links.has(dram(3)));
  EXPECT_FALSE(links.has(Place{3, PlaceKind::kSsd, 1}));
}

TEST(ClusterLinks, PlacesAreNamedAsInFaults) {
  EXPECT_EQ(gpu(3, 5).to_text(), "h3/gpu5");
  EXPECT_EQ(dram(3).to_text(), "h3/dram");
  EXPECT_EQ(ssd(0).to_text(), "h0/ssd");
}

}  // namespace
}  // namespace crossdock::testing
