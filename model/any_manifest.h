// A manifest of any resource: its envelope for stores, and the document for the planner of its resource.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "model/erased.h"
#include "model/stored_object.h"
#include "model/valid.h"

namespace crossdock {

class AnyManifest {
 public:
  AnyManifest() = default;  // null
  // There are, found by overload (model/wire/documents.h has them): ManifestEnvelope envelope_of(const
  // Valid<Document>&), and std::string to_json(const Valid<Document>&), its canonical text.
  template <class Document>
  AnyManifest(std::shared_ptr<const Valid<Document>> document)  // NOLINT: a conversion that loses nothing
      : envelope_(std::make_shared<const ManifestEnvelope>(envelope_of(*document))),
        text_([](const Erased& erased) { return to_json(*erased.as<Valid<Document>>()); }),
        document_(std::move(document)) {}

  const ManifestEnvelope& operator*() const { return *envelope_; }
  const ManifestEnvelope* operator->() const { return envelope_.get(); }
  // The canonical text of the document.
  std::string text() const { return text_(document_); }
  // Null when it is empty or of another resource.
  template <class Document>
  std::shared_ptr<const Valid<Document>> as() const {
    return document_.as<Valid<Document>>();
  }

  friend bool operator==(const AnyManifest& manifest, std::nullptr_t) { return manifest.envelope_ == nullptr; }

 private:
  std::shared_ptr<const ManifestEnvelope> envelope_;
  std::string (*text_)(const Erased&) = nullptr;
  Erased document_;
};

}  // namespace crossdock
