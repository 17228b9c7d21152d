#include "cli/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "executor/recording/recorder.h"

namespace crossdock::cli {

Status RecordingFolder::make() {
  if (directory_.empty()) return Status();
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (!error) return Status();
  return Status(Code::kIo, fmt::format("cannot create the folder '{}': {}", directory_, error.message()));
}

// Written line by line while the protocol runs: a process that dies leaves a recording up to that point.
std::function<void(std::string_view)> RecordingFolder::sink(const std::string& name) {
  std::string file_name = name;
  std::replace_if(
      file_name.begin(), file_name.end(), [](char c) { return c == ' ' || c == '/'; }, '-');
  std::ofstream& file = files_[name];
  file.open(std::filesystem::path(directory_) / (file_name + ".jsonl"), std::ios::binary);
  return [&file](std::string_view line) { file << line << '\n'; };
}

std::unique_ptr<ProtocolObserver> RecordingFolder::observe_transfer(const std::string& name,
                                                                    const LocalTransferRequest& request) {
  if (directory_.empty()) return nullptr;
  const CoordinatorOptions coordinator = local_coordinator_options(request);
  if (name == "coordinator") return std::make_unique<Recorder>(sink(name), coordinator);
  // Counts as run_local_transfer() does, since the number is part of a participant's seed: a replay has to make the
  // same draws.
  uint64_t number = 0;
  for (const auto& [role, addresses] :
       {std::pair(Role::kSource, &coordinator.sources), std::pair(Role::kTarget, &coordinator.targets)})
    for (const PeerAddress& address : *addresses) {
      ++number;
      if (address.peer.text() != name) continue;
      return std::make_unique<Recorder>(sink(name), role,
                                        local_participant_options(request, address.participant, number),
                                        record_of(coordinator).value().transfer);
    }
  return nullptr;
}

std::unique_ptr<ProtocolObserver> RecordingFolder::observe(const UploadOptions& options) {
  if (directory_.empty()) return nullptr;
  return std::make_unique<Recorder>(sink("upload"), options);
}

std::unique_ptr<ProtocolObserver> RecordingFolder::observe(const RestoreOptions& options) {
  if (directory_.empty()) return nullptr;
  return std::make_unique<Recorder>(sink("restore"), options);
}

Status RecordingFolder::finish() {
  for (auto& [name, file] : files_) {
    file.close();
    if (!file) return Status(Code::kIo, fmt::format("the recording of '{}' in '{}' is incomplete", name, directory_));
  }
  return Status();
}

}  // namespace crossdock::cli
