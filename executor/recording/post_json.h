// A post in a recording. It is written only: a replay makes the same posts again and compares their texts. Steps are
// named by how many they are, their bytes, and a SHA-256 of them: docs/formats/recording.md.
#pragma once

#include <string>

#include "base/sha256.h"
#include "executor/protocol.h"
#include "executor/recording/recorded_documents.h"

namespace crossdock {

// The canonical text of one post; the documents that it names are in `namer`.
std::string post_text(const Post& post, DocumentNamer& namer);

// SHA-256 of the canonical JSON text {"source_regions":[...],"steps":[...],"target_regions":[...]}: the regions of the
// work, and of each step [source region, target region, source offset, target offset, bytes, axes], where an axis is
// [extent, source stride, target stride].
Sha256Digest steps_digest(const StepSpan& span);

}  // namespace crossdock
