// Runtime binding: where, for one operation, the bytes of one participant's part of a KV cache lie.
// Wire form: docs/formats/binding.md.
#pragma once

#include <memory>
#include <vector>

#include "base/range.h"
#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/instance_binding.h"
#include "model/kv/view.h"
#include "model/valid.h"

namespace crossdock {

struct RuntimeBinding : InstanceBinding {
  Sha256Digest placement_digest;
  Sha256Digest snapshot_digest;
  Range tokens;                        // the snapshot's interval
  std::vector<PageTable> page_tables;  // sorted by id
  std::vector<View> views;             // sorted

  friend bool operator==(const RuntimeBinding&, const RuntimeBinding&) = default;
};

// Shared by all who work by the binding. Never null where a binding is promised.
using BindingPointer = std::shared_ptr<const Valid<RuntimeBinding>>;

// As functions that take many bindings want them.
std::vector<const Valid<RuntimeBinding>*> pointers_to(const std::vector<BindingPointer>& bindings);

// See model/valid.h. These are the rules that a binding keeps alone; model/kv/binding_rules.h has those that need
// others.
void canonicalize(RuntimeBinding& binding);
void validate(const RuntimeBinding& binding, Diagnostics& diagnostics);

}  // namespace crossdock
