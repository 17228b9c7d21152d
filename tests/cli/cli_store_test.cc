// The commands that move bytes: reshard, store, store pages.
#include <signal.h>

#include <thread>

#include "tests/cli/run_program.h"
#include "tests/support/paths.h"

namespace crossdock::testing {
namespace {

const std::string kSmall = kModels + "llama-3.1-8b/config.json";

class CliStore : public Cli {
 protected:
  // The snapshot of the one publication that there is.
  std::string only_snapshot(const std::string& store) const {
    const json list = json::parse(output_of({"store", "ls", store, "--json"}));
    EXPECT_EQ(list.size(), 1u);
    return list.at(0).at("snapshot");
  }
  void put(const std::string& store, const std::string& from, const std::string& tokens) const {
    EXPECT_EQ(run({"store", "init", store}).exit_code, 0);
    const Ended stored =
        run({"store", "put", store, "--config", kSmall, "--from", from, "--tokens", tokens, "--synthetic", "--quiet"});
    EXPECT_EQ(stored.exit_code, 0) << stored.err;
    EXPECT_NE(stored.out.find("publication 1\n"), std::string::npos) << stored.out;
  }
};

TEST_F(CliStore, ReshardMovesEveryByteBetweenLayoutsPagesAndAxisOrders) {
  for (const std::string verify : {"full", "checksum", "off"}) {
    const json report =
        json::parse(output_of({"reshard", "--config", kSmall, "--from", "tp4", "--to", "tp2xpp2", "--tokens", "70",
                               "--page-size", "16:8", "--layout", "nhd:hnd", "--verify", verify, "--json"}));
    EXPECT_EQ(report.at("activated"), true);
    // 32 layers x (key, value) x 8 heads x 128 x 2 bytes x 70 tokens.
    EXPECT_EQ(report.at("bytes"), 32 * 2 * 8 * 128 * 2 * 70);
    EXPECT_EQ(report.at("held"), 0);
    EXPECT_EQ(report.at("wrong"), "");
    EXPECT_EQ(report.at("sources").size(), 4u);
    EXPECT_EQ(report.at("targets").size(), 4u);
    for (const json& target : report.at("targets")) EXPECT_EQ(target.at("activated"), true);
    for (const json& source : report.at("sources")) EXPECT_EQ(source.at("released"), true);
  }
}

TEST_F(CliStore, AReshardThatFailsLeavesNothingActiveOrHeld) {
  for (const char* fault : {"copy", "bit"}) {
    const Ended result = run(
        {"reshard", "--config", kSmall, "--from", "tp2", "--to", "tp4", "--tokens", "64", "--fail", fault, "--json"});
    EXPECT_EQ(result.exit_code, 1);
    const json report = json::parse(result.out);
    EXPECT_EQ(report.at("activated"), false);
    EXPECT_EQ(report.at("held"), 0);
    EXPECT_NE(report.at("cause"), "");
    for (const json& target : report.at("targets")) EXPECT_EQ(target.at("released"), true);
  }
}

TEST_F(CliStore, AnInterruptedReshardSaysWhatStateThingsAreIn) {
  // Its one source is silent after its first copy, so it goes on until it is interrupted. The recording is there as
  // soon as the coordinator runs.
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  const std::string out = work("out").string();
  if (pid == 0) {
    const int fd = open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execl(program_path().c_str(), program_path().c_str(), "reshard", "--config", kSmall.c_str(), "--from", "tp2",
          "--to", "tp4", "--tokens", "64", "--fail", "writer", "--drain", "1", "--record", work("recording").c_str(),
          nullptr);
    _exit(99);
  }
  while (!fs::exists(work("recording") / "coordinator.jsonl") ||
         fs::file_size(work("recording") / "coordinator.jsonl") == 0)
    std::this_thread::yield();
  ASSERT_EQ(kill(pid, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const std::string text = read_text(out);
  EXPECT_NE(text.find("not activated: interrupted"), std::string::npos) << text;
  EXPECT_NE(text.find("0 active"), std::string::npos) << text;
}

TEST_F(CliStore, ReshardRefusesWhatItCannotDo) {
  const auto refusal = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"reshard", "--config", kSmall};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refusal_of(arguments);
  };
  EXPECT_NE(refusal({"--from", "tp2", "--to", "tq2", "--tokens", "8"}).find("--to: "), std::string::npos);
  EXPECT_NE(refusal({"--from", "tp2", "--to", "tp3", "--tokens", "8"}).find("cannot be shared out over tp 3"),
            std::string::npos);
  EXPECT_NE(refusal({"--from", "tp2", "--to", "tp4", "--tokens", "8", "--page-size", "0"}).find("--page-size '0'"),
            std::string::npos);
  EXPECT_NE(refusal({"--from", "tp2", "--to", "tp4", "--tokens", "8", "--layout", "dhn"}).find("--layout 'dhn'"),
            std::string::npos);
  const Ended too_large = run({"reshard", "--config", kSmall, "--from", "tp2", "--to", "tp4", "--tokens", "4000000"});
  EXPECT_EQ(too_large.exit_code, 1);
  EXPECT_NE(too_large.err.find("cannot allocate"), std::string::npos) << too_large.err;
}

TEST_F(CliStore, WhatWasPutComesOutInAnyOtherLayout) {
  put("cache", "tp4", "150");
  const std::string snapshot = only_snapshot("cache");
  for (const std::string to : {"tp2", "tp8pp2", "pp4"}) {
    const json report = json::parse(output_of({"store", "get", "cache", snapshot.substr(0, 10), "--to", to,
                                               "--page-size", "24", "--layout", "hnd", "--verify", "full", "--json"}));
    EXPECT_EQ(report.at("activated"), true);
    EXPECT_EQ(report.at("wrong"), "");
    EXPECT_EQ(report.at("bytes"), 32 * 2 * 8 * 128 * 2 * 150);
  }
  const json one = json::parse(output_of(
      {"store", "get", "cache", snapshot, "--to", "tp2", "--participant", "p0-t1", "--verify", "full", "--json"}));
  EXPECT_EQ(one.at("bytes"), 32 * 2 * 4 * 128 * 2 * 150);
  EXPECT_EQ(one.at("wrong"), "");
}

TEST_F(CliStore, ASnapshotIsStoredOnceAndGoneAfterItsRemoval) {
  put("cache", "tp2", "20");
  const std::string snapshot = only_snapshot("cache");
  const Ended again =
      run({"store", "put", "cache", "--config", kSmall, "--from", "tp4", "--tokens", "20", "--synthetic", "--quiet"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("is stored already, as publication 1"), std::string::npos) << again.err;
  EXPECT_EQ(run({"store", "pin", "cache", "--publication", "1", "--holder", "me"}).exit_code, 0);
  const Ended pinned = run({"store", "rm", "cache", snapshot});
  EXPECT_EQ(pinned.exit_code, 1);
  EXPECT_NE(pinned.err.find("is pinned by 'me'"), std::string::npos) << pinned.err;
  EXPECT_EQ(run({"store", "unpin", "cache", "--publication", "1", "--holder", "me"}).exit_code, 0);
  EXPECT_EQ(run({"store", "rm", "cache", snapshot}).exit_code, 0);
  EXPECT_NE(refusal_of({"store", "get", "cache", snapshot, "--to", "tp2"}).find("no snapshot of the store begins with"),
            std::string::npos);
  const json stats = json::parse(output_of({"store", "stats", "cache", "--json"}));
  for (const char* what : {"bytes", "objects", "segments", "snapshots", "leases", "pins", "open_transactions"})
    EXPECT_EQ(stats.at(what), 0) << what;
}

TEST_F(CliStore, ADamagedByteIsNamedAndNeverActivated) {
  // Whole pages: chunks without payload are so short that several share a block of the file, and its checksum.
  put("cache", "tp2", "256");
  const std::string snapshot = only_snapshot("cache");
  const json clean = json::parse(output_of({"store", "verify", "cache", "--json"}));
  EXPECT_EQ(clean.at("damaged").size(), 0u);
  EXPECT_EQ(clean.at("bytes"), 4 * 32 * 2 * 8 * 128 * 2 * 64) << "whole pages of 64 tokens";
  // The largest file holds chunks; a byte in its middle is one of them.
  fs::path largest;
  for (const auto& entry : fs::directory_iterator(work("cache")))
    if (entry.path().extension() == ".sst" && (largest.empty() || entry.file_size() > fs::file_size(largest)))
      largest = entry.path();
  {
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(fs::file_size(largest) / 2);
    file.seekg(middle);
    const int byte = file.get();
    file.seekp(middle);
    file.put(static_cast<char>(byte ^ 4));
  }
  const Ended verified = run({"store", "verify", "cache", "--json"});
  EXPECT_EQ(verified.exit_code, 1);
  const json damaged = json::parse(verified.out).at("damaged");
  ASSERT_EQ(damaged.size(), 1u) << verified.out;
  EXPECT_EQ(damaged.at(0).at("publication"), 1);
  const std::string object = damaged.at(0).at("object");
  const Ended got = run({"store", "get", "cache", snapshot, "--to", "tp2", "--quiet"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.out, "");
  EXPECT_NE(got.err.find("nothing was activated: "), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("object '" + object + "'"), std::string::npos) << got.err;
}

TEST_F(CliStore, BytesOfARuntimeGoThroughFilesInAndOut) {
  put("cache", "tp2", "33");
  const std::string snapshot = only_snapshot("cache");
  const json manifest = json::parse(output_of({"store", "show", "cache", snapshot, "--json"}));
  // Documents of the other side, made as a runtime would.
  json descriptor = manifest.at("snapshot");
  descriptor["schema"] = "crossdock.snapshot";
  descriptor["version"] = 1;
  write("snapshot.json", descriptor.dump());
  output_of({"placement", "--config", kSmall, "--tp", "4", "-o", "-"});
  write("placement.json", output_of({"placement", "--config", kSmall, "--tp", "4"}));
  EXPECT_EQ(run({"bind", "--placement", "placement.json", "--snapshot", "snapshot.json", "--output-dir", "bindings",
                 "--shuffle", "3"})
                .exit_code,
            0);
  const std::vector<std::string> side = {"--placement", "placement.json", "--binding", "bindings"};
  const auto with_side = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), side.begin(), side.end());
    return arguments;
  };
  const Ended out = run(with_side({"store", "get", "cache", snapshot, "--data-output", "regions", "--quiet"}));
  ASSERT_EQ(out.exit_code, 0) << out.err;
  EXPECT_EQ(run({"store", "init", "second"}).exit_code, 0);
  const Ended in =
      run(with_side({"store", "put", "second", "--snapshot", "snapshot.json", "--data", "regions", "--quiet"}));
  ASSERT_EQ(in.exit_code, 0) << in.err;
  EXPECT_EQ(only_snapshot("second"), snapshot);
  // Content of the first store's seed, read out of the second one.
  const json report =
      json::parse(output_of({"store", "get", "second", snapshot, "--to", "pp2", "--verify", "full", "--json"}));
  EXPECT_EQ(report.at("wrong"), "");
  EXPECT_EQ(report.at("activated"), true);
  fs::resize_file(fs::directory_iterator(work("regions"))->path(), 10);
  EXPECT_NE(refusal_of(with_side({"store", "put", "second", "--snapshot", "snapshot.json", "--data", "regions"}))
                .find("has 10 bytes"),
            std::string::npos);
}

TEST_F(CliStore, PagesAreFoundByTheTokensOfAnyRequestThatBeginsAlike) {
  EXPECT_EQ(run({"store", "init", "cache"}).exit_code, 0);
  std::string tokens;
  for (int i = 0; i < 100; ++i) tokens += std::to_string(i * 7) + "\n";
  write("first.txt", tokens);
  write("longer.txt", tokens + "1,2,3,4,5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30");
  write("other.txt", "9\n" + tokens);
  const auto pages = [&](const std::string& command, const std::string& file, std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "store", "pages", command, "cache", "--config", kSmall, "--store-page-size", "16", "--tokens-file", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const Ended stored = pages("put", "first.txt", {"--from", "tp4", "--synthetic", "--json"});
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  EXPECT_EQ(json::parse(stored.out).at("pages"), 6);
  EXPECT_EQ(json::parse(stored.out).at("objects"), 6 * 4);
  // Another writer, sharded differently, stores the longer request: a second layout.
  const Ended longer = pages("put", "longer.txt", {"--from", "tp2", "--synthetic", "--json"});
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  const json match = json::parse(pages("match", "longer.txt", {"--to", "tp8", "--json"}).out);
  EXPECT_EQ(match.at("pages"), 8);
  EXPECT_EQ(match.at("tokens"), 128);
  EXPECT_EQ(json::parse(pages("match", "first.txt", {"--to", "tp8", "--json"}).out).at("pages"), 6);
  EXPECT_EQ(json::parse(pages("match", "other.txt", {"--to", "tp8", "--json"}).out).at("pages"), 0);
  const Ended got = pages("get", "longer.txt", {"--to", "pp2", "--verify", "full", "--json"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(json::parse(got.out).at("bytes"), 32 * 2 * 8 * 128 * 2 * 128);
  EXPECT_EQ(json::parse(got.out).at("wrong"), "");
  EXPECT_EQ(pages("get", "other.txt", {"--to", "pp2"}).exit_code, 1);
  write("bad.txt", "1 2 x");
  EXPECT_NE(pages("match", "bad.txt", {"--to", "tp8"}).err.find("'bad.txt' byte 4: not a token id"), std::string::npos);
}

// 8 heads over 16 ranks: two replicas of each head. By page both write, and what is stored is the same.
TEST_F(CliStore, ReplicasShareTheWritingOfPages) {
  const auto objects_of = [&](const std::string& store, const std::string& selection) {
    EXPECT_EQ(run({"store", "init", store}).exit_code, 0);
    const Ended stored = run({"store", "put", store, "--config", kSmall, "--from", "tp16", "--tokens", "200",
                              "--synthetic", "--selection", selection, "--record", store + "-runs", "--json"});
    EXPECT_EQ(stored.exit_code, 0) << stored.err;
    const std::string snapshot = only_snapshot(store);
    const json got =
        json::parse(output_of({"store", "get", store, snapshot, "--to", "tp4pp2", "--verify", "full", "--json"}));
    EXPECT_EQ(got.at("wrong"), "");
    EXPECT_EQ(got.at("bytes"), 32 * 2 * 8 * 128 * 2 * 200);
    return json::parse(output_of({"store", "show", store, snapshot, "--json"})).at("objects");
  };
  EXPECT_EQ(objects_of("by-page", "by-page"), objects_of("by-rank", "deterministic"));
  EXPECT_EQ(json::parse(output_of({"replay", "by-page-runs/upload.jsonl", "--json"})).at("same"), true);
  // Pages of a latent that four ranks have; the fifth page is the first replica's again.
  EXPECT_EQ(run({"store", "init", "pages"}).exit_code, 0);
  const std::string latent = kModels + "deepseek-v2-lite/config.json";
  const Ended stored = run({"store", "pages", "put", "pages", "--config", latent, "--from", "tp4", "--tokens", "330",
                            "--synthetic", "--selection", "by-page", "--json"});
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  EXPECT_EQ(json::parse(stored.out).at("pages"), 5);
  const json got = json::parse(output_of({"store", "pages", "get", "pages", "--config", latent, "--to", "tp2",
                                          "--tokens", "330", "--verify", "full", "--json"}));
  EXPECT_EQ(got.at("wrong"), "");
  EXPECT_EQ(got.at("bytes"), 2 * 27 * 576 * 2 * 320);  // both targets have the latent
}

TEST_F(CliStore, TheAxisOrderOfAPoolIsThePlacements) {
  notice_of({"placement", "--config", kSmall, "--tp", "2", "--page-size", "32", "--axis-order", "hnd", "-o", "p.json"});
  EXPECT_EQ(run({"store", "init", "cache"}).exit_code, 0);
  EXPECT_EQ(refusal_of(
                {"store", "put", "cache", "--placement", "p.json", "--tokens", "40", "--synthetic", "--layout", "nhd"}),
            "crossdock: error: --layout nhd: placement 'p' states the axis order hnd\n");
  const Ended stored =
      run({"store", "put", "cache", "--placement", "p.json", "--tokens", "40", "--synthetic", "--quiet"});
  EXPECT_EQ(stored.exit_code, 0) << stored.err;
}

// A window's first page is not whole in a runtime with pages of one token, and then no prefix can be restored.
TEST_F(CliStore, PagesThatCannotBeRestoredAreNamedWithAWayOut) {
  const std::string model = kModels + "gpt-oss-120b/config.json";
  const auto put = [&](const std::string& store, const std::vector<std::string>& more) {
    EXPECT_EQ(run({"store", "init", store}).exit_code, 0);
    std::vector<std::string> arguments = {"store",  "pages", "put",      store,  "--config",    model,
                                          "--from", "tp2",   "--tokens", "1000", "--synthetic", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return output_of(arguments);
  };
  const auto matched = [&](const std::string& store, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"store", "pages", "match",    store,  "--config", model,
                                          "--to",  "tp4",   "--tokens", "1000", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(run(arguments).out).at("tokens").get<uint64_t>();
  };
  // 960 tokens in pages of 64; rows live from token 833 on, and page 13 begins at 832.
  const std::string none = put("none", {"--page-size", "1"});
  EXPECT_NE(
      none.find(
          "from this upload alone the prefix of all pages cannot be restored: page 13 is not whole in memory, and "
          "its rows live from token 833 on. With pages of 64 tokens in memory (--page-size 64), or stored pages "
          "of 1 token (--store-page-size 1), it is\n"),
      std::string::npos)
      << none;
  EXPECT_EQ(matched("none", {}), 0u);
  const std::string pages = put("pages", {"--page-size", "64"});
  EXPECT_EQ(pages.find("cannot be restored"), std::string::npos) << pages;
  EXPECT_EQ(matched("pages", {}), 960u);
  const std::string tokens = put("tokens", {"--page-size", "1", "--store-page-size", "1"});
  EXPECT_EQ(tokens.find("cannot be restored"), std::string::npos) << tokens;
  EXPECT_EQ(matched("tokens", {"--store-page-size", "1"}), 1000u);
}

TEST_F(CliStore, AFolderThatIsNoStoreIsRefused) {
  EXPECT_NE(run({"store", "ls", "nowhere"}).err.find("no store at"), std::string::npos);
  EXPECT_EQ(run({"store", "init", "cache"}).exit_code, 0);
  const Ended again = run({"store", "init", "cache"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("it holds one already"), std::string::npos) << again.err;
  write("file", "x");
  EXPECT_EQ(run({"store", "init", "file"}).exit_code, 1);
}

}  // namespace
}  // namespace crossdock::testing
