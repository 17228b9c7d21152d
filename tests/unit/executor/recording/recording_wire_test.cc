// The parts of a recording in JSON: each completion and message is read back as it was, with odd values too, and what a
// stranger may have written is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "executor/recording/completion_json.h"
#include "executor/recording/post_json.h"
#include "executor/recording/recorder.h"
#include "executor/recording/values_json.h"
#include "tests/support/recorded_runs.h"

namespace crossdock::testing {
namespace {

using nlohmann::json;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
const std::string kOdd = "\" \\ \n \x01 \xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xae";  // of several planes and controls
const std::string kNotUtf8 = "disk \xff\xfe\x80 gone";

std::string text_of(const Completion& completion, DocumentNamer& namer) {
  JsonWriter out;
  form::completion_with(namer).write(out, completion);
  return out.take();
}

// Reads with the documents of these lines.
std::optional<Completion> read(const std::string& text, const std::vector<std::string>& lines, std::string& why) {
  KnownDocuments documents;
  const JsonPath path;
  for (const std::string& line : lines) {
    Diagnostics diagnostics;
    const std::optional<JsonTree> tree = JsonTree::parse(line, JsonLimits(), diagnostics);
    const JsonCursor cursor{tree->root(), path, diagnostics};
    ObjectReader in(cursor);
    EXPECT_TRUE(documents.add(in, cursor)) << diagnostic_lines(diagnostics);
  }
  Diagnostics diagnostics;
  const std::optional<JsonTree> tree = JsonTree::parse(text, JsonLimits(), diagnostics);
  if (!tree) {
    why = diagnostic_lines(diagnostics);
    return std::nullopt;
  }
  Completion completion;
  form::completion_with(documents).read(JsonCursor{tree->root(), path, diagnostics}, completion);
  why = diagnostic_lines(diagnostics) + documents.missing();
  if (!why.empty()) return std::nullopt;
  return completion;
}

// What is read back, which has the same text.
Completion there_and_back(const Completion& completion) {
  DocumentNamer namer;
  const std::string text = text_of(completion, namer);
  std::string why;
  const std::optional<Completion> again = read(text, namer.take_lines(), why);
  EXPECT_TRUE(again) << text << "\n" << why;
  if (!again) return Completion();
  DocumentNamer other;
  EXPECT_EQ(text_of(*again, other), text);
  EXPECT_EQ(again->op, completion.op);
  EXPECT_EQ(again->status, completion.status);
  EXPECT_EQ(again->posted, completion.posted);
  EXPECT_EQ(again->result.index(), completion.result.index());
  return *again;
}

template <class Value>
Value value_back(const Value& value) {
  const Completion again = there_and_back(Completion{OpId(kMost), Status(), value, true});
  const Value* back = std::get_if<Value>(&again.result);
  EXPECT_NE(back, nullptr);
  return back == nullptr ? Value() : *back;
}

Message message_back(MessageBody body) {
  const Message message{OperationId(kOdd), AttemptId(kNotUtf8),
                        PeerIdentity{ParticipantId(kOdd), InstanceId(kNotUtf8), kMost}, std::move(body)};
  Message again = value_back(message);
  EXPECT_EQ(again.operation, message.operation);
  EXPECT_EQ(again.attempt, message.attempt);
  EXPECT_EQ(again.identity, message.identity);
  return again;
}

const StoredObject kObject{RegionId(kOdd), kMost, 0, {0, 1, std::numeric_limits<uint32_t>::max()}};
const PageObjectKey kPage{PageKey(sha256("page")), sha256("layout"), ObjectKey(kNotUtf8), PageObject::kState};

TEST(RecordingWire, EachStatusIsReadBack) {
  there_and_back(Completion{OpId(0), Status(), std::monostate(), true});
  for (int code = 1; code <= static_cast<int>(Code::kDataLoss); ++code)
    for (const std::string& message : {std::string(), kOdd, kNotUtf8, std::string("a\0b", 3)})
      for (const bool posted : {false, true})
        there_and_back(Completion{OpId(kMost), Status(static_cast<Code>(code), message), std::monostate(), posted});
}

TEST(RecordingWire, EachResultIsReadBack) {
  for (const auto& stored : {std::optional<StoredObject>(), std::optional(kObject)}) {
    const PutReceipt receipt{TxnId(kOdd), RegionId(kNotUtf8), "", kMost, stored};
    EXPECT_EQ(value_back(receipt), receipt);
  }
  for (const TxnPhase phase : {TxnPhase::kOpen, TxnPhase::kCommitted, TxnPhase::kAborted})
    for (const auto& sequence : {std::optional<uint64_t>(), std::optional(kMost)}) {
      const TxnState state{TxnId(), phase, kOdd, sequence};
      EXPECT_EQ(value_back(state), state);
    }
  const GetReport report{kMost, 1, kMost - 1};
  EXPECT_EQ(value_back(report), report);
  EXPECT_EQ(value_back(StepsChecksum{0xffffffff}), StepsChecksum{0xffffffff});
  EXPECT_EQ(value_back(Grant{GrantId(kNotUtf8), "key"}), (Grant{GrantId(kNotUtf8), ""}));
}

TEST(RecordingWire, WhatWasFoundIsReadBack) {
  for (const int64_t end : {std::numeric_limits<int64_t>::min(), int64_t{-1}, std::numeric_limits<int64_t>::max()})
    for (const bool has_manifest : {false, true}) {
      Found found;
      found.lease = LeaseId(kMost);
      found.lease_end = TimePoint::from_ns(end);
      if (has_manifest) found.manifest = std::make_shared<const Valid<StoreManifest>>(example_store_manifest());
      found.objects = {FoundObject{kObject, ObjectNumber(kMost)}, FoundObject{}};
      found.pages = {kPage, PageObjectKey{PageKey(Sha256Digest()), Sha256Digest(), ObjectKey()}};
      const Found again = value_back(found);
      EXPECT_EQ(again.lease, found.lease);
      EXPECT_EQ(again.lease_end, found.lease_end);
      EXPECT_EQ(!(again.manifest == nullptr), has_manifest);
      if (has_manifest) {
        EXPECT_EQ(again.manifest.text(), found.manifest.text());
      }
      EXPECT_EQ(again.objects, found.objects);
      EXPECT_EQ(again.pages, found.pages);
    }
}

TEST(RecordingWire, BindingsAreReadBackByTheirDigest) {
  const auto binding = std::make_shared<const Valid<RuntimeBinding>>(example_binding());
  EXPECT_EQ(value_back(AnyBinding(binding)), AnyBinding(binding));
  EXPECT_TRUE(value_back(AnyBinding()) == nullptr);
}

TEST(RecordingWire, EachMessageIsReadBack) {
  const auto binding = std::make_shared<const Valid<RuntimeBinding>>(example_binding());
  for (const Role role : {Role::kSource, Role::kTarget}) {
    const auto exported = std::get<ExportBody>(message_back(ExportBody{role, binding}).body);
    EXPECT_EQ(exported.role, role);
    EXPECT_EQ(exported.binding, AnyBinding(binding));
    EXPECT_TRUE(std::get<ExportBody>(message_back(ExportBody{role, AnyBinding()}).body).binding == nullptr);
    const Status cause(Code::kQuota, kNotUtf8);
    for (const bool waited : {false, true}) {
      const auto failure = std::get<FailureBody>(message_back(FailureBody{role, cause, waited}).body);
      EXPECT_EQ(failure.role, role);
      EXPECT_EQ(failure.cause, cause);
      EXPECT_EQ(failure.waited, waited);
    }
    EXPECT_TRUE(std::get<FailureBody>(message_back(FailureBody{role, Status(), false}).body).cause.ok());
    for (const PagesEnd pages : {PagesEnd::kNone, PagesEnd::kReleased, PagesEnd::kActive, PagesEnd::kQuarantined}) {
      const DoneBody done{role, pages};
      EXPECT_EQ(std::get<DoneBody>(message_back(done).body), done);
      const auto known = std::get<KnownBody>(
          message_back(KnownBody{role, true, DecisionBody{true, kOdd, PeerId(kOdd)}, done, cause}).body);
      EXPECT_TRUE(known.role == role && known.is_decided && known.decision.activate);
      EXPECT_EQ(known.decision.reason, kOdd);
      EXPECT_EQ(known.done, done);
      EXPECT_EQ(known.failure, cause);
    }
    const auto known = std::get<KnownBody>(message_back(KnownBody{role, false, {}, {}, {}}).body);
    EXPECT_FALSE(known.is_decided || known.done || known.failure);
    const auto ack = std::get<AckBody>(
        message_back(AckBody{role, kNotUtf8, PeerIdentity{ParticipantId(kOdd), InstanceId(), 1}}).body);
    EXPECT_TRUE(ack.role == role && ack.kind == kNotUtf8 && ack.sender.participant == ParticipantId(kOdd));
  }
  EXPECT_EQ(std::get<QueryBody>(message_back(QueryBody{PeerId(kOdd)}).body).reply_to, PeerId(kOdd));
  const PeerIdentity writer{ParticipantId(kOdd), InstanceId(), kMost};
  const auto grant =
      std::get<GrantBody>(message_back(GrantBody{sha256("job"), writer, Grant{GrantId(kOdd), "key"}}).body);
  EXPECT_TRUE(grant.job == sha256("job") && grant.writer == writer && grant.grant.id == GrantId(kOdd));
  EXPECT_EQ(grant.grant.opaque, "") << "a right is not written into a recording";
  const WriterReceipt receipt{sha256("job"), PeerIdentity{ParticipantId(), InstanceId(kOdd), 0}, kMost, 0xffffffff};
  EXPECT_EQ(std::get<WriterReceipt>(message_back(receipt).body), receipt);
  const auto ready = std::get<ReadyBody>(message_back(ReadyBody{sha256("job"), kMost}).body);
  EXPECT_TRUE(ready.job == sha256("job") && ready.bytes == kMost);
  const auto decision = std::get<DecisionBody>(message_back(DecisionBody{false, kNotUtf8}).body);
  EXPECT_TRUE(!decision.activate && decision.reason == kNotUtf8);
}

TEST(RecordingWire, AStepsDigestIsOfItsRegionsAndSteps) {
  auto work = std::make_shared<CopyWork>();
  work->source_regions = {RegionKey{InstanceId("a"), RegionId("k"), 16, 3}};
  work->target_regions = {RegionKey{InstanceId("b"), RegionId("v"), std::nullopt, kMost}};
  CopyStep step{0, 0, 8, 9, 4, {}, 0};
  work->steps = {step};
  step.push_axis({2, 64, 128});
  step.push_axis({3, 4, 8});
  work->steps.push_back(step);
  EXPECT_EQ(steps_digest(StepSpan(work)),
            sha256(R"({"source_regions":[{"address":16,"epoch":3,"owner":"a","region":"k"}],)"
                   R"("steps":[[0,0,8,9,4,[]],[0,0,8,9,4,[[2,64,128],[3,4,8]]]],)"
                   R"("target_regions":[{"epoch":18446744073709551615,"owner":"b","region":"v"}]})"));
  EXPECT_NE(steps_digest(StepSpan(work, 0, 1)), steps_digest(StepSpan(work, 1, 2)));
  EXPECT_EQ(steps_digest(StepSpan()), sha256(R"({"source_regions":[],"steps":[],"target_regions":[]})"));
}

// Each is one completion that no recorder writes.
TEST(RecordingWire, WhatIsNoCompletionIsRefused) {
  const std::string good = R"({"op":1,"posted":true,"status":{"code":"ok"}})";
  std::string why;
  ASSERT_TRUE(read(good, {}, why)) << why;
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"([])", "must be an object"},
      {R"({"op":-1,"posted":true,"status":{"code":"ok"}})", "-1 is not an integer"},
      {R"({"op":1e30,"posted":true,"status":{"code":"ok"}})", "is not an integer"},
      {R"({"op":18446744073709551616,"posted":true,"status":{"code":"ok"}})", "is not an integer"},
      {R"({"op":1,"posted":1,"status":{"code":"ok"}})", "must be a boolean"},
      {R"({"op":1,"posted":true})", "field 'status' is missing"},
      {R"({"op":1,"posted":true,"status":{"code":"fine"}})", "'fine' is not one of ok,"},
      {R"({"op":1,"posted":true,"status":{"code":"ok","message":""}})", "'message' is unknown"},
      {R"({"op":1,"posted":true,"status":{"code":"conflict"}})", "'message' is missing"},
      {R"({"op":1,"posted":true,"status":{"code":"conflict","message":{"hex":"61"}}})", "not UTF-8"},
      {R"({"op":1,"posted":true,"status":{"code":"conflict","message":{"hex":"FF"}}})", "lower-case"},
      {R"({"op":1,"posted":true,"status":{"code":"conflict","message":{"hex":"f"}}})", "lower-case"},
      {R"({"op":1,"posted":true,"status":{"code":"ok"},"extra":0})", "'extra' is unknown"},
      {R"({"op":1,"posted":true,"status":{"code":"ok"},"result":{"kind":"nothing"}})", "is not one of receipt"},
      {R"({"op":1,"posted":true,"status":{"code":"ok"},"result":{"kind":"checksum","crc32c":4294967296}})",
       "4294967296 is not"},
      {R"({"op":1,"posted":true,"status":{"code":"ok"},"result":{"kind":"binding","binding":"00"}})", "hexadecimal"},
      {R"({"op":1,"posted":true,"status":{"code":"ok"},"result":{"kind":"binding","binding":")" + std::string(64, '0') +
           "\"}}",
       "no line before it has the crossdock.binding 0000"},
      {R"({"op":1,"posted":true,"status":{"code":"ok"},"result":{"kind":"message","message":{"operation":"o",)"
       R"("identity":{"generation":0,"instance":"","participant":""},"body":{"kind":"job","job":")" +
           std::string(64, '0') + "\"}}}}",
       "no line before it has the crossdock.transfer_job 0000"},
  };
  for (const auto& [text, expected] : bad) {
    EXPECT_FALSE(read(text, {}, why)) << text;
    EXPECT_NE(why.find(expected), std::string::npos) << text << "\n" << why;
  }
}

