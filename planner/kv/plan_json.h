// A transfer plan in JSON: docs/formats/plan.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "model/diagnostics.h"
#include "model/valid.h"
#include "model/wire/documents.h"
#include "planner/kv/plan.h"
#include "planner/kv/plan_side.h"

namespace crossdock {

// A plan names its two documents by digest. It may carry them, so that it can be proved where they are not at hand.
struct PlanDocument {
  Valid<TransferPlan> plan;
  std::optional<AnyDocument> source;  // live, upload: a placement; restore: a store layout or store manifest
  std::optional<AnyDocument> target;  // live, restore: a placement; upload: a store layout
};

// Reads and validates. Empty, and diagnostics are added, when a rule is broken. A document that is carried is read and
// validated as it would be alone, is of a kind that its side may have (else schema-name), and has the digest that the
// plan names (else plan-identity). This is no proof: verify_plan() is.
std::optional<PlanDocument> read_plan(std::string_view json, const JsonLimits& limits, Diagnostics& diagnostics);

// The canonical text. Same plan, same documents, same bytes. Null documents are not carried; others must be those that
// the plan names, of a kind that their side may have.
std::string plan_to_json(const Valid<TransferPlan>& plan, const AnyDocument* source = nullptr,
                         const AnyDocument* target = nullptr);

// The plan's identity: of its text without documents, which it names by digest.
Sha256Digest digest(const Valid<TransferPlan>& plan);

// A document as one side of a plan; empty for a kind that cannot be one. The document outlives it.
std::optional<PlanSide> plan_side(const AnyDocument& document);

}  // namespace crossdock
