#include "sim/world/engine.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/simix.hpp>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace crossdock {

// What is modelled: flows that share links fairly (max-min, model CM02 without TCP effects), latencies ahead of a flow,
// links that go off and on or slow down, and actors that die. Not modelled: packets, congestion control, routing that
// changes, and the time that code takes to compute.
//
// SimGrid decides when flows end; everything else that has a time is on the agenda of this file. The reason is order:
// SimGrid runs what falls on one instant in an order of its own, and the agenda in the order of addition, so that equal
// seeds give equal runs (I7).

namespace s4u = simgrid::s4u;

namespace {

namespace timer = simgrid::kernel::timer;

constexpr unsigned kActorStackBytes = 256 << 10;

// A deadline is a quarter of a nanosecond late: what else happens at that instant happens before it, and now() still
// says the instant itself.
constexpr double kLateNs = 0.25;

// Lazy updates give wrong times. Precision of times far below a nanosecond, so that two of them never become one.
constexpr std::array kConfiguration = {
    "--log=root.thresh:critical", "--log=root.app:file:/dev/null", "--cfg=network/model:CM02",
    "--cfg=network/optim:Full",   "--cfg=network/crosstraffic:0",  "--cfg=network/TCP-gamma:0",
    "--cfg=surf/precision:1e-12", "--cfg=debug/verbose-exit:0",    "--cfg=debug/clean-atexit:0",
};

// Never deleted: SimGrid ends with its process.
s4u::Engine* make_engine() {
  CHECK(!s4u::Engine::has_instance());  // one for each process
  std::vector<std::string> words = {"crossdock"};
  words.insert(words.end(), kConfiguration.begin(), kConfiguration.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  // SimGrid takes the interrupt signal for itself.
  struct sigaction interrupt = {};
  CHECK(sigaction(SIGINT, nullptr, &interrupt) == 0);
  auto* engine = new s4u::Engine(&argc, argv.data());
  CHECK(sigaction(SIGINT, &interrupt, nullptr) == 0);
  return engine;
}

// Calls of SimGrid for which an actor does not wait. SimGrid runs other actors during any call, and refuses calls from
// an actor that is being unwound. So these calls are queued until the actor's turn ends, and then made outside of all
// actors.
class Jobs {
 public:
  void add(std::function<void()> job) {
    jobs_.push_back(std::move(job));
    if (s4u::Actor::is_maestro()) make_all();
  }

  // Before an actor waits, and at its end.
  void flush() {
    if (!jobs_.empty()) simgrid::kernel::actor::simcall_answered([this] { make_all(); });
  }
  // The same from an actor that is unwound.
  void flush_later() {
    timer::Timer::set(s4u::Engine::get_clock(), [this] { make_all(); });
  }

 private:
  void make_all() {
    while (!jobs_.empty()) {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
    }
  }

  std::deque<std::function<void()>> jobs_;
};

// What one actor sleeps on.
class Sleeper {
 public:
  explicit Sleeper(Jobs& jobs) : jobs_(jobs) {}

  // At most one release for each sleep: a second would let the actor through a wait of its own that comes later.
  void wake() {
    if (std::exchange(is_woken_, true)) return;
    jobs_.add([semaphore = semaphore_] { semaphore->release(); });
  }

  // Returns when it was woken since its last return. The reason may be gone by then, so the caller checks it again.
  void sleep() {
    jobs_.flush();
    semaphore_->acquire();
    is_woken_ = false;
  }

 private:
  Jobs& jobs_;
  s4u::SemaphorePtr semaphore_ = s4u::Semaphore::create(0);
  bool is_woken_ = false;
};

// An actor of the caller's.
struct Spawned {
  Spawned(std::string its_name, Jobs& jobs) : name(std::move(its_name)), sleeper(jobs) {}

  std::string name;
  s4u::ActorPtr actor;  // empty until it is made
  Sleeper sleeper;
  bool is_dying = false;  // its stack is being unwound, or will be
};

// Lives on the stack of the actor that waits; Leave takes it out of the gate before that stack goes.
struct Waiter {
  Sleeper& sleeper;
  bool is_through = false;
};

// A time at which something happens. What happens late at an instant comes after all that happens at it.
struct AgendaKey {
  TimePoint time;
  bool is_late = false;
  uint64_t number = 0;

  friend auto operator<=>(const AgendaKey&, const AgendaKey&) = default;
};

}  // namespace

struct Gate::Inside {
  bool is_open = false;
  std::deque<Waiter*> waiters;
};

Gate::Gate() : inside_(std::make_unique<Inside>()) {}
Gate::~Gate() = default;

void Gate::open() {
  if (inside_->waiters.empty()) {
    inside_->is_open = true;
    return;
  }
  Waiter* first = inside_->waiters.front();
  inside_->waiters.pop_front();
  first->is_through = true;
  first->sleeper.wake();
}

struct SimEngine::Inside {
  using Scope = ClusterLinks::Scope;

