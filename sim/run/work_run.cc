#include "sim/run/work_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/scenario/event_name.h"

namespace crossdock {
namespace {

std::string operation_name(const Post& post) {
  if (const auto* send = std::get_if<SendPost>(&post.call)) return fmt::format("send {}", send->message.kind());
  if (const auto* call = std::get_if<RuntimePost>(&post.call))
    return std::string(kRuntimeCallNames[static_cast<size_t>(call->call)]);
  return std::string(post.name());
}

// Announces posts and states as events, for which faults may wait.
class Watcher : public ProtocolObserver {
 public:
  using Entered = std::function<void()>;
  using Took = std::function<void(const Message& message)>;
  Watcher(SimWorld& world, SimNode& node, Entered entered, Took took)
      : world_(world), node_(node), entered_(std::move(entered)), took_(std::move(took)), since_(world.now()) {}

  void advancing(Protocol&) override {}
  void advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                const Protocol& protocol) override {
    for (const Completion& completion : completions)
      if (const auto* message = std::get_if<Message>(&completion.result)) took_(*message);
    // Before the posts are made, so a fault that waits for "post copy" may hit this very copy.
    for (const Post& post : posts)
      if (!std::holds_alternative<RecvPost>(post.call) && !std::holds_alternative<CancelPost>(post.call))
        world_.event(node_, post_event(operation_name(post)));
    std::string state = protocol.state();
    if (state == state_) return;
    if (!state_.empty()) world_.trace().slice(node_.track(), state_, "state", since_, now);
    state_ = std::move(state);
    since_ = now;
    entered_();
    world_.event(node_, state_event(state_));
  }

 private:
  SimWorld& world_;
  SimNode& node_;
  Entered entered_;
  Took took_;
  std::string state_;
  TimePoint since_;
};

}  // namespace

Status WorkRun::start(std::function<void()> ended) {
  ended_ = std::move(ended);
  is_started_ = true;
  result_.name = spec_.name;
  result_.begin = world_.now();
  Diagnostics diagnostics(fmt::format("work '{}'", spec_.name));
  if (spec_.kind != WorkKind::kTraffic) {
    snapshot_ = scenario_snapshot(spec_, *schema_, diagnostics);
    if (snapshot_ == nullptr) return diagnostics.to_status();
  }
  return prepare();
}

void WorkRun::skip(const std::string& verdict, const std::string& cause) {
  is_started_ = is_over_ = true;
  result_.name = spec_.name;
  result_.begin = result_.end = result_.done = world_.now();
  result_.verdict = verdict;
  result_.cause = cause;
}

SideRequest WorkRun::side_request(Role role) const {
  SideRequest request;
  request.scenario = &scenario_;
  request.work = &spec_;
  request.side = role == Role::kSource ? &*spec_.source : &*spec_.target;
  request.role = role;
  request.schema = schema_;
  request.snapshot = snapshot_;
  request.content = scenario_content(spec_);
  // A number of its own for each side and each life in the whole run.
  request.epoch = world_.options().reuses_epochs ? 1 : next_epoch_++;
  return request;
}

Status WorkRun::make_side(Role role, std::unique_ptr<ScenarioSide>& side) {
  Diagnostics diagnostics(fmt::format("work '{}'", spec_.name));
  side = make_scenario_side(side_request(role), true, diagnostics);
  if (side == nullptr) return diagnostics.to_status();
  for (const auto& member : side->members) TRY_STATUS(world_.memory().add(*member, scenario_.carries_bytes));
  return Status();
}

