// Replay of recordings that were cut or changed: what was changed is found, or refused with its line.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/recording/recorder.h"
#include "tests/support/recorded_runs.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;

// What keeps a changed recording from passing: its difference or why it is refused; empty when nothing does.
std::string objection_to(const std::string& text) {
  const Result<ReplayReport> report = replay(text);
  if (!report.ok()) return report.status().message();
  return report.value().difference ? report.value().difference->to_text() : "";
}

// A cut at a line's end is a recording of a run that was not over; a cut within a line is refused.
TEST(Replay, TheFirstLinesOfARecordingAreAnUnfinishedRun) {
  for (const RecordedRun& run : plain_recordings()) {
    SCOPED_TRACE(run.name);
    const std::vector<std::string> lines = recording_lines(run.text);
    for (size_t count = 1; count <= lines.size(); ++count) {
      const std::string text = recording_text({lines.begin(), lines.begin() + static_cast<ptrdiff_t>(count)});
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
    const std::vector<std::string> lines = recording_lines(run.text);
    for (size_t dropped = 0; dropped + 1 < lines.size(); ++dropped) {
      std::vector<std::string> left = lines;
      left.erase(left.begin() + static_cast<ptrdiff_t>(dropped));
      const std::string objection = objection_to(recording_text(left));
      // A document that was only posted, as the manifest of a commit, is not needed to replay.
      const bool may_go = lines[dropped].find("\"kind\":\"crossdock.store_manifest\"") != std::string::npos ||
                          lines[dropped].find("\"kind\":\"crossdock.transfer_job\"") != std::string::npos;
      EXPECT_TRUE(may_go || objection.find("line ") != std::string::npos) << "line " << dropped + 1 << objection;
    }
  }
}

TEST(Replay, LinesInAnotherOrderOrTwiceAreRefused) {
  const std::vector<std::string> lines = recording_lines(recording_of("source/p0-t0"));
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!is_round(lines[i]) || !is_round(lines[i + 1])) continue;
    std::vector<std::string> changed = lines;
    std::swap(changed[i], changed[i + 1]);
    EXPECT_NE(objection_to(recording_text(changed)).find(fmt::format("line {}: round", i + 1)), std::string::npos);
    changed = lines;
    changed.insert(changed.begin() + static_cast<ptrdiff_t>(i), lines[i]);
    EXPECT_NE(objection_to(recording_text(changed)).find(fmt::format("line {}: round", i + 2)), std::string::npos);
  }
  std::vector<std::string> longer = lines;
  longer.push_back(lines.back());
  EXPECT_NE(objection_to(recording_text(longer)).find("has finished"), std::string::npos);
}

// Changes each round of each recording by `change`, which returns false where there is nothing to change.
template <class Change>
size_t expect_each_change_found(Change change) {
  size_t count = 0;
  for (const RecordedRun& run : plain_recordings()) {
    const std::vector<std::string> lines = recording_lines(run.text);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!is_round(lines[i])) continue;
      json round = json::parse(lines[i]);
      if (!change(round)) continue;
      std::vector<std::string> changed = lines;
      changed[i] = round.dump();
      const std::string objection = objection_to(recording_text(changed));
      EXPECT_NE(objection.find("line "), std::string::npos) << run.name << " line " << i + 1;
      ++count;
    }
  }
  return count;
}

TEST(Replay, AChangedPostIsADifferenceThatIsShown) {
  std::vector<std::string> lines = recording_lines(recording_of("source/p0-t0"));
  size_t at = 0;
  while (lines[at].find("\"call\":\"copy\"") == std::string::npos) ++at;
  json round = json::parse(lines[at]);
  json& post = round["posts"][0];
  const std::string right = post.dump();
  post["steps"]["bytes"] = post["steps"]["bytes"].get<uint64_t>() + 1;
  lines[at] = round.dump();
  const ReplayReport report = replay(recording_text(lines)).value();
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
  // Operation 0 belongs to no post, and what is not under way cannot complete.
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
  std::vector<std::string> lines = recording_lines(recording_of("upload"));
  const size_t first_round = lines.size() - static_cast<size_t>(std::count_if(lines.begin(), lines.end(), is_round));
  json round = json::parse(lines[first_round + 1]);
  round["completions"][0]["status"] = {{"code", "quota exceeded"}, {"message", "full"}};
  round["completions"][0].erase("result");
  lines[first_round + 1] = round.dump();
  const ReplayReport report = replay(recording_text(lines)).value();
  ASSERT_TRUE(report.difference);
  EXPECT_EQ(report.difference->line, first_round + 2);
}

TEST(Replay, ATimeThatIsChangedIsRefusedOrADifference) {
  std::vector<std::string> lines = recording_lines(recording_of("coordinator"));
  const auto with_last_time = [&](int64_t ns) {
    std::vector<std::string> changed = lines;
    json round = json::parse(lines[lines.size() - 2]);
    round["time_ns"] = ns;
    changed[lines.size() - 2] = round.dump();
    return recording_text(changed);
  };
  EXPECT_NE(objection_to(with_last_time(-5)).find("is before that of the round before"), std::string::npos);
  EXPECT_NE(objection_to(with_last_time(INT64_MAX)), "") << "all deadlines are over";
}

TEST(Replay, NegativeTimesReplay) {
  // The whole run, moved to before the beginning of its world.
  for (const RecordedRun& run : plain_recordings()) {
    std::vector<std::string> lines = recording_lines(run.text);
    for (std::string& line : lines) {
      if (!is_round(line)) continue;
      json round = json::parse(line);
      round["time_ns"] = round["time_ns"].get<int64_t>() - 9'000'000'000'000'000'000;
      line = round.dump();
    }
    const Result<ReplayReport> report = replay(recording_text(lines));
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
  for (const std::string& line : recording_lines(recording_of("source/p0-t0"))) {
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
