#include "sim/run/fault_draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "backends/store/store_core.h"
#include "sim/run/draw.h"
#include "sim/scenario/event_name.h"

namespace crossdock {
namespace {

class FaultDraw {
 public:
  FaultDraw(const Scenario& scenario, Rng& rng) : scenario_(scenario), rng_(rng) {}

  FaultSpec draw(FaultKind kind);
  // Whether the kind makes sense with the scenario's works.
  bool fits(FaultKind kind) const;

 private:
  struct Table;  // how each kind is drawn

  void begin_operation_fault(FaultSpec& made);
  void begin_world_fault(FaultSpec& made);

  std::string any_machine() { return fmt::format("h{}", rng_.below(scenario_.cluster.machine_count)); }
  std::string any_nic() {
    return fmt::format("{}/nic{}", any_machine(), rng_.below(scenario_.cluster.machine.nics.size()));
  }
  std::string any_peer() {
    const WorkSpec& work = scenario_.works[rng_.below(scenario_.works.size())];
    if (work.kind == WorkKind::kUpload) return work.name + " uploader";
    if (work.kind == WorkKind::kRestore) return work.name + " restorer";
    switch (rng_.below(5)) {
      case 0: return work.name + " coordinator";
      case 1:
      case 2: return work.name + "/source *";
      default: return work.name + "/target *";
    }
  }
  std::string any_work() { return scenario_.works[rng_.below(scenario_.works.size())].name; }
  // Events by which a transfer, an upload or a restore makes progress. One that the scenario does not have never comes,
  // and the report names the fault as unmet.
  std::string any_event() {
    constexpr std::array<const char*, 13> kEvents = {
        "post copy",      "done copy",       "post send receipt", "post send export", "post send ready",
        "state draining", "state releasing", "post put",          "post commit",      "done commit",
        "post get",       "post activate",   "post revoke"};
    return kEvents[rng_.below(kEvents.size())];
  }
  std::string any_operation(FaultTexts among) {
    constexpr std::array<std::string_view, 16> kAll = {
        "copy",     "checksum", "grant", "revoke", "pin",   "reserve", "release", "activate",
        "validate", "begin",    "put",   "commit", "abort", "lookup",  "get",     "release-lease"};
    if (among.size() == 1) return std::string(among.front());
    if (among.empty()) among = kAll;
    return std::string(among[rng_.below(among.size())]);
  }
  std::string any_crash_mode() {
    constexpr uint64_t kPoints = 6;  // of the store's crash points, those before recovery
    if (rng_.chance(1, 2)) return std::string(kCrashPoints[rng_.below(kPoints)]);
    return rng_.chance(1, 2) ? "keep" : "lose";
  }
  // A time within the first milliseconds, in which everything happens, or later.
  Duration any_time() { return us(rng_.below(one_of<4>(rng_, {200, 2'000, 20'000, 100'000}))); }

  const Scenario& scenario_;
  Rng& rng_;
};

enum class FitsWhere {
  kAnywhere,
  kWithStore,
  kWithoutStore,
  kWithChecksums,  // nothing else notices it
  kNowhere,        // a broken promise of the framework, not a fault to survive
};

struct FaultDraw::Table {
  struct Row {
    FaultKind kind;
    FitsWhere fits;
    void (*draw)(FaultDraw& draw, FaultSpec& made);  // target and parameters; the rest is drawn before
  };
  static void nothing(FaultDraw&, FaultSpec&) {}
  static void store(FaultDraw&, FaultSpec& made) { made.target = "store"; }
  static void machine(FaultDraw& draw, FaultSpec& made) { made.target = draw.any_machine(); }
  static void peer(FaultDraw& draw, FaultSpec& made) { made.target = draw.any_peer(); }
  static void link_off(FaultDraw& draw, FaultSpec& made) {
    made.target = draw.rng_.chance(1, 4) ? draw.any_machine() : draw.any_nic();
  }
  static void link_slow(FaultDraw& draw, FaultSpec& made) {
    made.target = draw.any_nic();
    made.percent = 1 + draw.rng_.below(50);
  }
  static void straggler(FaultDraw& draw, FaultSpec& made) {
    made.target = draw.any_machine();
    made.percent = 1 + draw.rng_.below(30);
  }
  static void peer_crash(FaultDraw& draw, FaultSpec& made) {
    made.target = draw.any_peer();
    made.mode = std::array<const char*, 3>{"lost", "done", "late"}[draw.rng_.below(3)];
    made.delay = us(draw.rng_.below(30'000));
  }
  static void store_crash(FaultDraw& draw, FaultSpec& made) {
    made.target = "store";
    made.mode = draw.any_crash_mode();
  }
  static void corrupt_chunk(FaultDraw& draw, FaultSpec& made) {
    made.target = "store";
    made.count = 1 + draw.rng_.below(6);
  }
  static void abort_request(FaultDraw& draw, FaultSpec& made) { made.target = draw.any_work(); }
  static void message_storm(FaultDraw& draw, FaultSpec& made) { made.count = 1 + draw.rng_.below(200); }
  static void queue_depth(FaultDraw&, FaultSpec& made) {
    made.target = "*";
    made.count = 1;
  }

  static constexpr std::array<Row, kFaultKindCount> kRows = {{
      {FaultKind::kLinkOff, FitsWhere::kAnywhere, link_off},
      {FaultKind::kLinkSlow, FitsWhere::kAnywhere, link_slow},
      {FaultKind::kMachineOff, FitsWhere::kAnywhere, machine},
      {FaultKind::kPartition, FitsWhere::kAnywhere, machine},
      {FaultKind::kStraggler, FitsWhere::kAnywhere, straggler},
      {FaultKind::kPeerCrash, FitsWhere::kAnywhere, peer_crash},
      {FaultKind::kPeerRestart, FitsWhere::kWithoutStore, peer},
      {FaultKind::kStoreCrash, FitsWhere::kWithStore, store_crash},
      {FaultKind::kCorruptChunk, FitsWhere::kWithStore, corrupt_chunk},
      {FaultKind::kDiskFull, FitsWhere::kWithStore, store},
      {FaultKind::kPagesEvicted, FitsWhere::kNowhere, peer},
      {FaultKind::kAbortRequest, FitsWhere::kAnywhere, abort_request},
      {FaultKind::kMessageStorm, FitsWhere::kWithoutStore, message_storm},
      {FaultKind::kQueueDepth, FitsWhere::kAnywhere, queue_depth},
      {FaultKind::kRefused, FitsWhere::kAnywhere, nothing},
      {FaultKind::kFailed, FitsWhere::kAnywhere, nothing},
      {FaultKind::kReplyLost, FitsWhere::kAnywhere, nothing},
      {FaultKind::kTornWrite, FitsWhere::kAnywhere, nothing},
      {FaultKind::kLateWrite, FitsWhere::kAnywhere, nothing},
      {FaultKind::kSlowOperation, FitsWhere::kAnywhere, nothing},
      {FaultKind::kBitFlip, FitsWhere::kWithChecksums, nothing},
      {FaultKind::kShortRead, FitsWhere::kWithStore, nothing},
      {FaultKind::kMessageLost, FitsWhere::kWithoutStore, nothing},
      {FaultKind::kMessageDelayed, FitsWhere::kWithoutStore, nothing},
      {FaultKind::kMessageDoubled, FitsWhere::kWithoutStore, nothing},
  }};
  static_assert(has_every_fault_kind(kRows), "a kind of fault has no draw");
};

bool FaultDraw::fits(FaultKind kind) const {
  switch (Table::kRows[static_cast<size_t>(kind)].fits) {
    case FitsWhere::kAnywhere: return true;
    case FitsWhere::kWithStore: return !scenario_.stores.empty();
    case FitsWhere::kWithoutStore: return scenario_.stores.empty();
    case FitsWhere::kNowhere: return false;
    case FitsWhere::kWithChecksums:
      return std::all_of(scenario_.works.begin(), scenario_.works.end(),
                         [](const WorkSpec& work) { return work.checksum || work.kind != WorkKind::kTransfer; });
  }
  check_failed("a known place for a fault", __FILE__, __LINE__);
}

FaultSpec FaultDraw::draw(FaultKind kind) {
  FaultSpec made;
  made.kind = kind;
  if (is_operation_fault(kind))
    begin_operation_fault(made);
  else
    begin_world_fault(made);
  Table::kRows[static_cast<size_t>(kind)].draw(*this, made);
  // A scenario refuses parameters that the kind does not take.
  const unsigned takes = fault_kind_row(kind).parameters;
  const FaultSpec usual;
  if ((takes & kTakesPercent) == 0) made.percent = usual.percent;
  if ((takes & kTakesDelay) == 0) made.delay = usual.delay;
  if ((takes & kTakesLasts) == 0 && !is_operation_fault(kind)) made.lasts = usual.lasts;
  return made;
}

// So a change of one kind's parameters does not shift what is drawn for the others, and old seeds keep their scenarios.
// All parameters of an operation fault are drawn here, those too that the kind does not take; draw() takes them out.
void FaultDraw::begin_operation_fault(FaultSpec& made) {
  const FaultTexts among = fault_kind_row(made.kind).operations;
  made.when = WhenSpec{rng_.chance(1, 2) ? "*" : any_peer(), post_event(any_operation(among)), 1 + rng_.below(6)};
  made.count = one_of<4>(rng_, {1, 1, 3, 1000});
  made.delay = us(rng_.below(one_of<2>(rng_, {500, 50'000})));
  made.percent = rng_.below(100);
}

// When it happens, and for how long.
void FaultDraw::begin_world_fault(FaultSpec& made) {
  if (rng_.chance(1, 2))
    made.at = any_time();
  else
    made.when = WhenSpec{rng_.chance(1, 2) ? "*" : any_peer(), any_event(), 1 + rng_.below(4)};
  if (made.when && rng_.chance(1, 2)) made.after = us(rng_.below(3'000));
  made.lasts = rng_.chance(1, 4) ? Duration() : us(rng_.below(one_of<3>(rng_, {500, 10'000, 100'000})) + 1);
}

}  // namespace

void draw_faults(const std::set<FaultKind>& allowed, Rng& rng, Scenario& scenario) {
  FaultDraw draw(scenario, rng);
  std::vector<FaultKind> kinds;
  for (const FaultKindRow& row : kFaultKinds) {
    if (!allowed.empty() && !allowed.contains(row.kind)) continue;
    // Swarm testing: each kind is off in half of all scenarios. With all kinds on, the frequent ones end a run before
    // the rare ones come.
    if (draw.fits(row.kind) && rng.chance(1, 2)) kinds.push_back(row.kind);
  }
  // Some scenarios have no fault at all: what fails in these fails without one.
  if (kinds.empty() || rng.chance(1, 8)) return;
  const uint64_t count = 1 + rng.below(4);
  for (uint64_t i = 0; i < count; ++i) scenario.faults.push_back(draw.draw(kinds[rng.below(kinds.size())]));
  if (rng.chance(2, 5)) aim_fault(kinds, rng, scenario);
}

}  // namespace crossdock
