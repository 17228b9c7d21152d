// A binding of any resource, as a runtime gives it and as messages carry it.
#pragma once

#include <memory>
#include <utility>

#include "model/erased.h"
#include "model/instance_binding.h"
#include "model/valid.h"

namespace crossdock {

// Its neutral half for protocols, and the document for the planner of its resource. Copies share it.
class AnyBinding {
 public:
  AnyBinding() = default;  // null
  // Document begins with InstanceBinding.
  template <class Document>
  AnyBinding(std::shared_ptr<const Valid<Document>> document)  // NOLINT: a conversion that loses nothing
      : instance_(document == nullptr ? nullptr : std::shared_ptr<const InstanceBinding>(document, &**document)),
        same_([](const Erased& a, const Erased& b) {
          const auto first = a.as<Valid<Document>>();
          const auto second = b.as<Valid<Document>>();
          return first != nullptr && second != nullptr && *first == *second;
        }),
        document_(std::move(document)) {}

  const InstanceBinding& operator*() const { return *instance_; }
  const InstanceBinding* operator->() const { return instance_.get(); }
  // Null when it is empty or of another resource.
  template <class Document>
  std::shared_ptr<const Valid<Document>> as() const {
    return document_.as<Valid<Document>>();
  }

  friend bool operator==(const AnyBinding& binding, std::nullptr_t) { return binding.instance_ == nullptr; }
  // Equal content of one resource.
  friend bool operator==(const AnyBinding& a, const AnyBinding& b) {
    if (a == nullptr || b == nullptr) return a == nullptr && b == nullptr;
    return a.instance_ == b.instance_ || a.same_(a.document_, b.document_);
  }

 private:
  std::shared_ptr<const InstanceBinding> instance_;
  bool (*same_)(const Erased&, const Erased&) = nullptr;
  Erased document_;
};

}  // namespace crossdock
