// Random documents through uploads, a store and restores: what was put by any placement through any layout comes out
// in any other placement, byte by byte, and nothing else is touched.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/store/heap_tables.h"
#include "backends/store/store_core.h"
#include "base/rng.h"
#include "executor/kv/kv_store.h"
#include "executor/restore.h"
#include "executor/upload.h"
#include "model/wire/documents.h"
#include "tests/support/example_documents.h"
#include "tests/support/naive.h"
#include "tests/support/random_documents.h"

namespace crossdock::testing {
namespace {

using Bytes = std::vector<std::byte>;
using Memory = std::map<std::pair<InstanceId, RegionId>, Bytes>;

std::byte hash(std::initializer_list<uint64_t> values) {
  uint64_t state = 0;
  for (const uint64_t value : values) {
    state ^= value;
    state = splitmix64(state);
  }
  return static_cast<std::byte>(state >> 56);
}

// One side: its bindings, and the bytes of all regions, which begin as a pattern.
struct Side {
  std::vector<BindingPointer> bindings;
  Memory memory;

  Side(const std::vector<Valid<RuntimeBinding>>& all, uint64_t salt) {
    for (const Valid<RuntimeBinding>& binding : all) {
      bindings.push_back(std::make_shared<const Valid<RuntimeBinding>>(binding));
      for (const Region& region : binding->regions) memory[{binding->instance, region.id}].resize(region.bytes);
    }
    uint64_t number = 0;
    for (auto& [key, bytes] : memory) {
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = hash({salt, number, i});
      ++number;
    }
  }

  std::vector<ParticipantId> participants() const {
    std::vector<ParticipantId> ids;
    for (const BindingPointer& binding : bindings) ids.push_back((*binding)->participant);
    return ids;
  }

  // Each element that the views show, at its address: a hash of what it is.
  void write_elements(const CacheSchema& schema, Memory& into) const {
    for (const BindingPointer& binding : bindings)
      for (const View& view : (*binding)->views) write_view(schema, **binding, view, into);
  }

 private:
  static void write_view(const CacheSchema& schema, const RuntimeBinding& binding, const View& view, Memory& into) {
    Bytes& bytes = into.at({binding.instance, view.region});
    uint64_t name = 0;
    for (const char letter : view.component.text()) name = name * 256 + static_cast<uint8_t>(letter);
    for_each_element(
        view, binding.page_tables, schema,
        [&](const Component& component, uint64_t layer, uint64_t token, uint64_t head, uint64_t dim, uint64_t address) {
          const uint64_t row = token / component.tokens_per_row.value_or(1);
          for (uint64_t i = 0; i < component.item_bytes; ++i)
            bytes.at(address + i) = hash({name, layer, head, row, dim, i});
        });
  }
};

template <class Value>
Completion completion_of(OpId op, Result<Value> result) {
  Completion completion;
  completion.op = op;
  completion.status = result.status();
  if (result.ok()) completion.result = std::move(result).value();
  return completion;
}

Completion completion_of(OpId op, Status status) {
  Completion completion;
  completion.op = op;
  completion.status = std::move(status);
  return completion;
}

// Where every post completes at once, one after the other.
class InstantWorld {
 public:
  InstantWorld(StoreCore& store, Side& side) : store_(store), side_(side) {
    for (const BindingPointer& binding : side.bindings)
      for (const RegionKey& key : region_keys(**binding)) {
        const Status added = memory_.add(key, side.memory.at({key.owner, key.id}));
        static_cast<void>(added.ok());  // participants of one instance may share a region
      }
  }

