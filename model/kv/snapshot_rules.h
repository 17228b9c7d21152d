// Rules of a snapshot descriptor where it stands inside another document.
#pragma once

#include <string>

#include "model/diagnostics.h"
#include "model/kv/snapshot.h"

namespace crossdock {

// `place` is where the snapshot stands; empty when it is the document.
void check_snapshot(const SnapshotDescriptor& snapshot, const std::string& place, Diagnostics& diagnostics);

}  // namespace crossdock