  struct Flow {
    uint64_t bytes = 0;
    double rate_max = 0;
    s4u::Host* from = nullptr;
    s4u::Host* to = nullptr;
    std::vector<uint32_t> path;
    std::function<void(const FlowResult&)> done;
    s4u::CommPtr moving;           // from the end of its latency on
    std::optional<FlowEnd> early;  // why it does not go on
    uint64_t early_bytes = 0;
    bool has_ended = false;  // all its bytes have moved
  };

  Inside(const ClusterLinks& cluster_links, TimePoint first)
      : links(cluster_links),
        origin(first),
        has_spine(!cluster_links.named("leaf0").empty()),
        engine(make_engine()),
        is_on(links.links().size(), true),
        carried(links.links().size(), 0.0),
        event_sleeper(jobs) {
    build_platform();
    start_actor("events", [this] { run_events(); });
    s4u::Engine::on_deadlock_cb([this] { note_deadlock(); });
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { note_completion(activity); });
  }

  // ---- Platform

  // A star: each place is a host for each scope, with the way out and the way in at that scope. Links have no latency
  // here, since SimGrid would share a link by the latencies of the flows on it.
  void build_platform() {
    s4u::NetZone* zone = s4u::create_star_zone("cluster");
    for (const LinkSpec& spec : links.links())
      sim_links.push_back(zone->create_link(spec.name, spec.bytes_per_s)->set_latency(0.0)->seal());
    control = zone->create_host("control", 1e9);
    within = zone->create_host("within", 1e9);
    add_ways(*zone, *within, {}, {});
    for (uint32_t machine = 0; links.has(Place{machine, PlaceKind::kDram, 0}); ++machine) {
      Place gpu{machine, PlaceKind::kGpu, 0};
      for (; links.has(gpu); ++gpu.index) add_place(*zone, gpu);
      add_place(*zone, Place{machine, PlaceKind::kDram, 0});
      add_place(*zone, Place{machine, PlaceKind::kSsd, 0});
    }
    zone->seal();
  }

  void add_place(s4u::NetZone& zone, const Place& place) {
    std::array<s4u::Host*, kScopeCount>& of_place = hosts[place];
    for (const Scope scope : {Scope::kPlace, Scope::kMachine, Scope::kHost, Scope::kLeaf, Scope::kSpine}) {
      if (!can_occur(place, scope)) continue;
      std::vector<uint32_t> out = links.way_out(place, scope);
      std::vector<uint32_t> in = links.way_in(place, scope);
      // A host does not reach itself over a star's links, so bytes that stay in a place go to a host without any.
      if (scope == Scope::kPlace) {
        out.insert(out.end(), in.begin(), in.end());
        in.clear();
      }
      const auto number = static_cast<size_t>(scope);
      of_place[number] = zone.create_host(place.to_text() + "/" + std::to_string(number), 1e9);
      add_ways(zone, *of_place[number], out, in);
    }
  }

