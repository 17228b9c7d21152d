// Reading a manifest of any resource: what a store kept as text becomes an envelope and a document again.
#pragma once

#include <string_view>

#include "model/any_manifest.h"
#include "model/diagnostics.h"
#include "model/wire/json.h"

namespace crossdock {

// Null, and diagnostics are added, when the text is no manifest, or breaks a rule of its kind.
AnyManifest read_manifest(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics);

}  // namespace crossdock
