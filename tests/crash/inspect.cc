#include "tests/crash/inspect.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <utility>

namespace crossdock::testing {
namespace {

class Inspector {
 public:
  Inspector(std::string directory, uint64_t seed, StoreCore& core, Inspection& seen)
      : directory_(std::move(directory)), seed_(seed), core_(core), seen_(seen) {}

  void snapshot(const std::string& name) {
    const Result<Found> found = core_.lookup(Lookup{snapshot_id(name), LeaseRequest{"reader", kLongLease}});
    if (!found.ok()) return error(name, found.status());
    read(name, found.value(), check_snapshot(core_, memory_, found.value(), name, seed_));
  }
  void page(uint64_t page) {
    const std::string name = page_object(seed_, page).id;
    const Result<Found> found =
        core_.lookup(Lookup{std::vector{page_object_key(page)}, LeaseRequest{"reader", kLongLease}});
    if (!found.ok()) return error(name, found.status());
    if (found.value().pages.empty())
      ++seen_.missing;
    else
      read(name, found.value(), check_page(core_, memory_, found.value(), 0, page, seed_));
  }
  void verify() {
    const Result<VerifyReport> report = core_.verify({});
    if (!report.ok()) return error("verify", report.status());
    seen_.damaged_chunks = report.value().damaged.size();
    for (const DamagedChunk& chunk : report.value().damaged)
      if (!names(chunk.what, chunk.object)) seen_.findings.push_back("a damaged chunk without a name: " + chunk.what);
  }

 private:
  // Whether an error says what it is about: the object, or one of the store's own parts, or the store.
  bool names(const std::string& message, const std::string& object) const {
    for (const std::string& part : {object, directory_, std::string("the store's record"), std::string("publication ")})
      if (message.find(part) != std::string::npos) return true;
    return false;
  }
  void error(const std::string& name, const Status& status) {
    if (status.code() == Code::kNotFound) {
      ++seen_.missing;
      return;
    }
    ++seen_.errors;
    if (!names(status.message(), name))
      seen_.findings.push_back(name + ": an error without a name: " + status.message());
  }
  void read(const std::string& name, const Found& found, const Status& status) {
    if (status.ok())
      ++seen_.right;
    else if (status.code() == Code::kInvalidArgument)
      seen_.findings.push_back("wrong bytes: " + status.message());
    else
      error(name, status);
    if (const Status released = core_.release(found.lease); !released.ok()) error(name, released);
  }

  const std::string directory_;
  const uint64_t seed_;
  StoreCore& core_;
  Inspection& seen_;
  MemoryRegistry memory_;
};

}  // namespace

std::string to_line(const Inspection& inspection) {
  return fmt::format("inspection {} {} {} {} {}\n", inspection.not_opened, inspection.right, inspection.missing,
                     inspection.errors, inspection.damaged_chunks);
}

std::optional<Inspection> inspection_from(const std::string& line) {
  std::istringstream in(line);
  std::string word;
  Inspection seen;
  in >> word >> seen.not_opened >> seen.right >> seen.missing >> seen.errors >> seen.damaged_chunks;
  if (!in || word != "inspection") return std::nullopt;
  return seen;
}

Inspection inspect_store(const std::string& directory, uint64_t seed, uint32_t thread_count) {
  Inspection seen;
  StoreOptions options = small_options();
  options.clock = [] { return begin_of_run(1) + kShortIsOver; };
  RocksDbOptions tables;
  tables.directory = directory;
  const Result<OpenStore> store = open_store(tables, options);
  if (!store.ok()) {
    seen.not_opened = 1;
    const std::string message = store.status().message();
    if (message.find(directory) == std::string::npos && message.find("the store's record") == std::string::npos)
      seen.findings.push_back("it is not opened, and the error does not name the store: " + message);
    return seen;
  }
  Inspector inspector(directory, seed, *store.value().core, seen);
  for (uint32_t thread = 0; thread < thread_count; ++thread) {
    for (uint32_t number = 0; number < kSnapshotsPerThread; ++number) inspector.snapshot(snapshot_name(thread, number));
    for (uint32_t number = 0; number < kPagesPerThread; ++number) inspector.page(page_number(thread, number));
  }
  inspector.verify();
  return seen;
}

}  // namespace crossdock::testing