  // The number of hosts is the cost of a platform, so only hosts that are used are made.
  bool can_occur(const Place& place, Scope scope) const {
    switch (scope) {
      case Scope::kPlace:
      case Scope::kHost: return true;
      case Scope::kMachine: return place.kind == PlaceKind::kGpu && links.has(Place{0, PlaceKind::kGpu, 1});
      case Scope::kLeaf: return links.has(Place{1, PlaceKind::kDram, 0});
      case Scope::kSpine: return has_spine;
    }
    check_failed("a known scope", __FILE__, __LINE__);
  }

  void add_ways(s4u::NetZone& zone, s4u::Host& host, const std::vector<uint32_t>& out,
                const std::vector<uint32_t>& in) {
    zone.add_route(host.get_netpoint(), nullptr, nullptr, nullptr, in_route(out), false);
    zone.add_route(nullptr, host.get_netpoint(), nullptr, nullptr, in_route(in), false);
  }

  std::vector<s4u::LinkInRoute> in_route(const std::vector<uint32_t>& way) {
    std::vector<s4u::LinkInRoute> route;
    for (const uint32_t link : way) route.emplace_back(sim_links[link]);
    return route;
  }

  s4u::ActorPtr start_actor(const std::string& name, const std::function<void()>& body) {
    return s4u::Actor::init(name, control)->set_stacksize(kActorStackBytes)->start(body);
  }

  // ---- Time

  // Rounding must not give a time before that of an event that has happened.
  TimePoint now() const {
    const TimePoint rounded = origin + Duration::from_ns(std::llround(s4u::Engine::get_clock() * 1e9));
    return std::max(rounded, last_due);
  }
  double clock_of(const AgendaKey& key) const {
    return (static_cast<double>((key.time - origin).ns()) + (key.is_late ? kLateNs : 0)) / 1e9;
  }
  bool is_due(const AgendaKey& key) const {
    return (!key.is_late && key.time <= now()) || clock_of(key) <= s4u::Engine::get_clock();
  }

  AgendaKey add_to_agenda(TimePoint time, bool is_late, std::function<void()> what) {
    const AgendaKey key{std::max(time, now()), is_late, agenda_count++};
    agenda.emplace(key, std::move(what));
    // Only the first entry needs a timer of SimGrid. One for each entry would cost a heap operation in SimGrid for each
    // deadline, of which most are never reached.
    if (agenda.begin()->first != key) return key;
    if (!is_late && is_due(key))
      event_sleeper.wake();
    else
      jobs.add([this] { set_timer(); });
    return key;
  }

  // Outside of actors: SimGrid stops at the first time of the agenda.
  void set_timer() {
    if (next_timer != nullptr) next_timer->remove();
    next_timer = nullptr;
    if (agenda.empty() || agenda.begin()->first.time == TimePoint::never()) return;
    const double clock_s = std::max(clock_of(agenda.begin()->first), s4u::Engine::get_clock());
    next_timer = timer::Timer::set(clock_s, [this] {
      next_timer = nullptr;
      event_sleeper.wake();
    });
  }

  void run_events() {
    while (!is_over) {
      // Taken out before it is called, because it may add entries of its own at the same instant.
      while (!agenda.empty() && is_due(agenda.begin()->first)) {
        auto first = agenda.extract(agenda.begin());
        // Time as now() gives it never goes back behind an event that has happened.
        last_due = std::max(last_due, first.key().time);
        first.mapped()();
        if (is_over) break;
      }
      if (is_over) break;
      jobs.add([this] { set_timer(); });
      event_sleeper.sleep();
    }
    // All actors have ended, so no flow has a reader; SimGrid warns about a flow that is destroyed while it moves.
    for (const auto& [id, flow] : flows) drop(flow);
    agenda.clear();
    jobs.add([this] { set_timer(); });
    jobs.flush();
  }

  // ---- Flows

