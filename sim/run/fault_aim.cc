// Faults at the places where outcomes are rare: random ones seldom meet them.
#include <algorithm>
#include <string>

#include "executor/coordinator.h"
#include "sim/run/draw.h"
#include "sim/run/fault_draw.h"
#include "sim/scenario/event_name.h"

namespace crossdock {
namespace {

class FaultAim {
 public:
  FaultAim(Rng& rng, Scenario& scenario) : rng_(rng), scenario_(scenario) {}

  void aim_at_transfer(FaultSpec& made, const std::string& work) {
    switch (rng_.below(6)) {
      case 5:  // it restarts while its report is on the way
        made.kind = FaultKind::kPeerRestart;
        made.target = work + "/target *";
        made.when = WhenSpec{work + "/target *", "post send ready", 1};
        made.after = us(rng_.below(200));
        made.count = 1;
        if (rng_.chance(1, 2)) {
          FaultSpec late;
          late.kind = FaultKind::kMessageDelayed;
          late.when = made.when;
          late.delay = us(1 + rng_.below(5'000));
          scenario_.faults.push_back(late);
        }
        break;
      case 0:  // some targets are active already
        made.kind = FaultKind::kPeerCrash;
        made.target = work + "/target *0";
        made.when = WhenSpec{work + " coordinator", state_event(coordinator_state_name(CoordinatorState::kTelling)), 1};
        made.count = 1;
        break;
      case 1:
        made.kind = FaultKind::kMessageLost;
        made.when = WhenSpec{work + " coordinator", "post send decision", 1 + rng_.below(4)};
        break;
      case 2:
        made.kind = FaultKind::kFailed;
        made.when = WhenSpec{work + "/target *", "post activate", 1 + rng_.below(3)};
        break;
      case 3:  // an operation outlasts the drain
        made.kind = FaultKind::kSlowOperation;
        made.when = WhenSpec{work + "/*", rng_.chance(1, 2) ? "post copy" : "post release", 1 + rng_.below(2)};
        made.delay = us(500'000);
        break;
      default:
        made.kind = FaultKind::kFailed;
        made.when = WhenSpec{work + "/target *", "post revoke", 1 + rng_.below(3)};
        break;
    }
  }
  void aim_at_upload(FaultSpec& made, const std::string& work) {
    switch (rng_.below(4)) {
      case 0:
      case 1:
        made.kind = FaultKind::kReplyLost;
        made.when = WhenSpec{work + " uploader", "post commit", 1};
        break;
      case 2:
        made.kind = FaultKind::kPeerCrash;
        made.target = work + " uploader";
        made.when = WhenSpec{work + " uploader", rng_.chance(1, 2) ? "post put" : "post commit", 1 + rng_.below(3)};
        made.count = 1;
        break;
      default:  // the store stays down, so no call is answered
        made.kind = FaultKind::kStoreCrash;
        made.target = "store";
        made.mode = rng_.chance(1, 2) ? "commit-published" : "commit-after-data";
        made.at = Duration();
        made.lasts = us(1'000'000);
        made.count = 1;
        break;
    }
  }
  void aim_at_restore(FaultSpec& made, const std::string& work) {
    if (rng_.chance(1, 2)) {
      made.kind = FaultKind::kPeerCrash;
      made.target = work + " restorer";
      made.when = WhenSpec{work + " restorer", rng_.chance(1, 2) ? "post get" : "done activate", 1 + rng_.below(2)};
      made.count = 1;
    } else {
      made.kind = FaultKind::kFailed;
      made.when = WhenSpec{work + " restorer", "post activate", 2};
    }
  }

 private:
  Rng& rng_;
  Scenario& scenario_;
};

}  // namespace

void aim_fault(const std::vector<FaultKind>& kinds, Rng& rng, Scenario& scenario) {
  const WorkSpec& work = scenario.works[scenario.works.size() > 1 && rng.chance(1, 2) ? 1 : 0];
  FaultAim aim(rng, scenario);
  FaultSpec made;
  // Every time, unless the aim says otherwise.
  made.count = 1000;
  switch (work.kind) {
    case WorkKind::kTransfer: aim.aim_at_transfer(made, work.name); break;
    case WorkKind::kUpload: aim.aim_at_upload(made, work.name); break;
    case WorkKind::kRestore: aim.aim_at_restore(made, work.name); break;
    case WorkKind::kTraffic: return;
  }
  // Drawn even when the kind is off: what is drawn next does not depend on it.
  if (std::find(kinds.begin(), kinds.end(), made.kind) != kinds.end()) scenario.faults.push_back(made);
}

}  // namespace crossdock
