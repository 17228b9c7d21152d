#include "model/kv/snapshot_rules.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "model/text.h"

namespace crossdock {

void canonicalize(SnapshotDescriptor&) {}

void validate(const SnapshotDescriptor& snapshot, Faults& faults) {
  faults.set_document(fmt::format("snapshot of '{}'", snapshot.resource.text()));
  check_snapshot(snapshot, "", faults);
}

void check_snapshot(const SnapshotDescriptor& snapshot, const std::string& place, Faults& faults) {
  check_name(snapshot.tenant, place, "tenant", faults);
  check_name(snapshot.resource.text(), place, "resource", faults);
  check_name(snapshot.model_id, place, "model_id", faults);
  check_name(snapshot.model_revision, place, "model_revision", faults);
  check_name(snapshot.semantic_fingerprint, place, "semantic_fingerprint", faults);
  check_name(snapshot.token_fingerprint, place, "token_fingerprint", faults);
  if (snapshot.adapter) {
    check_name(snapshot.adapter->id, place, "the adapter's id", faults);
    check_name(snapshot.adapter->revision, place, "the adapter's revision", faults);
  }
  if (!is_utf8(snapshot.salt)) faults.add(Rule::kName, place, "salt must be UTF-8");
  if (snapshot.tokens.empty()) faults.add(Rule::kSnapshotEmpty, place, "the snapshot has no tokens");
}

}  // namespace crossdock