  // After the latency. A flow that was cancelled or failed meanwhile has its end on the agenda already.
  void begin_moving(FlowId id) {
    const auto found = flows.find(id);
    if (found == flows.end() || found->second.early) return;
    if (found->second.bytes == 0)
      finish(id);
    else
      jobs.add([this, id] { move(id); });
  }

  void move(FlowId id) {
    const auto found = flows.find(id);
    if (found == flows.end() || found->second.early) return;
    Flow& flow = found->second;
    flow.moving = s4u::Comm::sendto_init(flow.from, flow.to);
    flow.moving->set_payload_size(flow.bytes)->start();
    moving.emplace(flow.moving.get(), id);
    if (flow.rate_max > 0) bound_newest(flow);
  }

  // SimGrid forgets the rate of a flow that belongs to no actor, so it is set where the model keeps it.
  void bound_newest(const Flow& flow) {
    for (simgrid::kernel::resource::Model* model : engine->get_all_models()) {
      auto* actions = model->get_started_action_set();
      if (actions->empty() || actions->back().get_activity() != flow.moving->get_impl()) continue;
      actions->back().set_bound(flow.rate_max);
      return;
    }
    check_failed("the network has the flow that was started last", __FILE__, __LINE__);
  }

  void note_completion(const s4u::Activity& activity) {
    // SimGrid reports a cancelled activity twice; it must live until the second report.
    if (dropped.contains(&activity) && activity.get_state() == s4u::Activity::State::FAILED)
      add_to_agenda(now(), false, [this, key = &activity] { dropped.erase(key); });
    const auto found = moving.find(&activity);
    if (found == moving.end()) return;
    const FlowId id = found->second;
    moving.erase(found);
    flows.at(id).has_ended = true;
    add_to_agenda(now(), false, [this, id] { finish(id); });
  }

  void end_early(FlowId id, FlowEnd end) {
    Flow& flow = flows.at(id);
    // The first end counts: a flow whose bytes have all moved is done, even when it is cancelled in the same instant.
    if (flow.early || flow.has_ended) return;
    flow.early = end;
    add_to_agenda(now(), false, [this, id] { finish(id); });
    if (!flow.moving) return;
    // SimGrid says 0 afterwards.
    const double moved = static_cast<double>(flow.bytes) - flow.moving->get_remaining();
    // Not all of them: the caller takes a flow that did not end kDone for incomplete. A flow that moves has at least
    // one byte (begin_moving), so the subtraction cannot wrap.
    flow.early_bytes = std::min(static_cast<uint64_t>(std::llround(std::max(moved, 0.0))), flow.bytes - 1);
    drop(flow);
  }

  // Cancelled outside of actors, and kept until SimGrid has reported it twice: a communication that is destroyed before
  // would log a backtrace.
  void drop(const Flow& flow) {
    if (moving.erase(flow.moving.get()) == 0) return;
    dropped.emplace(flow.moving.get(), flow.moving);
    jobs.add([comm = flow.moving] { comm->cancel(); });
  }

  // Taken out of the map first, since `done` may start other flows.
  void finish(FlowId id) {
    const Flow flow = std::move(flows.extract(id).mapped());
    FlowResult result;
    result.end = flow.early.value_or(FlowEnd::kDone);
    result.moved_bytes = flow.early ? flow.early_bytes : flow.bytes;
    for (const uint32_t link : flow.path) carried[link] += static_cast<double>(result.moved_bytes);
    if (flow.done) flow.done(result);
  }

  // ---- Actors

  // Empty in an actor of the engine and outside of actors.
  Spawned* current() {
    const auto found = id_of_pid.find(s4u::Actor::is_maestro() ? -1 : s4u::this_actor::get_pid());
    return found == id_of_pid.end() ? nullptr : &spawned.at(found->second);
  }

  // At the end of an actor, also when it is killed.
  struct End {
    Inside& inside;
    ActorId id;
    ~End() {
      // An actor that is unwound may make no call of SimGrid that waits, so its jobs are left to a timer.
      const bool is_unwound = inside.spawned.at(id).is_dying;
      inside.id_of_pid.erase(s4u::this_actor::get_pid());
      inside.spawned.erase(id);
      if (inside.spawned.empty()) {
        inside.is_over = true;
        inside.event_sleeper.wake();
      }
      if (is_unwound) inside.jobs.flush_later();
    }
  };

