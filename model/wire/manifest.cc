#include "model/wire/manifest.h"

#include <memory>

#include "model/wire/documents.h"

namespace crossdock {

// There is one kind of manifest, that of a KV cache.
AnyManifest read_manifest(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics) {
  std::optional<Valid<StoreManifest>> manifest = read_document<StoreManifest>(json, limits, diagnostics);
  if (!manifest) return AnyManifest();
  return AnyManifest(std::make_shared<const Valid<StoreManifest>>(std::move(*manifest)));
}

}  // namespace crossdock
