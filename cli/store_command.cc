#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/number_text.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/store_files.h"
#include "cli/table.h"
#include "model/text.h"
#include "model/wire/documents.h"

namespace crossdock::cli {
namespace {

struct Options {
  StoreSettings store;
  std::string snapshot;
  std::string holder;
  uint64_t publication = 0;
  uint64_t row_count_max = 50;
  bool objects = false;
  bool json = false;
  bool quiet = false;
};

// Each command opens the store, which also recovers it (StoreCore::open), does one thing, and closes it again: one
// process uses a store at a time.

std::string snapshot_text(const PublicationInfo& info) { return info.content ? info.content->hex() : "pages"; }

// Takes well under a second, so an interrupt waits for its end: there is a store afterwards, or none and no file.
int init(const Options& options) {
  const InterruptFlag interrupt;
  if (open_store(options.store, true) == nullptr) return kFailed;
  tell(fmt::format("made the store '{}'", options.store.directory));
  return kDone;
}

void encode(JsonWriter& out, const PublicationInfo& info) {
  out.begin_object();
  out.key("bytes").number(info.bytes);
  out.key("created_ns").number(static_cast<uint64_t>(info.created.ns()));
  if (info.expires) out.key("expires_ns").number(static_cast<uint64_t>(info.expires->ns()));
  out.key("leases").number(info.lease_count);
  out.key("objects").number(info.object_count);
  out.key("pins").begin_array();
  for (const std::string& pin : info.pins) out.string(printable(pin));
  out.end_array();
  out.key("publication").number(info.sequence);
  out.key("removed").boolean(info.removed);
  if (info.content) out.key("snapshot").string(info.content->hex());
  out.key("tenant").string(printable(info.tenant));
  out.end_object();
}

int list(const Options& options) {
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<std::vector<PublicationInfo>> infos = store->list();
  if (!infos.ok()) return fail_store(infos.status());
  if (options.json) {
    JsonWriter out;
    out.begin_array();
    for (const PublicationInfo& info : infos.value()) encode(out, info);
    out.end_array();
    print(out.take() + "\n");
    return kDone;
  }
  LimitedTable table({"publication", "snapshot", "tenant", "objects", "bytes", "created", "expires", "held by"},
                     options.row_count_max);
  for (const PublicationInfo& info : infos.value()) {
    std::vector<std::string> holders = info.pins;
    if (info.lease_count > 0) holders.push_back(fmt::format("{} leases", info.lease_count));
    table.add({fmt::to_string(info.sequence), snapshot_text(info).substr(0, 16), info.tenant,
               grouped(info.object_count), grouped(info.bytes), time_text(info.created),
               info.removed   ? "removed"
               : info.expires ? time_text(*info.expires)
                              : "never",
               holders.empty() ? "-" : fmt::format("{}", fmt::join(holders, ", "))});
  }
  print(table.text());
  return kDone;
}

int show(const Options& options) {
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<SnapshotId> id = find_snapshot(*store, options.snapshot);
  if (!id.ok()) return fail_store(id.status());
  const auto manifest = store->manifest(id.value());
  if (!manifest.ok()) return fail_store(manifest.status());
  if (options.json) {
    print(manifest.value().text() + "\n");
    return kDone;
  }
  const auto kv = manifest.value().as<StoreManifest>();
  if (kv == nullptr) return fail(kFailed, fmt::format("snapshot {} is not a KV cache", id.value().hex()));
  const StoreManifest& stored = **kv;
  const SnapshotDescriptor& snapshot = stored.snapshot;
  print(fmt::format("snapshot {}\nresource {} of tenant {}, model {} revision {}, tokens {}\n", id.value().hex(),
                    printable(snapshot.resource.text()), printable(snapshot.tenant), printable(snapshot.model_id),
                    printable(snapshot.model_revision), range_text(snapshot.tokens)));
  print(fmt::format("{} layers, {} objects, {} views\n", stored.cache_schema.layers().count(),
                    grouped(stored.objects.size()), grouped(stored.views.size())));
  LimitedTable table({"object", "bytes", "chunks"}, options.row_count_max);
  for (const StoredObject& object : stored.objects)
    table.add({object.id.text(), grouped(object.bytes), grouped(object.chunk_crc32c.size())});
  print(table.text());
  return kDone;
}

int verify(const Options& options) {
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const InterruptFlag interrupt;
  std::optional<Progress> progress;
  const Result<VerifyReport> checked = store->verify([&](uint64_t done_bytes, uint64_t total_bytes) {
    // The number of bytes is known with the first call only.
    if (!progress) progress.emplace("checking", total_bytes, progress_mode(options.json || options.quiet));
    progress->update(done_bytes);
    return !interrupt.is_set();
  });
  progress.reset();
  if (!checked.ok()) return fail_store(checked.status());
  const VerifyReport& report = checked.value();
  if (options.json) {
    JsonWriter out;
    out.begin_object();
    out.key("bytes").number(report.bytes);
    out.key("chunks").number(report.chunks);
    out.key("damaged").begin_array();
    for (const DamagedChunk& damaged : report.damaged) {
      out.begin_object();
      out.key("bytes").begin_array().number(damaged.bytes.begin()).number(damaged.bytes.end()).end_array();
      out.key("chunk").number(damaged.chunk);
      out.key("object").string(printable(damaged.object));
      out.key("publication").number(damaged.sequence);
      out.key("what").string(printable(damaged.what));
      out.end_object();
    }
    out.end_array();
    out.key("objects").number(report.objects);
    out.key("publications").number(report.publications);
    out.end_object();
    print(out.take() + "\n");
  } else {
    for (const DamagedChunk& damaged : report.damaged)
      print(fmt::format("publication {}: {}\n", damaged.sequence, printable(damaged.what)));
    print(fmt::format("{} of {} chunks are damaged: {} publications, {} objects, {} bytes were read\n",
                      grouped(report.damaged.size()), grouped(report.chunks), grouped(report.publications),
                      grouped(report.objects), grouped(report.bytes)));
  }
  return report.damaged.empty() ? kDone : kFailed;
}

int remove(const Options& options) {
  if (options.snapshot.empty() == (options.publication == 0))
    return fail(kBadInput, "give either SNAPSHOT or --publication N");
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  Status removed;
  if (options.publication != 0) {
    removed = store->remove_publication(options.publication);
  } else {
    const Result<SnapshotId> id = find_snapshot(*store, options.snapshot);
    removed = id.ok() ? store->remove(id.value()) : id.status();
  }
  if (!removed.ok()) return fail_store(removed);
  tell("removed");
  return kDone;
}

int gc(const Options& options) {
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<GcReport> collected = store->gc();
  if (!collected.ok()) return fail_store(collected.status());
  const GcReport& report = collected.value();
  if (options.json) {
    JsonWriter out;
    out.begin_object();
    out.key("bytes_dropped").number(report.bytes_dropped);
    out.key("leases_ended").number(report.leases_ended);
    out.key("publications_dropped").number(report.publications_dropped);
    out.key("publications_expired").number(report.publications_expired);
    out.key("segments_dropped").number(report.segments_dropped);
    out.key("transactions_aborted").number(report.transactions_aborted);
    out.end_object();
    print(out.take() + "\n");
    return kDone;
  }
  print(
      fmt::format("{} silent uploads aborted, {} leases ended, {} publications expired, {} dropped with {} bytes, {} "
                  "segments of bulk data freed\n",
                  report.transactions_aborted, report.leases_ended, report.publications_expired,
                  report.publications_dropped, grouped(report.bytes_dropped), report.segments_dropped));
  return kDone;
}

int stats(const Options& options) {
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Result<StoreStats> counted = store->stats();
  if (!counted.ok()) return fail_store(counted.status());
  const StoreStats& s = counted.value();
  const std::vector<std::pair<const char*, uint64_t>> rows = {{"bytes", s.bytes},
                                                              {"leases", s.leases},
                                                              {"objects", s.objects},
                                                              {"open_transactions", s.open_transactions},
                                                              {"page_publications", s.page_publications},
                                                              {"pins", s.pins},
                                                              {"removed", s.removed},
                                                              {"removed_bytes", s.removed_bytes},
                                                              {"segments", s.segments},
                                                              {"snapshots", s.snapshots}};
  if (options.json) {
    JsonWriter out;
    out.begin_object();
    for (const auto& [name, value] : rows) out.key(name).number(value);
    out.end_object();
    print(out.take() + "\n");
    return kDone;
  }
  Table table({"what", "count"});
  for (const auto& [name, value] : rows) table.add({name, grouped(value)});
  print(table.text());
  return kDone;
}

int pin(const Options& options, bool is_pin) {
  const std::unique_ptr<StoreCore> store = open_store(options.store);
  if (store == nullptr) return kFailed;
  const Status done =
      is_pin ? store->pin(options.publication, options.holder) : store->unpin(options.publication, options.holder);
  if (!done.ok()) return fail_store(done);
  tell(fmt::format("publication {} is {} by '{}'", options.publication, is_pin ? "pinned" : "no longer pinned",
                   options.holder));
  return kDone;
}

Command add(Command& store, const std::shared_ptr<Options>& options, const char* name, const char* help,
            const std::function<int(const Options&)>& run) {
  Command command = store.subcommand(name, help);
  add_store_options(command, options->store);
  command.action([options, run] { return run(*options); });
  return command;
}

void add_pin_command(Command& store, const std::shared_ptr<Options>& options, bool is_pin) {
  Command command = add(store, options, is_pin ? "pin" : "unpin",
                        is_pin ? "Protect a publication from removal and expiry" : "Remove a pin",
                        [is_pin](const Options& each) { return pin(each, is_pin); });
  command.number("--publication", options->publication, 1, UINT64_MAX, "Number of the publication ('store ls')")
      .required();
  command.text("--holder", options->holder, "NAME", "Holder of the pin").required();
  command.explain("", {fmt::format("crossdock store {} cache --publication 1 --holder me", is_pin ? "pin" : "unpin")});
}

}  // namespace

void add_store_command(Command& app) {
  Command store = app.subcommand("store", "Store snapshots and pages on disk, and restore them");
  store.requires_subcommand();
  const auto options = std::make_shared<Options>();
  const auto with_json = [&](Command command) {
    command.flag("--json", options->json, "Print the result as JSON");
    return command;
  };
  add(store, options, "init", "Create a store in a folder that is empty or missing", init)
      .explain("", {"crossdock store init cache"});
  add_store_put_command(store);
  add_store_get_command(store);
  add_store_pages_command(store);
  Command ls = with_json(add(store, options, "ls", "List publications: content, size, expiry and holders", list));
  ls.number("--rows", options->row_count_max, 1, UINT64_MAX, "Maximum rows of the table");
  ls.explain("", {"crossdock store ls cache", "crossdock store ls cache --json"});
  Command shown =
      with_json(add(store, options, "show", "Show a snapshot and its objects; as JSON: its manifest", show));
  shown.text("SNAPSHOT", options->snapshot, "SNAPSHOT", kSnapshotHelp).required();
  shown.number("--rows", options->row_count_max, 1, UINT64_MAX, "Maximum rows of the table");
  shown.explain("", {"crossdock store show cache 3f2a"});
  Command verified = with_json(add(store, options, "verify", "Read all data and check every checksum", verify));
  verified.flag("--quiet", options->quiet, "Do not show progress");
  verified.explain("Exit status: 0 no damage, 1 a chunk is damaged, 2 bad input.", {"crossdock store verify cache"});
  Command removed = add(store, options, "rm", "Remove a snapshot or a publication", remove);
  removed.text("SNAPSHOT", options->snapshot, "SNAPSHOT", kSnapshotHelp);
  removed.number("--publication", options->publication, 1, UINT64_MAX, "Or the number of a publication, for pages");
  removed.explain("Readers that hold a lease can finish. A pinned publication is not removed.",
                  {"crossdock store rm cache 3f2a", "crossdock store rm cache --publication 7"});
  with_json(add(store, options, "gc", "Remove expired and abandoned data, and end expired leases", gc))
      .explain("", {"crossdock store gc cache"});
  with_json(add(store, options, "stats", "Show store statistics", stats)).explain("", {"crossdock store stats cache"});
  add_pin_command(store, options, true);
  add_pin_command(store, options, false);
  store.explain(
      "A store is a folder that one process uses at a time. Snapshots become visible completely or not at all: data of "
      "an interrupted upload is removed when the store is opened.",
      {"crossdock store init cache", "crossdock store ls cache", "crossdock store verify cache"});
}

}  // namespace crossdock::cli
