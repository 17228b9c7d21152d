#include "cli/store_files.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "backends/rocksdb/rocksdb_tables.h"
#include "cli/command_line.h"
#include "cli/documents.h"
#include "cli/file_names.h"
#include "cli/output.h"
#include "executor/transfer_job.h"
#include "model/kv/binding_rules.h"
#include "model/wire/documents.h"

namespace crossdock::cli {

std::unique_ptr<StoreCore> open_store(const StoreSettings& settings, bool create) {
  RocksDbOptions tables_options;
  tables_options.directory = settings.directory;
  tables_options.create = create;
  Result<RocksDbTables> tables = open_rocksdb_tables(tables_options);
  if (!tables.ok()) {
    fail(tables.status().code() == Code::kNotFound ? kBadInput : kFailed, tables.status().message());
    return nullptr;
  }
  StoreOptions options;
  if (settings.quota_bytes != 0) options.quota_bytes = settings.quota_bytes;
  if (settings.staging_bytes != 0) options.staging_bytes = settings.staging_bytes;
  Result<std::unique_ptr<StoreCore>> store =
      StoreCore::open(std::move(tables.value().records), std::move(tables.value().chunks), std::move(options));
  if (store.ok()) return std::move(store).value();
  fail(kFailed, fmt::format("store '{}': {}", settings.directory, store.status().message()));
  return nullptr;
}

void add_store_options(Command& command, StoreSettings& settings) {
  command.text("DIR", settings.directory, "DIR", "Folder of the store").required();
}

int fail_store(const Status& status) {
  const bool is_input = status.code() == Code::kInvalidArgument || status.code() == Code::kNotFound;
  return fail(is_input ? kBadInput : kFailed, status.message());
}

void add_side_options(Command& command, SideOptions& options, const std::string& spec_name,
                      const std::string& data_name, const std::string& data_help) {
  command.text("--placement", options.placement, "FILE", "Placement of the participants");
  command.text(spec_name, options.spec, "SPEC", "Or a parallel layout, for example tp8 or tp4pp2");
  if (data_name.empty()) return;
  command.texts("--binding", options.bindings, "FILE", "Bindings of the participants, or a folder of them");
  command.text(data_name, options.data, "DIR", data_help);
  command.texts("--participant", options.participants, "NAME", "Only these participants");
  command.number(
      "--page-size", options.page_tokens, 1, uint64_t{1} << 32,
      fmt::format("Without --binding: tokens of a page in memory (default: the placement's, or {})", kUsualPageTokens));
  command
      .text("--layout", options.axis_order, "ORDER",
            "Without --binding: axes of a page, nhd or hnd (default: the placement's, or nhd)")
      .one_of({"nhd", "hnd"});
  command.number("--shuffle", options.shuffle, 0, UINT64_MAX,
                 "Without --binding: put pages into random slots of the pool, drawn from this seed");
  command.flag("--in-order", options.in_order, "Without --binding: put pages into the slots in order");
  command.number("--seed", options.seed, 0, UINT64_MAX, "Seed of synthetic content");
}

std::shared_ptr<const Valid<PlacementManifest>> load_placement(const SideOptions& options, const std::string& name,
                                                               const CacheSchema* schema) {
  if (options.placement.empty() == options.spec.empty()) {
    fail(kBadInput, "give either --placement FILE or a parallel layout like tp8");
    return nullptr;
  }
  if (!options.placement.empty()) {
    std::optional<Valid<PlacementManifest>> placement = load_or_fail<PlacementManifest>(options.placement);
    if (!placement) return nullptr;
    return std::make_shared<const Valid<PlacementManifest>>(std::move(*placement));
  }
  const Result<ParallelSpec> spec = parse_parallel_spec(options.spec);
  if (!spec.ok()) {
    fail(kBadInput, fmt::format("'{}': {}", options.spec, spec.status().message()));
    return nullptr;
  }
  if (schema != nullptr) {
    Diagnostics diagnostics;
    const std::optional<Valid<CacheSchema>> valid = Valid<CacheSchema>::make(*schema, diagnostics);
    CHECK(valid.has_value());  // it is part of a valid document
    return place(*valid, schema->layers().hull().end(), Engine::kVllm, spec.value(), name);
  }
  const std::optional<Model> model = load_model(options.model);
  return model ? place(model->cache_schema, model->layer_count, model->engine, spec.value(), name) : nullptr;
}

namespace {

// Bindings are checked against placement and snapshot before memory is made for them: their sizes come from a file.
std::optional<LocalSide> load_bindings(const SideOptions& options,
                                       const std::shared_ptr<const Valid<PlacementManifest>>& placement,
                                       const Valid<SnapshotDescriptor>& snapshot, int& exit_code) {
  exit_code = kBadInput;
  std::vector<std::string> files;
  if (!list_documents(options.bindings, files)) return std::nullopt;
  LocalSide side{placement, {}, RegionMemory()};
  const BindingContext context(*placement, &snapshot);
  for (const std::string& path : files) {
    std::optional<Valid<RuntimeBinding>> binding = load_or_fail<RuntimeBinding>(path);
    if (!binding) return std::nullopt;
    Diagnostics diagnostics;
    check_binding(*binding, context, diagnostics);
    if (!diagnostics.empty()) {
      fail(path, diagnostics);
      return std::nullopt;
    }
    if (const Status added = side.memory.add(**binding); !added.ok()) {
      exit_code = fail(kFailed, added.message());
      return std::nullopt;
    }
    side.bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(std::move(*binding)));
  }
  return side;
}

}  // namespace

