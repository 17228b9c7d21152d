// Every command gets every document that it reads with every number at its extremes. Whatever the numbers say, the
// program ends within two seconds of processor time and 256 MB, with a status of its own and a word about what is
// wrong.
//
// A number is changed alone, and together with all others of the same field and value: what has to agree, such as the
// layers of a schema and of its placement, then still does, and the number comes further.
//
// Under sanitizers, which take many times the time and memory, one mutation of eight is tried, without a limit of
// memory.
#include <sys/resource.h>

#include <cstdint>
#include <map>

#include "tests/cli/run_program.h"

namespace crossdock::testing {
namespace {

using Strings = std::vector<std::string>;

#ifdef CROSSDOCK_SANITIZED
constexpr int64_t kMemoryKilobytesMax = INT64_MAX;
constexpr rlim_t kProcessorSecondsMax = 60;
constexpr uint64_t kOneOf = 8;
#else
constexpr int64_t kMemoryKilobytesMax = 256 * 1024;
constexpr rlim_t kProcessorSecondsMax = 2;
constexpr uint64_t kOneOf = 1;
#endif
constexpr size_t kManyFiles = 40;

const std::vector<uint64_t> kExtremes = {0, uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX};
// For commands that move the bytes that a document asks for: a million heads are a cache that they have to move.
const std::vector<uint64_t> kMovedExtremes = {0, uint64_t{1} << 40, UINT64_MAX};

class CliExtremes : public Cli {
 protected:
  // The document with one number changed, or all of one field that are equal.
  struct Mutation {
    std::string what;
    json document;
  };

  std::vector<Mutation> mutations_of(const json& document, const std::vector<uint64_t>& extremes = kExtremes) {
    std::map<std::pair<std::string, uint64_t>, Strings> alike;  // pointers, by field and value
    const json flat = document.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      if (!value.is_number_unsigned()) continue;
      std::string field;  // the last name of the path; indices of arrays are left out
      for (json::json_pointer at(pointer); !at.empty(); at.pop_back())
        if (!std::isdigit(static_cast<unsigned char>(at.back().front()))) {
          field = at.back();
          break;
        }
      alike[{field, value.get<uint64_t>()}].push_back(pointer);
    }
    std::vector<Mutation> mutations;
    const auto add = [&](const Strings& pointers, uint64_t value) {
      json changed = document;
      for (const std::string& pointer : pointers) changed[json::json_pointer(pointer)] = value;
      if (changed == document || ++drawn_ % kOneOf != 0) return;
      mutations.push_back(
          {pointers.front() + (pointers.size() > 1 ? " and its like" : "") + " = " + std::to_string(value),
           std::move(changed)});
    };
    for (const auto& [key, pointers] : alike) {
      for (const uint64_t value : extremes) add(pointers, value);
      if (pointers.size() == 1) continue;
      for (const std::string& pointer : pointers) add({pointer}, extremes.back());
    }
    return mutations;
  }

  // Runs the commands for each mutation of the document, which is in the file `name`.
  void try_all(const std::string& name, const json& document, const std::vector<Strings>& usages,
               const std::vector<uint64_t>& extremes = kExtremes) {
    for (const Mutation& mutation : mutations_of(document, extremes)) {
      write(name, mutation.document.dump());
      for (const Strings& usage : usages) try_one(usage, name + ": " + mutation.what);
    }
    write(name, document.dump());
  }

  // The same for commands that take many files: as many mutations at once as keep within the limits of one. Where they
  // do not, each is tried alone, so that the one that matters is named.
  void try_many(const std::string& name, const json& document, const Strings& commands) {
    const std::vector<Mutation> mutations = mutations_of(document);
    for (size_t begin = 0; begin < mutations.size(); begin += kManyFiles) {
      const size_t end = std::min(mutations.size(), begin + kManyFiles);
      Strings files;
      for (size_t i = begin; i < end; ++i) {
        files.push_back(std::to_string(i) + "-" + name);
        write(files.back(), mutations[i].document.dump());
      }
      for (const std::string& command : commands) {
        Strings usage = {command};
        usage.insert(usage.end(), files.begin(), files.end());
        const Spent together = spend(usage);
        count_ += files.size();
        if (together.ok()) continue;
        for (size_t i = begin; i < end; ++i) try_one({command, files[i - begin]}, name + ": " + mutations[i].what);
      }
      for (const std::string& file : files) fs::remove(work(file));
    }
  }

