// Rules of a snapshot descriptor inside another document.
#pragma once

#include <string>

#include "model/diagnostics.h"
#include "model/kv/snapshot.h"

namespace crossdock {

// Adds a diagnostic for each broken rule. `place` says where in the document the snapshot is, for messages; empty when
// it is the document.
void check_snapshot(const SnapshotDescriptor& snapshot, const std::string& place, Diagnostics& diagnostics);

}  // namespace crossdock