  void run_body(ActorId id, const std::function<void()>& body) {
    {
      const End end{*this, id};
      if (!spawned.at(id).is_dying) body();  // an actor that is killed before it runs gets this far
    }
    jobs.flush();
  }

  void make_actor(ActorId id, const std::function<void()>& body) {
    Spawned& actor = spawned.at(id);
    actor.actor = start_actor(actor.name, [this, id, body] { run_body(id, body); });
    id_of_pid.emplace(actor.actor->get_pid(), id);
  }

  void note_deadlock() {
    for (auto& [id, actor] : spawned) {
      stuck.push_back(actor.name);
      actor.is_dying = true;
    }
  }

  static constexpr size_t kScopeCount = 5;

  const ClusterLinks& links;
  TimePoint origin;
  bool has_spine;
  s4u::Engine* engine;
  std::vector<s4u::Link*> sim_links;
  std::map<Place, std::array<s4u::Host*, kScopeCount>> hosts;
  s4u::Host* control = nullptr;  // of all actors; never off
  s4u::Host* within = nullptr;   // where bytes go that stay in a place
  std::vector<char> is_on;
  std::vector<double> carried;

  Jobs jobs;
  Sleeper event_sleeper;
  std::map<AgendaKey, std::function<void()>> agenda;
  uint64_t agenda_count = 0;
  TimePoint last_due = TimePoint::from_ns(std::numeric_limits<int64_t>::min());
  timer::Timer* next_timer = nullptr;

  std::map<FlowId, Flow> flows;
  FlowId flow_count = 0;
  // Never iterated: the order of an unordered map must not be visible.
  std::unordered_map<const s4u::Activity*, FlowId> moving;
  std::unordered_map<const s4u::Activity*, s4u::CommPtr> dropped;  // and not let go by SimGrid yet

  std::map<ActorId, Spawned> spawned;  // that have not ended
  std::map<aid_t, ActorId> id_of_pid;
  ActorId spawn_count = 0;
  bool is_over = false;  // the last of them has ended
  std::vector<std::string> stuck;
};

SimEngine::SimEngine(const ClusterLinks& links, TimePoint origin) : inside_(std::make_unique<Inside>(links, origin)) {}
SimEngine::~SimEngine() = default;

TimePoint SimEngine::now() const { return inside_->now(); }

ActorId SimEngine::spawn(const std::string& name, std::function<void()> body) {
  const ActorId id = inside_->spawn_count++;
  inside_->spawned.try_emplace(id, name, inside_->jobs);
  inside_->jobs.add([inside = inside_.get(), id, body = std::move(body)] { inside->make_actor(id, body); });
  return id;
}

void SimEngine::kill(ActorId id) {
  Inside& inside = *inside_;
  const auto found = inside.spawned.find(id);
  if (found == inside.spawned.end() || found->second.is_dying) return;
  const Spawned* self = inside.current();
  CHECK(&found->second != self);
  found->second.is_dying = true;
  // Looked up again when the job runs: the victim may have ended by itself until then.
  inside.jobs.add([&inside, id] {
    const auto victim = inside.spawned.find(id);
    if (victim != inside.spawned.end() && victim->second.actor) victim->second.actor->kill();
  });
  if (s4u::Actor::is_maestro() || (self != nullptr && self->is_dying)) return;
  inside.jobs.flush();
  // Ends: the victim is unwound in this instant, and nothing on its stack waits (R7).
  while (inside.spawned.contains(id)) s4u::this_actor::yield();
  inside.jobs.flush();
}

