// Runs of each protocol in a StepWorld, recorded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/store/store_core.h"
#include "executor/recording/recorder.h"
#include "tests/support/small_transfer.h"

namespace crossdock::testing {

// Another protocol, of which a recorder sees everything.
class RecordingProtocol : public Protocol {
 public:
  RecordingProtocol(Protocol& inner, std::unique_ptr<Recorder> recorder)
      : inner_(inner), recorder_(std::move(recorder)) {}

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override {
    inner_.advance(now, completions, posts);
    recorder_->advanced(now, completions, posts, inner_);
  }
  TimePoint wake_at() const override { return inner_.wake_at(); }
  bool finished() const override { return inner_.finished(); }
  std::string state() const override { return inner_.state(); }

 private:
  Protocol& inner_;
  std::unique_ptr<Recorder> recorder_;
};

// How a run goes. The same schedule gives the same recordings.
struct Schedule {
  std::vector<ScheduledDeviation> deviations = {};
  uint64_t chaos = 0;
  uint64_t seed = 1;
  std::optional<size_t> abort_before_step = {};  // the coordinator, upload or restore is asked to abort

  std::string to_text() const;
};

struct RecordedRun {
  std::string name;
  std::string text;
};

struct RecordedRuns {
  std::vector<RecordedRun> runs;
  size_t step_count = 0;
};

// Of each participant and the coordinator.
RecordedRuns record_transfer(const Schedule& schedule);

// A snapshot that has been uploaded to a store in memory, and its pages.
class RecordedStore {
 public:
  RecordedStore();

  RecordedRuns record_upload(const Schedule& schedule, bool pages);
  // Of what was uploaded by a plain run before.
  RecordedRuns record_restore(const Schedule& schedule, bool pages);

 private:
  UploadOptions upload_options(const std::string& txn, bool pages) const;
  RestoreOptions restore_options(bool pages) const;

  Valid<CacheSchema> schema_;
  std::shared_ptr<const Valid<SnapshotDescriptor>> snapshot_;
  SmallSide source_;
  SmallSide target_;
  std::shared_ptr<const Valid<StoreLayout>> layout_;
  std::vector<PageKey> page_keys_;
  std::unique_ptr<StoreCore> store_;
  uint64_t upload_count_ = 0;
};

// Plain runs of all protocols: writer, target, coordinator, upload, restore, and those of pages.
const std::vector<RecordedRun>& plain_recordings();
// The text of the one with this name, or a test failure.
const std::string& recording_of(std::string_view name);

// The lines of a recording, without their ends, and back.
std::vector<std::string> recording_lines(const std::string& text);
std::string recording_text(const std::vector<std::string>& lines);
bool is_round(const std::string& line);

}  // namespace crossdock::testing
