// Recording and replay of each protocol: what was recorded replays as it was, and what was changed is found or refused.
#include "executor/recorder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/recorded_runs.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool is_round(const std::string& line) { return line.find("\"round\":") != std::string::npos; }

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

// What keeps a changed recording from passing: its difference or why it is refused; empty when nothing does.
std::string objection_to(const std::string& text) {
  const Result<ReplayReport> report = replay(text);
  if (!report.ok()) return report.status().message();
  return report.value().difference ? report.value().difference->to_text() : "";
}

const std::string& recording_of(std::string_view name) {
  for (const RecordedRun& run : plain_recordings())
    if (run.name == name) return run.text;
  ADD_FAILURE() << name;
  return plain_recordings().front().text;
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
  const auto last_text = [](std::string_view name) { return lines_of(recording_of(name)).back(); };
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
  SmallStore store;
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
  SmallStore store;
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
  SmallStore store;
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
    for (const std::string& line : lines_of(run.text)) {
      const json value = json::parse(line);
      EXPECT_EQ(value.dump(-1, ' ', true), line) << "a line is canonical";
      if (value.contains("document")) {
        EXPECT_TRUE(documents.insert(value["document"]).second);
      }
    }
    EXPECT_GE(documents.size(), 3u);
  }
}

// A cut at a line's end is a recording of a run that was not over; a cut within a line is refused.
TEST(Replay, TheFirstLinesOfARecordingAreAnUnfinishedRun) {
  for (const RecordedRun& run : plain_recordings()) {
    SCOPED_TRACE(run.name);
    const std::vector<std::string> lines = lines_of(run.text);
    for (size_t count = 1; count <= lines.size(); ++count) {
      const std::string text = text_of({lines.begin(), lines.begin() + static_cast<ptrdiff_t>(count)});
      const Result<ReplayReport> report = replay(text);
      ASSERT_TRUE(report.ok()) << count << ": " << report.status().message();
      EXPECT_FALSE(report.value().difference);
      EXPECT_EQ(report.value().finished, count == lines.size());
      const Result<ReplayReport> cut = replay(text.substr(0, text.size() - 2));
      ASSERT_FALSE(cut.ok());
      EXPECT_NE(cut.status().message().find(fmt::format("line {}", count)), std::string::npos)
          << cut.status().message();
    }
  }
  EXPECT_FALSE(replay("").ok());
}

TEST(Replay, ALineThatIsMissingIsNoticedWhereItIsNeeded) {
  for (const RecordedRun& run : plain_recordings()) {
    SCOPED_TRACE(run.name);
    const std::vector<std::string> lines = lines_of(run.text);
    for (size_t dropped = 0; dropped + 1 < lines.size(); ++dropped) {
      std::vector<std::string> left = lines;
      left.erase(left.begin() + static_cast<ptrdiff_t>(dropped));
      const std::string objection = objection_to(text_of(left));
      // A document that was only posted, as the manifest of a commit, is needed by nobody.
      const bool may_go = lines[dropped].find("\"kind\":\"crossdock.store_manifest\"") != std::string::npos ||
                          lines[dropped].find("\"kind\":\"crossdock.transfer_job\"") != std::string::npos;
      EXPECT_TRUE(may_go || objection.find("line ") != std::string::npos) << "line " << dropped + 1 << objection;
    }
  }
}

TEST(Replay, LinesInAnotherOrderOrTwiceAreRefused) {
  const std::vector<std::string> lines = lines_of(recording_of("source/p0-t0"));
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!is_round(lines[i]) || !is_round(lines[i + 1])) continue;
    std::vector<std::string> changed = lines;
    std::swap(changed[i], changed[i + 1]);
    EXPECT_NE(objection_to(text_of(changed)).find(fmt::format("line {}: round", i + 1)), std::string::npos);
    changed = lines;
    changed.insert(changed.begin() + static_cast<ptrdiff_t>(i), lines[i]);
    EXPECT_NE(objection_to(text_of(changed)).find(fmt::format("line {}: round", i + 2)), std::string::npos);
  }
  std::vector<std::string> longer = lines;
  longer.push_back(lines.back());
  EXPECT_NE(objection_to(text_of(longer)).find("has finished"), std::string::npos);
}

// Changes each round of each recording by `change`, which returns false where there is nothing to change.
template <class Change>
size_t expect_each_change_found(Change change) {
  size_t count = 0;
  for (const RecordedRun& run : plain_recordings()) {
    const std::vector<std::string> lines = lines_of(run.text);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!is_round(lines[i])) continue;
      json round = json::parse(lines[i]);
      if (!change(round)) continue;
      std::vector<std::string> changed = lines;
      changed[i] = round.dump();
      const std::string objection = objection_to(text_of(changed));
      EXPECT_NE(objection.find("line "), std::string::npos) << run.name << " line " << i + 1;
      ++count;
    }
  }
  return count;
}

