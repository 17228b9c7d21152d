// Valid<T>: a document that passed its rules. The planner and everything after it take documents in this form only.
#pragma once

#include <optional>
#include <utility>

#include "model/diagnostics.h"

namespace crossdock {

// For each document type T there are, found by overload:
//   void canonicalize(T&)             puts lists whose order means nothing into their one order
//   void validate(const T&, Diagnostics&)  adds a diagnostic for each broken rule
template <class T>
class Valid {
 public:
  // Brings the document into canonical order, checks every rule, and is empty when one is broken.
  static std::optional<Valid> make(T document, Diagnostics& diagnostics) {
    canonicalize(document);
    Diagnostics own(
        diagnostics.document());  // rules stop where nobody keeps more diagnostics, so these are counted apart
    validate(document, own);
    diagnostics.set_document(own.document());
    diagnostics.take(own);
    if (!own.empty()) return std::nullopt;
    return Valid(std::move(document));
  }

  const T& operator*() const { return document_; }
  const T* operator->() const { return &document_; }

  friend bool operator==(const Valid&, const Valid&) = default;

 private:
  explicit Valid(T document) : document_(std::move(document)) {}
  T document_;
};

}  // namespace crossdock
