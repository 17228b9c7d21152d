// Shared by 'store get' and 'store pages get'.
#pragma once

#include <string>

#include "backends/store/store_core.h"
#include "cli/local_side.h"
#include "cli/store_files.h"
#include "executor/kv/kv_store.h"
#include "executor/restore.h"

namespace crossdock::cli {

class Command;

struct RestoreSettings {
  uint64_t threads = 0;
  uint64_t timeout_s = 3600;
  std::string verify = "off";
  std::string record_dir;
  bool json = false;
  bool quiet = false;
};

void add_restore_options(Command& command, RestoreSettings& settings);

// Restores `restore.what` into the side, writes its regions into `data_output` unless that is empty, checks synthetic
// content of `seed` when the settings ask for it, and prints the result. Fills in the other members.
int run_restore(const RestoreSettings& settings, StoreCore& store, LocalSide& side, KvRestore restore,
                const std::string& data_output, uint64_t seed);

}  // namespace crossdock::cli