SimNode& WorkRun::launch(const PeerId& peer, const Place& place, Protocol& protocol,
                         const std::vector<SimMember*>& members, SimStore* store) {
  SimNode& node = world_.join(peer, place);
  node.runtime().set_hooks(*this);
  for (SimMember* member : members) node.runtime().add(*member);
  if (store != nullptr) node.set_store(*store);
  running_.insert(&node);
  watchers_.push_back(std::make_unique<Watcher>(
      world_, node, [this, &node] { entered_state(node); },
      [this, &node](const Message& message) { took(node, message); }));
  world_.start(node, [this, &node, &protocol, watcher = watchers_.back().get()] {
    ProtocolObserver* const observers[] = {watcher};
    // Does not return when the process is killed: the stack is unwound (R7), and process_died() does what follows here.
    drive(protocol, node.ports(), observers);
    running_.erase(&node);
    if (running_.empty()) process_ended();
  });
  return node;
}

void WorkRun::process_died(const SimNode& node) {
  if (running_.erase(&node) == 1 && running_.empty()) process_ended();
}

void WorkRun::process_ended() {
  if (is_over_) return;
  is_over_ = true;
  result_.end = result_.done = world_.now();
  conclude();
  // A transfer is done when its last target is active; its processes go on answering repeated decisions until `end`.
  TimePoint active;
  for (const SimMember* member : members()) active = std::max(active, member->active_since);
  if (result_.verdict == "activated" || result_.verdict == "restored") result_.done = active;
  ended_();
}

Duration WorkRun::bound() const {
  // Each way to the end waits at most four times for a drain, and as often for the reports of the other processes.
  Duration bound = spec_.timeout;
  for (int i = 0; i < 4; ++i) bound = bound + spec_.drain + spec_.wait;
  return bound + Duration::from_s(1);
}

std::vector<SimMember*> WorkRun::members() const {
  std::vector<SimMember*> all;
  for (const ScenarioSide* side : {source_.get(), target_.get()})
    if (side != nullptr)
      for (const auto& member : side->members) all.push_back(member.get());
  for (const auto& member : earlier_members_) all.push_back(member.get());
  return all;
}

// I1, I5: what counts is what the pages hold when the framework begins to use them.
void WorkRun::activating(SimMember& member) {
  const std::string wrong = world_.memory().take_content(member, copies_once());
  world_.checks().check(Invariant::kI1, world_.now(),
                        wrong.empty() ? "" : fmt::format("'{}' is activated: {}", member.name, wrong));
}

// I3 as early as it can be seen: pages that are given back while a copy is under way are an error even if nothing
// lands.
void WorkRun::released(SimMember& member) {
  const uint64_t copies = world_.copies_of(member);
  world_.checks().check(
      Invariant::kI3, world_.now(),
      copies == 0 ? ""
                  : fmt::format("the pages of '{}' are given back while {} copies are under way", member.name, copies));
}

void WorkRun::check_node(const SimNode& node, const std::vector<OpId>& lost) {
  if (node.is_dead()) return;
  for (const auto& [op, name] : node.under_way()) {
    const bool is_told = std::find(lost.begin(), lost.end(), op) != lost.end();
    world_.checks().check(Invariant::kI6, world_.now(),
                          is_told ? ""
                                  : fmt::format("'{}' ended although operation {} ({}) is under way",
                                                node.peer().text(), op.value(), name));
  }
}

// Pages that the runtime gave it are given back, or active, or quarantined by name (I4).
void WorkRun::check_pages(const SimMember& member, const std::vector<Remains>& quarantined) {
  const bool is_quarantined = std::any_of(quarantined.begin(), quarantined.end(), [&](const Remains& remains) {
    return remains.role == member.role && remains.hold.participant == (*member.binding)->participant;
  });
  std::string wrong;
  if (member.is_held && !is_quarantined)
    wrong = fmt::format("the pages of '{}' are still {}", member.name,
                        member.role == Role::kSource ? "pinned" : "reserved");
  if (member.holds < member.releases + member.activations)
    wrong = fmt::format("the pages of '{}' were taken {} times, given back {} times and activated {} times",
                        member.name, member.holds, member.releases, member.activations);
  world_.checks().check(Invariant::kI4, world_.now(), wrong);
}

}  // namespace crossdock