bool SimEngine::wait(Gate& gate, TimePoint deadline) {
  Gate::Inside& inside = *gate.inside_;
  // An open gate before a deadline that has passed: what has happened is seen first.
  if (std::exchange(inside.is_open, false)) return true;
  if (deadline <= now()) return false;
  Spawned* self = inside_->current();
  CHECK(self != nullptr && !self->is_dying);
  Waiter waiter{self->sleeper};
  inside.waiters.push_back(&waiter);
  bool is_late = false;
  std::optional<AgendaKey> key;
  if (deadline != TimePoint::never())
    key = inside_->add_to_agenda(deadline, true, [&is_late, self] {
      is_late = true;
      self->sleeper.wake();
    });
  struct Leave {  // also when the actor is killed here
    SimEngine::Inside& engine;
    Gate::Inside& gate;
    Waiter& waiter;
    const std::optional<AgendaKey>& key;
    ~Leave() {
      std::erase(gate.waiters, &waiter);
      if (key) engine.agenda.erase(*key);
    }
  } const leave{*inside_, inside, waiter, key};
  // A wake may be left over from an earlier wait, so both reasons are looked at again.
  while (!waiter.is_through && !is_late) self->sleeper.sleep();
  return waiter.is_through;
}

void SimEngine::at(TimePoint time, std::function<void()> event) {
  inside_->add_to_agenda(time, false, std::move(event));
}

FlowId SimEngine::start(const Place& from, const Place& to, uint64_t bytes, double rate_max,
                        std::function<void(const FlowResult&)> done) {
  Inside& inside = *inside_;
  const ClusterLinks::Scope scope = inside.links.scope(from, to);
  const auto number = static_cast<size_t>(scope);
  Inside::Flow flow;
  flow.bytes = bytes;
  flow.rate_max = rate_max;
  flow.path = inside.links.path(from, to);
  flow.from = inside.hosts.at(from)[number];
  flow.to = scope == ClusterLinks::Scope::kPlace ? inside.within : inside.hosts.at(to)[number];
  flow.done = std::move(done);
  const bool is_way_on =
      std::all_of(flow.path.begin(), flow.path.end(), [&](uint32_t link) { return inside.is_on[link] != 0; });
  const FlowId id = inside.flow_count++;
  inside.flows.emplace(id, std::move(flow));
  if (is_way_on) {
    const Duration latency = Duration::from_ns(std::llround(inside.links.latency_s(from, to) * 1e9));
    at(now() + latency, [&inside, id] { inside.begin_moving(id); });
  } else {
    inside.end_early(id, FlowEnd::kFailed);
  }
  return id;
}

void SimEngine::cancel(FlowId flow) {
  if (inside_->flows.contains(flow)) inside_->end_early(flow, FlowEnd::kCancelled);
}

void SimEngine::set_link_on(uint32_t link, bool on) {
  if ((inside_->is_on.at(link) != 0) == on) return;
  inside_->is_on[link] = on ? 1 : 0;
  if (on) return;
  for (const auto& [id, flow] : inside_->flows)
    if (std::find(flow.path.begin(), flow.path.end(), link) != flow.path.end())
      inside_->end_early(id, FlowEnd::kFailed);
}

bool SimEngine::is_link_on(uint32_t link) const { return inside_->is_on.at(link) != 0; }

void SimEngine::set_link_factor(uint32_t link, double factor) {
  CHECK(factor > 0 && std::isfinite(factor));
  const double bytes_per_s = inside_->links.links().at(link).bytes_per_s * factor;
  inside_->jobs.add(
      [inside = inside_.get(), link, bytes_per_s] { inside->sim_links[link]->set_bandwidth(bytes_per_s); });
}

uint64_t SimEngine::flow_count() const { return inside_->flows.size(); }

const std::vector<double>& SimEngine::carried_bytes() const { return inside_->carried; }

std::vector<std::string> SimEngine::run() {
  // Without an actor there is nothing to wait for, and the events' actor ends at once.
  inside_->is_over = inside_->spawned.empty();
  inside_->engine->run();
  return inside_->stuck;
}

}  // namespace crossdock
