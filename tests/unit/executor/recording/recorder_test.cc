// Recording and replay of each protocol: what was recorded replays as it was.
#include "executor/recording/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/doc_pages.h"
#include "tests/support/paths.h"
#include "tests/support/recorded_runs.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;

// Replays as it was recorded, to its end.
void expect_same(const RecordedRun& run) {
  SCOPED_TRACE(run.name);
  const Result<ReplayReport> report = replay(run.text);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report.value().difference) << report.value().difference->to_text();
  EXPECT_TRUE(report.value().finished);
  EXPECT_EQ(report.value().states.back().second, "finished");
}

void expect_same(const RecordedRuns& runs) {
  for (const RecordedRun& run : runs.runs) expect_same(run);
}

std::vector<Deviation> all_deviations() {
  return {Deviation::kTakeOther,  Deviation::kFail,   Deviation::kFailLate, Deviation::kDouble,
          Deviation::kTimePasses, Deviation::kRefuse, Deviation::kNever};
}

TEST(Recorder, EachProtocolReplaysAsItWasRecorded) {
  std::set<std::string> protocols;
  for (const RecordedRun& run : plain_recordings()) {
    expect_same(run);
    protocols.insert(replay(run.text).value().protocol);
  }
  EXPECT_EQ(protocols, (std::set<std::string>{"coordinator", "restore", "target", "upload", "writer"}));
}

TEST(Recorder, PlainRunsEndWell) {
  const auto last_text = [](std::string_view name) { return recording_lines(recording_of(name)).back(); };
  for (const std::string_view name :
       {"source/p0-t0", "target/p0-t0", "coordinator", "upload", "restore", "upload of pages", "restore of pages"})
    EXPECT_NE(last_text(name).find("\"state\":\"finished\""), std::string::npos) << name;
  EXPECT_NE(recording_of("upload").find("\"phase\":\"committed\""), std::string::npos);
  EXPECT_NE(recording_of("restore").find("\"runtime\":\"activate\""), std::string::npos);
  EXPECT_NE(recording_of("restore of pages").find("\"runtime\":\"activate\""), std::string::npos);
  EXPECT_NE(recording_of("target/p0-t0").find("\"runtime\":\"activate\""), std::string::npos);
}

TEST(Recorder, TransfersWithASingleDeviationReplay) {
  const size_t step_count = record_transfer({}).step_count;
  for (size_t step = 0; step < step_count; step += 3)
    for (const Deviation what : all_deviations()) {
      const Schedule schedule{.deviations = {{step, what, 2}}};
      SCOPED_TRACE(schedule.to_text());
      expect_same(record_transfer(schedule));
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Recorder, UploadsAndRestoresWithASingleDeviationReplay) {
  RecordedStore store;
  for (const bool pages : {false, true}) {
    const size_t step_count =
        std::max(store.record_upload({}, pages).step_count, store.record_restore({}, pages).step_count);
    for (size_t step = 0; step < step_count; ++step)
      for (const Deviation what : all_deviations()) {
        const Schedule schedule{.deviations = {{step, what, 2}}};
        SCOPED_TRACE(schedule.to_text());
        expect_same(store.record_upload(schedule, pages));
        expect_same(store.record_restore(schedule, pages));
        if (::testing::Test::HasFailure()) return;
      }
  }
}

TEST(Recorder, RandomRunsReplay) {
  RecordedStore store;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Schedule schedule{.chaos = 10 * (1 + seed % 10), .seed = seed};
    SCOPED_TRACE(schedule.to_text());
    expect_same(record_transfer(schedule));
    expect_same(store.record_upload(schedule, seed % 2 == 0));
    expect_same(store.record_restore(schedule, seed % 2 == 1));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Recorder, RequestsToAbortReplay) {
  RecordedStore store;
  size_t abort_count = 0;
  for (size_t step = 0; step < 40; ++step) {
    const Schedule schedule{.abort_before_step = step};
    SCOPED_TRACE(schedule.to_text());
    for (const RecordedRuns& runs :
         {record_transfer(schedule), store.record_upload(schedule, false), store.record_restore(schedule, false)}) {
      expect_same(runs);
      for (const RecordedRun& run : runs.runs)
        abort_count += run.text.find(R"("abort":"somebody \"else\" \u00e9")") != std::string::npos;
    }
  }
  EXPECT_GT(abort_count, 40u);
}

TEST(Recorder, TheSameRunIsRecordedInTheSameBytes) {
  const Schedule schedule{.chaos = 40, .seed = 3};
  const RecordedRuns first = record_transfer(schedule);
  const RecordedRuns second = record_transfer(schedule);
  ASSERT_EQ(first.runs.size(), second.runs.size());
  for (size_t i = 0; i < first.runs.size(); ++i) EXPECT_EQ(first.runs[i].text, second.runs[i].text);
}

TEST(Recorder, EachDocumentStandsOnceAndBeforeItIsNamed) {
  for (const RecordedRun& run : plain_recordings()) {
    SCOPED_TRACE(run.name);
    std::set<std::string> documents;
    for (const std::string& line : recording_lines(run.text)) {
      const json value = json::parse(line);
      EXPECT_EQ(value.dump(-1, ' ', true), line) << "a line is canonical";
      if (value.contains("document")) {
        EXPECT_TRUE(documents.insert(value["document"]).second);
      }
    }
    EXPECT_GE(documents.size(), 3u);
  }
}

// docs/formats/recording.md shows the first lines of each kind of a writer's recording.
std::string example_lines() {
  std::string text = "```jsonl\n";
  std::set<std::string> kinds;
  for (const std::string& line : recording_lines(recording_of("source/p0-t0"))) {
    const json value = json::parse(line);
    const std::string kind = value.value("kind", std::string(value.contains("round") ? "round" : "header"));
    const bool has_message = line.find("\"kind\":\"job\"") != std::string::npos;
    if (kind == "crossdock.placement" || kind == "crossdock.binding") continue;  // long
    if (kinds.insert(has_message ? "job" : kind).second) text += line + "\n";
  }
  return text + "```\n";
}

// The fuzz target begins with whole recordings of today's form; one of an earlier form is refused at its first line,
// and nothing behind it is tried.
TEST(Recorder, TheFuzzCorpusHasRecordingsOfThisForm) {
  const std::vector<std::pair<std::string, std::string>> corpus = {
      {"writer", "source/p0-t0"},           {"target", "target/p0-t0"},
      {"coordinator", "coordinator"},       {"upload", "upload"},
      {"upload_pages", "upload of pages"},  {"restore", "restore"},
      {"restore_pages", "restore of pages"}};
  for (const auto& [file, name] : corpus) {
    const std::string path = source_path("tests/fuzz/corpus/recording/" + file + ".jsonl");
    if (std::getenv("CROSSDOCK_UPDATE_DOCS") != nullptr) {
      ASSERT_TRUE(write_file(path, recording_of(name)).ok());
    }
    const Result<std::string> text = read_file(path, 1 << 20);
    ASSERT_TRUE(text.ok()) << path;
    EXPECT_EQ(text.value(), recording_of(name))
        << path << " is out of date: run this test with CROSSDOCK_UPDATE_DOCS=1";
  }
}

TEST(Recorder, TheFormatsDocumentShowsLinesOfARecording) {
  expect_generated("docs/formats/recording.md", "recording", example_lines());
}

}  // namespace
}  // namespace crossdock::testing