  struct Spent {
    Ended ended;
    double seconds = 0;
    int64_t kilobytes = 0;

    bool ok() const {
      return ended.exit_code >= 0 && ended.exit_code <= 2 && seconds <= static_cast<double>(kProcessorSecondsMax) &&
             kilobytes <= kMemoryKilobytesMax && (ended.exit_code == 0 || !(ended.out + ended.err).empty());
    }
  };

  // Past three seconds of processor time the kernel ends the program.
  Spent spend(const Strings& usage) const {
    Strings arguments = usage;
    arguments.insert(arguments.begin(), program_path());
    Spent spent;
    rusage used = {};
    spent.ended = run_program(std::move(arguments), "", "", kProcessorSecondsMax + 1, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    spent.seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
    spent.kilobytes = used.ru_maxrss;
    return spent;
  }

  void try_one(const Strings& usage, const std::string& what) {
    const Spent spent = spend(usage);
    EXPECT_TRUE(spent.ok()) << what << "\ncrossdock " << json(usage).dump() << "\nexit " << spent.ended.exit_code
                            << ", " << spent.seconds << " s, " << spent.kilobytes << " kB\n"
                            << spent.ended.err;
    ++count_;
  }

  json read_json(const std::string& name) const { return json::parse(read(name)); }

  uint64_t drawn_ = 0;
  uint64_t count_ = 0;  // of runs, one for each document
};

// validate, inspect and digest read every kind.
TEST_F(CliExtremes, OfEveryDocument) {
  write_examples();
  for (const std::string& file : files()) try_many(file, read_json(file), {"validate", "inspect", "digest"});
  EXPECT_GT(count_, 1000u / kOneOf);
}

TEST_F(CliExtremes, OfWhatPlacementsAndBindingsAreMadeFrom) {
  write_examples();
  try_all("cache_schema.json", read_json("cache_schema.json"),
          {{"schema", "--schema", "cache_schema.json"},
           {"placement", "--schema", "cache_schema.json", "--tp", "2", "--pp", "2", "--cp", "2"}});
  try_all("placement.json", read_json("placement.json"),
          {{"snapshot", "--placement", "placement.json", "--tokens", "10"},
           {"bind", "--placement", "placement.json", "--snapshot", "snapshot.json", "--output-dir", "out"},
           {"convert", "--to", "mooncake", "placement.json"}});
  try_all("snapshot.json", read_json("snapshot.json"),
          {{"bind", "--placement", "placement.json", "--snapshot", "snapshot.json", "--output-dir", "out"},
           {"convert", "--to", "mooncake", "snapshot.json"}});
  try_all("binding.json", read_json("binding.json"),
          {{"validate", "binding.json", "placement.json", "snapshot.json"},
           {"convert", "--to", "mooncake", "binding.json", "--placement", "placement.json"}});
}

TEST_F(CliExtremes, OfMooncakesDocuments) {
  for (const std::string name : {"placement_gqa_pp2_tp2.json", "snapshot.json"}) {
    write(name, read_text(kGolden + name));
    try_all(name, read_json(name), {{"convert", "--from", "mooncake", name}});
  }
}

TEST_F(CliExtremes, OfModelConfigs) {
  for (const std::string model : {"gpt-oss-120b", "deepseek-v3.2-exp", "qwen3-next-80b-a3b"}) {
    const json config = json::parse(read_text(kModels + model + "/config.json"));
    try_all(
        "config.json", config,
        {{"schema", "--config", "config.json"}, {"placement", "--config", "config.json", "--tp", "2", "--pp", "2"}});
  }
}

TEST_F(CliExtremes, OfWhatPlansAreMadeFrom) {
  notice_of({"placement", "--config", kLlama, "--tp", "2", "--name", "source", "-o", "source.json"});
  notice_of({"placement", "--config", kLlama, "--pp", "2", "--cp", "2", "--name", "target", "-o", "target.json"});
  notice_of({"snapshot", "--placement", "source.json", "--tokens", "1000", "-o", "snapshot.json"});
  run({"plan", "--source", "source.json", "--upload", "--layout-output", "layout.json"});
  run({"plan", "--source", "source.json", "--target", "target.json", "--snapshot", "snapshot.json", "-o", "plan.json"});
  const Strings live = {"plan", "--source", "source.json", "--target", "target.json", "--snapshot", "snapshot.json"};
  Strings balanced = live;
  balanced.insert(balanced.end(), {"--selection", "balanced"});
  Strings expand = live;
  expand.push_back("--expand");
  const Strings upload = {"plan", "--source", "source.json", "--upload", "--layout", "layout.json"};
  const Strings restore = {"plan", "--restore", "--layout", "layout.json", "--target", "target.json"};
  try_all("source.json", read_json("source.json"), {live, balanced, upload});
  try_all("target.json", read_json("target.json"), {live, restore});
  try_all("snapshot.json", read_json("snapshot.json"), {live});
  try_all("layout.json", read_json("layout.json"), {upload, restore});
  try_all("plan.json", read_json("plan.json"),
          {{"verify-plan", "plan.json", "--source", "source.json", "--target", "target.json"}});
}

TEST_F(CliExtremes, OfWhatMovesBytes) {
  write_examples();
  try_all("cache_schema.json", read_json("cache_schema.json"),
          {{"reshard", "--schema", "cache_schema.json", "--from", "tp2", "--to", "pp2", "--tokens", "10", "--quiet"}},
          kMovedExtremes);
  ASSERT_EQ(run({"store", "init", "cache"}).exit_code, 0);
  const Strings put = {"store",      "put",           "cache",          "--placement",       "placement.json",
                       "--snapshot", "snapshot.json", "--store-layout", "store_layout.json", "--synthetic",
                       "--quiet"};
  ASSERT_EQ(run(put).exit_code, 0);
  const std::string snapshot = json::parse(output_of({"store", "ls", "cache", "--json"})).at(0).at("snapshot");
  for (const std::string name : {"placement.json", "snapshot.json", "store_layout.json"})
    try_all(name, read_json(name), {put}, kMovedExtremes);
  try_all("placement.json", read_json("placement.json"),
          {{"store", "get", "cache", snapshot, "--placement", "placement.json", "--quiet"}}, kMovedExtremes);
}

TEST_F(CliExtremes, OfRecordings) {
  ASSERT_EQ(run({"reshard", "--config", kLlama, "--from", "tp2", "--to", "tp1", "--tokens", "20", "--record", "runs",
                 "--quiet"})
                .exit_code,
            0);
  for (const std::string name : {"coordinator.jsonl", "target-p0-t0.jsonl"}) {
    const Strings lines = lines_of(read("runs/" + name));
    for (size_t i = 0; i < lines.size(); ++i)
      for (const Mutation& mutation : mutations_of(json::parse(lines[i]), {UINT64_MAX})) {
        std::string text;
        for (size_t k = 0; k < lines.size(); ++k) text += (k == i ? mutation.document.dump() : lines[k]) + "\n";
        write("changed.jsonl", text);
        try_one({"replay", "changed.jsonl"}, name + " line " + std::to_string(i + 1) + ": " + mutation.what);
      }
  }
}

TEST_F(CliExtremes, OfScenariosAndClusters) {
  if (!program_has_simulation()) GTEST_SKIP() << "built without the simulation";
  for (const std::string name : {"peer_crash_mid_transfer", "message_storm", "store_crash_commit_published"}) {
    const json scenario = json::parse(read_text(source_path("scenarios/" + name + ".json")));
    try_all("scenario.json", scenario, {{"simulate", "scenario.json"}});
  }
}

}  // namespace
}  // namespace crossdock::testing