TEST(Replay, AChangedPostIsADifferenceThatIsShown) {
  std::vector<std::string> lines = lines_of(recording_of("source/p0-t0"));
  size_t at = 0;
  while (lines[at].find("\"call\":\"copy\"") == std::string::npos) ++at;
  json round = json::parse(lines[at]);
  json& post = round["posts"][0];
  const std::string right = post.dump();
  post["steps"]["bytes"] = post["steps"]["bytes"].get<uint64_t>() + 1;
  lines[at] = round.dump();
  const ReplayReport report = replay(text_of(lines)).value();
  ASSERT_TRUE(report.difference);
  const ReplayDifference expected{round["round"], at + 1, "post 1", post.dump(), right};
  EXPECT_EQ(*report.difference, expected) << report.difference->to_text();
  EXPECT_FALSE(report.finished);

  EXPECT_GT(expect_each_change_found([](json& each) {
              if (each["posts"].empty()) return false;
              each["posts"].erase(0);
              return true;
            }),
            50u);
  EXPECT_GT(expect_each_change_found([](json& each) {
              each["posts"].push_back({{"call", "receive"}, {"op", 99}});
              return true;
            }),
            50u);
}

TEST(Replay, AChangedStateIsADifference) {
  EXPECT_GT(expect_each_change_found([](json& round) {
              round["state"] = "resting";
              return true;
            }),
            50u);
}

TEST(Replay, ACompletionThatIsChangedIsFound) {
  // Operation 0 is nobody's, and what is not under way cannot complete.
  EXPECT_GT(expect_each_change_found([](json& round) {
              if (round["completions"].empty()) return false;
              round["completions"][0]["op"] = 1'000'000;
              return true;
            }),
            50u);
  EXPECT_GT(expect_each_change_found([](json& round) {
              if (round["completions"].empty()) return false;
              round["completions"].push_back(round["completions"][0]);
              return true;
            }),
            50u);
  // A success without the value that it brings, or with another one.
  EXPECT_GT(expect_each_change_found([](json& round) {
              for (json& completion : round["completions"])
                if (completion.contains("result")) return completion.erase("result") == 1;
              return false;
            }),
            30u);
  EXPECT_GT(expect_each_change_found([](json& round) {
              for (json& completion : round["completions"]) {
                const bool is_report = completion.contains("result") && completion["result"]["kind"] == "report";
                completion["result"] = {{"kind", "report"}, {"bytes", 1}, {"bytes_read", 1}, {"chunks_read", 1}};
                if (!is_report) return true;
              }
              return false;
            }),
            30u);
}

TEST(Replay, AnOutcomeThatIsChangedIsADifference) {
  std::vector<std::string> lines = lines_of(recording_of("upload"));
  const size_t first_round = lines.size() - static_cast<size_t>(std::count_if(lines.begin(), lines.end(), is_round));
  json round = json::parse(lines[first_round + 1]);
  round["completions"][0]["status"] = {{"code", "quota exceeded"}, {"message", "full"}};
  round["completions"][0].erase("result");
  lines[first_round + 1] = round.dump();
  const ReplayReport report = replay(text_of(lines)).value();
  ASSERT_TRUE(report.difference);
  EXPECT_EQ(report.difference->line, first_round + 2);
}

TEST(Replay, ATimeThatIsChangedIsRefusedOrADifference) {
  std::vector<std::string> lines = lines_of(recording_of("coordinator"));
  const auto with_last_time = [&](int64_t ns) {
    std::vector<std::string> changed = lines;
    json round = json::parse(lines[lines.size() - 2]);
    round["time_ns"] = ns;
    changed[lines.size() - 2] = round.dump();
    return text_of(changed);
  };
  EXPECT_NE(objection_to(with_last_time(-5)).find("is before that of the round before"), std::string::npos);
  EXPECT_NE(objection_to(with_last_time(INT64_MAX)), "") << "all deadlines are over";
}

TEST(Replay, NegativeTimesReplay) {
  // The whole run, moved to before the beginning of its world.
  for (const RecordedRun& run : plain_recordings()) {
    std::vector<std::string> lines = lines_of(run.text);
    for (std::string& line : lines) {
      if (!is_round(line)) continue;
      json round = json::parse(line);
      round["time_ns"] = round["time_ns"].get<int64_t>() - 9'000'000'000'000'000'000;
      line = round.dump();
    }
    const Result<ReplayReport> report = replay(text_of(lines));
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_LT(report.value().end.ns(), 0);
  }
}

TEST(Replay, AReportTellsStatesAndCounts) {
  const ReplayReport report = replay(recording_of("source/p0-t0")).value();
  EXPECT_EQ(report.protocol, "writer");
  std::vector<std::string> states;
  for (const auto& [since, state] : report.states) states.push_back(state);
  EXPECT_EQ(states.front(), "pinning");
  EXPECT_EQ(states.back(), "finished");
  uint64_t rounds = 0;
  uint64_t posts = 0;
  uint64_t completions = 0;
  for (const std::string& line : lines_of(recording_of("source/p0-t0"))) {
    if (!is_round(line)) continue;
    const json round = json::parse(line);
    ++rounds;
    posts += round["posts"].size();
    completions += round["completions"].size();
  }
  EXPECT_EQ(report.round_count, rounds);
  EXPECT_EQ(report.post_count, posts);
  EXPECT_EQ(report.completion_count, completions);
}

}  // namespace
}  // namespace crossdock::testing