std::string refusal_of(const std::string& text) {
  const Result<ReplayReport> report = replay(text);
  return report.ok() ? "" : report.status().message();
}

const std::string& writer_recording() { return recording_of("source/p0-t0"); }

// The writer's recording with another header.
std::string with_header(const std::function<void(json&)>& change) {
  const std::string& text = writer_recording();
  const size_t end = text.find('\n');
  json header = json::parse(text.substr(0, end));
  change(header);
  return header.dump() + text.substr(end);
}

TEST(ReplayInput, AHeaderThatIsNoneIsRefused) {
  EXPECT_EQ(refusal_of(with_header([](json&) {})), "");
  const std::vector<std::pair<std::function<void(json&)>, std::string>> bad = {
      {[](json& header) { header["schema"] = "crossdock.binding"; }, "line 1 schema: 'crossdock.binding'"},
      {[](json& header) { header["schema"] = "crossdock.recording"; },
       "line 1: this is a 'crossdock.recording', and this program replays 'crossdock.recording.2' alone; record it "
       "again"},
      {[](json& header) { header["version"] = 2; }, "version 2"},
      {[](json& header) { header["protocol"] = "reader"; }, "line 1: there is no protocol 'reader'"},
      {[](json& header) { header.erase("options"); }, "field 'options' is missing"},
      {[](json& header) { header["options"] = 7; }, "must be an object"},
      {[](json& header) { header["protocol"] = "upload"; }, "line 1 options: field 'lease_ns' is missing"},
      {[](json& header) { header["options"].erase("seed"); }, "line 1 options: field 'seed' is missing"},
      {[](json& header) { header["options"]["window"]["bytes_max"] = 0; }, "line 1 options.window.bytes_max: 0"},
      {[](json& header) { header["options"]["batch"]["step_count_max"] = 0; }, "0 is below 1"},
      {[](json& header) { header["options"]["split"]["bytes_max"] = 0; }, "0 is below 1"},
      {[](json& header) { header["options"]["timeout_ns"] = 9223372036854775808u; }, "64 bits with a sign"},
      {[](json& header) { header["options"]["timeout_ns"] = -1e300; }, "64 bits with a sign"},
      {[](json& header) { header["options"]["timeout_ns"] = "0"; }, "must be an integer"},
      {[](json& header) { header["options"]["job"]["documents"]["source"] = std::string(64, 'a'); },
       "no line before it has the crossdock.placement aaaa"},
      {[](json& header) {
         auto& documents = header["options"]["job"]["documents"];
         std::swap(documents["source"], documents["snapshot"]);
       },
       "no line before it has the crossdock.snapshot"},
  };
  for (const auto& [change, expected] : bad) {
    const std::string refusal = refusal_of(with_header(change));
    EXPECT_NE(refusal.find(expected), std::string::npos) << expected << "\n" << refusal;
    EXPECT_NE(refusal.find("line "), std::string::npos) << refusal;
  }
}

