// Shared by the store commands: opening a store, and the participants of an upload or a restore.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/store/store_core.h"
#include "cli/local_side.h"
#include "cli/model_source.h"
#include "model/wire/json_writer.h"

namespace crossdock::cli {

class Command;

struct StoreSettings {
  std::string directory;
  uint64_t quota_bytes = 0;    // 0: none
  uint64_t staging_bytes = 0;  // 0: the default
};

// Prints an error and returns null when the store cannot be opened or created.
std::unique_ptr<StoreCore> open_store(const StoreSettings& settings, bool create = false);

// Adds DIR, which is required.
void add_store_options(Command& command, StoreSettings& settings);

// Prints the error; kInvalidArgument and kNotFound are bad input, every other code is a failure.
int fail_store(const Status& status);

// The participants of one side: who they are, and where their bytes come from.
struct SideOptions {
  std::string placement;              // a file, or
  ModelSource model;                  // a model and
  std::string spec;                   // a parallel layout
  std::string snapshot;               // a file, or
  uint64_t tokens = 0;                // the first tokens of a synthetic one
  std::vector<std::string> bindings;  // files, with
  std::string data;                   // a folder of what their regions hold; or synthetic ones:
  uint64_t page_tokens = 0;           // 0: the placement's, or kUsualPageTokens
  bool whole_pages = false;           // a window's rows begin at their page, as engines keep them
  std::string axis_order;             // empty: the placement's, or nhd
  bool in_order = false;
  uint64_t shuffle = 1;
  uint64_t seed = 1;
  std::vector<std::string> participants;
};

// --placement or --config with `spec_name`, --binding with `data_name`, --page-size, --layout, ...; without a
// `data_name` only the placement's.
void add_side_options(Command& command, SideOptions& options, const std::string& spec_name,
                      const std::string& data_name, const std::string& data_help);

// Loads or makes the placement. `schema` is the cache schema of a stored snapshot and replaces --config. Prints an
// error and returns null on failure.
std::shared_ptr<const Valid<PlacementManifest>> load_placement(const SideOptions& options, const std::string& name,
                                                               const CacheSchema* schema);
// Bindings from files, or synthetic ones; and memory for them. As make_local_side().
std::optional<LocalSide> load_side(const SideOptions& options,
                                   const std::shared_ptr<const Valid<PlacementManifest>>& placement,
                                   const std::shared_ptr<const Valid<SnapshotDescriptor>>& snapshot, int& exit_code);

// The file of a region in a folder: INSTANCE~REGION.bin, with special bytes written as %XX.
std::string region_file(const std::string& directory, const RegionKey& key);
// Read each region from its file, which must have exactly the size of the region; write each region to its file.
Status read_regions(const std::string& directory, const LocalSide& side);
Status write_regions(const std::string& directory, const LocalSide& side);

// "2026-11-29 23:10:02Z"
std::string time_text(TimePoint since_1970);

// For the help of SNAPSHOT.
inline constexpr const char* kSnapshotHelp = "Identity of the snapshot, or its first hexadecimal digits";

// The snapshot whose identity begins with these hexadecimal digits. kNotFound when none does, kInvalidArgument when
// several do.
Result<SnapshotId> find_snapshot(const StoreCore& store, const std::string& prefix);

void add_store_put_command(Command& store);
void add_store_get_command(Command& store);
void add_store_pages_command(Command& store);

}  // namespace crossdock::cli
