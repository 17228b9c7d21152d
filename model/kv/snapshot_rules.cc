#include "model/kv/snapshot_rules.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "model/text.h"

namespace crossdock {

// A descriptor has no lists.
void canonicalize(SnapshotDescriptor&) {}

void validate(const SnapshotDescriptor& snapshot, Diagnostics& diagnostics) {
  diagnostics.set_document(fmt::format("snapshot of '{}'", snapshot.resource.text()));
  check_snapshot(snapshot, "", diagnostics);
}

void check_snapshot(const SnapshotDescriptor& snapshot, const std::string& place, Diagnostics& diagnostics) {
  check_name(snapshot.tenant, place, "tenant", diagnostics);
  check_name(snapshot.resource.text(), place, "resource", diagnostics);
  check_name(snapshot.model_id, place, "model_id", diagnostics);
  check_name(snapshot.model_revision, place, "model_revision", diagnostics);
  check_name(snapshot.semantic_fingerprint, place, "semantic_fingerprint", diagnostics);
  check_name(snapshot.token_fingerprint, place, "token_fingerprint", diagnostics);
  if (snapshot.adapter) {
    check_name(snapshot.adapter->id, place, "the adapter's id", diagnostics);
    check_name(snapshot.adapter->revision, place, "the adapter's revision", diagnostics);
  }
  // It may be empty, unlike a name.
  if (!is_utf8(snapshot.salt)) diagnostics.add(Rule::kName, place, "salt must be UTF-8");
  if (snapshot.tokens.empty()) diagnostics.add(Rule::kSnapshotEmpty, place, "the snapshot has no tokens");
}

}  // namespace crossdock