TEST(ReplayInput, OnlyWhoeverCanBeAskedToAbortIsAsked) {
  std::string text = writer_recording();
  text.insert(text.find("{\"completions\"") + 1, "\"abort\":\"why\",");
  EXPECT_NE(refusal_of(text).find("a writer cannot be asked to abort"), std::string::npos) << refusal_of(text);
}

TEST(ReplayInput, LinesThatAreNoneAreRefused) {
  const std::string& text = writer_recording();
  const std::string header = text.substr(0, text.find('\n') + 1);
  const std::vector<std::string> bad = {
      "",
      "null",
      "[]",
      "{}",
      "{\"round\":1}",
      "{\"document\":1}",
      "{\"document\":\"" + std::string(64, '0') + "\",\"kind\":\"crossdock.plan\",\"text\":{}}",
      "{\"document\":\"" + std::string(64, '0') + "\",\"kind\":\"crossdock.binding\",\"text\":{}}",
      "{\"document\":\"" + std::string(64, '0') +
          "\",\"kind\":\"crossdock.snapshot\",\"text\":" + to_json(example_snapshot()) + "}",
      "{\"document\":\"" + digest(example_snapshot()).hex() +
          "\",\"kind\":\"crossdock.binding\",\"text\":" + to_json(example_snapshot()) + "}",
      std::string(100'000, '['),
      "{\"round\":" + std::string(1000, '9') + "}",
      std::string("\xff\xfe"),
      std::string(1, '\0'),
  };
  for (const std::string& line : bad) {
    const std::string refusal = refusal_of(header + line + "\n");
    EXPECT_NE(refusal.find("line "), std::string::npos) << line.substr(0, 100) << "\n" << refusal;
    EXPECT_LT(refusal.size(), 1000u);
  }
  EXPECT_EQ(refusal_of(header), "") << "the documents of its options may stand in lines that are cut off";
  EXPECT_NE(refusal_of(header + header).find("line 2"), std::string::npos);
}

// Limits of the recorded protocol do not decide what a replay takes.
TEST(ReplayInput, TheLimitsOfAReplayAreItsOwn) {
  ReplayLimits limits;
  limits.lower.step_count_max = 1;
  const Result<ReplayReport> report = replay(writer_recording(), limits);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("cannot be made again"), std::string::npos) << report.status().message();
  EXPECT_NE(report.status().message().find("[plan-limit]"), std::string::npos) << report.status().message();
  limits = ReplayLimits();
  limits.line.bytes_max = 100;
  EXPECT_FALSE(replay(writer_recording(), limits).ok());
}

}  // namespace
}  // namespace crossdock::testing
