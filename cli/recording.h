// A folder of recordings, one file NAME.jsonl per protocol.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "backends/local/local_transfer.h"
#include "base/status.h"
#include "executor/protocol.h"
#include "executor/restore.h"
#include "executor/upload.h"

namespace crossdock::cli {

class RecordingFolder {
 public:
  // Empty: nothing is recorded.
  explicit RecordingFolder(std::string directory) : directory_(std::move(directory)) {}

  Status make();
  // The observer of one protocol of a transfer: "coordinator", "source p0-t0", "target p0-t0". Null when nothing is
  // recorded.
  std::unique_ptr<ProtocolObserver> observe_transfer(const std::string& name, const LocalTransferRequest& request);
  std::unique_ptr<ProtocolObserver> observe(const UploadOptions& options);
  std::unique_ptr<ProtocolObserver> observe(const RestoreOptions& options);
  // Fails when a recording is incomplete.
  Status finish();

 private:
  std::function<void(std::string_view)> sink(const std::string& name);

  std::string directory_;
  std::map<std::string, std::ofstream> files_;  // nodes keep their address
};

}  // namespace crossdock::cli