std::optional<LocalSide> load_side(const SideOptions& options,
                                   const std::shared_ptr<const Valid<PlacementManifest>>& placement,
                                   const std::shared_ptr<const Valid<SnapshotDescriptor>>& snapshot, int& exit_code) {
  if (!options.bindings.empty()) return load_bindings(options, placement, *snapshot, exit_code);
  LocalSideRequest request{placement, snapshot, PoolRequest(), {}, available_memory_bytes()};
  request.pool.operation = OperationId("store");
  if (!set_paging(**placement, options.page_tokens, "--layout", options.axis_order, request.pool)) {
    exit_code = kBadInput;
    return std::nullopt;
  }
  request.pool.whole_pages = options.whole_pages;
  if (!options.in_order) request.pool.shuffle_seed = options.shuffle;
  for (const std::string& participant : options.participants) {
    request.participants.emplace_back(participant);
    if ((*placement)->find_part(request.participants.back()) != nullptr) continue;
    exit_code = fail(kBadInput, fmt::format("placement '{}' has no participant '{}'", (*placement)->name, participant));
    return std::nullopt;
  }
  return make_local_side(request, exit_code);
}

std::string region_file(const std::string& directory, const RegionKey& key) {
  const std::string address = key.address ? fmt::format("~{:x}", *key.address) : "";
  return (std::filesystem::path(directory) /
          fmt::format("{}~{}{}.bin", escaped_name(key.owner.text()), escaped_name(key.id.text()), address))
      .string();
}

Status read_regions(const std::string& directory, const LocalSide& side) {
  for (const auto& [key, mapping] : side.memory.regions()) {
    const std::string path = region_file(directory, key);
    const std::span<std::byte> bytes = side.memory.find(key);
    std::ifstream file(path, std::ios::binary);
    if (!file) return Status(Code::kNotFound, fmt::format("cannot open '{}' for region {}", path, key.to_text()));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const auto count = static_cast<uint64_t>(file.gcount());
    // Longer files are refused too: a file of another size is one of another region.
    if (count != bytes.size() || file.peek() != std::ifstream::traits_type::eof())
      return Status(Code::kInvalidArgument,
                    fmt::format("'{}' has {} bytes, region {} has {}", path,
                                count < bytes.size() ? std::to_string(count) : "more", key.to_text(), bytes.size()));
  }
  return Status();
}

// Not atomic as a folder: an error leaves the files that were written before.
Status write_regions(const std::string& directory, const LocalSide& side) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status(Code::kIo, fmt::format("cannot create the folder '{}': {}", directory, error.message()));
  for (const auto& [key, mapping] : side.memory.regions()) {
    const std::string path = region_file(directory, key);
    const std::span<const std::byte> bytes = side.memory.find(key);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return Status(Code::kIo, fmt::format("cannot write '{}'", path));
  }
  return Status();
}

std::string time_text(TimePoint since_1970) {
  return fmt::format("{:%Y-%m-%d %H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(since_1970.ns() / 1'000'000'000)));
}

Result<SnapshotId> find_snapshot(const StoreCore& store, const std::string& prefix) {
  TRY(const std::vector<PublicationInfo> infos, store.list());
  std::optional<SnapshotId> found;
  for (const PublicationInfo& info : infos) {
    if (info.removed || !info.content || !info.content->hex().starts_with(prefix)) continue;
    if (found) return Status(Code::kInvalidArgument, fmt::format("more than one snapshot begins with '{}'", prefix));
    found = info.content;
  }
  if (found) return *found;
  return Status(Code::kNotFound, fmt::format("no snapshot of the store begins with '{}'", prefix));
}

}  // namespace crossdock::cli
