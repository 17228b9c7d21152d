// Reads two placements, makes a plan, proves it, and prints its edges and the bytes that it moves for each token.
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "model/wire/documents.h"
#include "planner/kv/plan_side.h"
#include "planner/kv/plan_volume.h"
#include "planner/kv/prepare.h"

namespace {

std::optional<crossdock::Valid<crossdock::PlacementManifest>> read_placement(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  crossdock::Diagnostics diagnostics(path);
  auto placement = crossdock::read_document<crossdock::PlacementManifest>(text.str(), {}, diagnostics);
  for (const crossdock::Diagnostic& each : diagnostics.kept()) std::cerr << each.to_line() << "\n";
  return placement;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto source = read_placement(argv[1]);
  const auto target = read_placement(argv[2]);
  if (!source || !target) return 2;
  const crossdock::PlanSide from(*source, digest(*source));
  const crossdock::PlanSide to(*target, digest(*target));
  crossdock::Diagnostics diagnostics("plan");
  const std::optional<crossdock::ProvedPlan> plan = crossdock::make_proved_plan(from, to, {}, {}, {}, diagnostics);
  for (const crossdock::Diagnostic& each : diagnostics.kept()) std::cerr << each.to_line() << "\n";
  if (!plan) return 1;
  const crossdock::TransferPlan& made = *plan->plan;
  const crossdock::PairVolume total = crossdock::total_volume(crossdock::pair_volumes(made));
  std::cout << made.sources.size() << " sources, " << made.targets.size() << " targets, " << made.edges.size()
            << " edges, " << total.volume.bytes_per_token << " bytes per token\n";
  return 0;
}