  void run(Protocol& protocol) {
    std::vector<Completion> completions;
    for (int rounds = 0; !protocol.finished(); ++rounds) {
      RC_ASSERT(rounds < 10'000);
      std::vector<Post> posts;
      protocol.advance(TimePoint(), completions, posts);
      completions.clear();
      for (const Post& post : posts) completions.push_back(execute(post));
      RC_ASSERT(protocol.finished() || !completions.empty());
    }
  }

 private:
  Completion execute(const Post& post) {
    const OpId op = post.op;
    if (const auto* begin = std::get_if<BeginPost>(&post.call))
      return completion_of(op, store_.begin(begin->txn, begin->target));
    if (const auto* put = std::get_if<PutPost>(&post.call))
      return completion_of(op, store_.put(put->txn, put->step, memory_));
    if (const auto* commit = std::get_if<CommitPost>(&post.call))
      return completion_of(op, store_.commit(commit->txn, commit->publication));
    if (const auto* abort = std::get_if<AbortPost>(&post.call)) return completion_of(op, store_.abort(abort->txn));
    if (const auto* lookup = std::get_if<LookupPost>(&post.call))
      return completion_of(op, store_.lookup(lookup->lookup));
    if (const auto* get = std::get_if<GetPost>(&post.call)) return completion_of(op, store_.get(get->step, memory_));
    if (const auto* release = std::get_if<ReleaseLeasePost>(&post.call))
      return completion_of(op, store_.release(release->lease));
    if (const auto* revoke = std::get_if<RevokePost>(&post.call))
      return completion_of(op, memory_.revoke(revoke->request.id));
    if (const auto* grant = std::get_if<GrantPost>(&post.call)) {
      Completion granted = completion_of(op, memory_.grant(grant->request));
      granted.result = Grant{grant->request.id, {}};
      return granted;
    }
    const RuntimePost& call = std::get<RuntimePost>(post.call);
    Completion completion = completion_of(op, Status());
    if (call.call == RuntimeCall::kPin || call.call == RuntimeCall::kReserve)
      for (const BindingPointer& binding : side_.bindings)
        if ((*binding)->participant == call.hold.participant) completion.result = binding;
    return completion;
  }

  StoreCore& store_;
  Side& side_;
  MemoryRegistry memory_;
};

void check_bytes(const Memory& actual, const Memory& expected) {
  for (const auto& [key, bytes] : expected)
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (actual.at(key)[i] == bytes[i]) continue;
      RC_LOG() << fmt::format("region '{}' of '{}', byte {} is {:#04x}, not {:#04x}\n", key.second.text(),
                              key.first.text(), i, std::to_integer<int>(actual.at(key)[i]),
                              std::to_integer<int>(bytes[i]));
      RC_FAIL("a byte of the target is wrong");
    }
}

RC_GTEST_PROP(StoreProperty, WhatWasUploadedFromAnyPlacementIsRestoredIntoAnyOther, (const Draw& draw)) {
  Choices schema_choices(draw, Section::kSchema);
  Choices token_choices(draw, Section::kTokens);
  Choices source_choices(draw, Section::kSource);
  Choices target_choices(draw, Section::kTarget);
  Choices source_binding_choices(draw, Section::kSourceBinding);
  Choices target_binding_choices(draw, Section::kTargetBinding);
  Choices option_choices(draw, Section::kOptions);
  Choices store_choices(draw, Section::kStore);
  const Valid<CacheSchema> schema = random_schema(schema_choices);
  const Valid<SnapshotDescriptor> snapshot = snapshot_of(schema, random_tokens(token_choices));
  const Valid<PlacementManifest> source_placement =
      random_placement(schema, snapshot->tokens, "source", source_choices);
  const Valid<PlacementManifest> target_placement =
      random_placement(schema, snapshot->tokens, "target", target_choices);
  const Valid<StoreLayout> layout = random_layout(schema, store_choices);
  Side source(random_bindings(source_placement, snapshot, BindingStyle::kAny, source_binding_choices), 1);
  Side target(random_bindings(target_placement, snapshot, BindingStyle::kAny, target_binding_choices), 2);
  RC_PRE(!source.bindings.empty() && !target.bindings.empty());
  RC_LOG() << fmt::format("source.json: {}\ntarget.json: {}\nlayout.json: {}\nsnapshot.json: {}\n",
                          to_json(source_placement), to_json(target_placement), to_json(layout), to_json(snapshot));
  source.write_elements(*schema, source.memory);

  StoreOptions store_options;
  store_options.chunk_bytes = static_cast<uint32_t>(option_choices.between(16, 64));
  store_options.segment_bytes_max = option_choices.between(1, 2000);
  store_options.clock = [] { return TimePoint(); };
  const auto store =
      StoreCore::open(std::make_unique<HeapRecordTable>(), std::make_unique<HeapChunkTable>(), store_options);
  RC_ASSERT(store.ok());

  UploadOptions upload_options;
  upload_options.txn = TxnId("upload");
  upload_options.tenant = "team-a";
  KvUpload what;
  what.documents = {std::make_shared<const Valid<PlacementManifest>>(source_placement),
                    std::make_shared<const Valid<SnapshotDescriptor>>(snapshot),
                    std::make_shared<const Valid<StoreLayout>>(layout)};
  upload_options.planner = std::make_shared<const KvUploadPlanner>(std::move(what));
  upload_options.participants = source.participants();
  upload_options.window.operation_count_max = option_choices.between(1, 4);
  Upload upload(upload_options);
  InstantWorld(*store.value(), source).run(upload);
  RC_LOG() << "upload: " << upload.outcome().cause.message() << "\n";
  RC_ASSERT(upload.outcome().committed && upload.outcome().released);

  RestoreOptions restore_options;
  restore_options.operation = OperationId("restore");
  restore_options.attempt = AttemptId("attempt 1");
  KvRestore wanted;
  wanted.target = std::make_shared<const Valid<PlacementManifest>>(target_placement);
  wanted.what = digest(snapshot);
  restore_options.participants = target.participants();
  restore_options.lease.holder = "restorer";
  wanted.limits.get_bytes_max = option_choices.between(1, 200);
  restore_options.planner = std::make_shared<const KvRestorePlanner>(std::move(wanted));
  Restore restore(restore_options);
  Memory expected = target.memory;
  target.write_elements(*schema, expected);
  InstantWorld(*store.value(), target).run(restore);
  RC_LOG() << "restore: " << restore.outcome().cause.message() << "\n";
  RC_ASSERT(restore.outcome().activated);
  check_bytes(target.memory, expected);
  RC_ASSERT(restore.outcome().read_amplification() > 0);
  const StoreStats stats = store.value()->stats().value();
  RC_ASSERT(stats.leases == 0u);
  RC_ASSERT(stats.open_transactions == 0u);
  RC_ASSERT(stats.snapshots == 1u);
  RC_ASSERT(store.value()->verify({}).value().damaged.empty());
  RC_CLASSIFY(restore.outcome().read.chunks_read > 20, "many chunks");
}

}  // namespace
}  // namespace crossdock::testing
