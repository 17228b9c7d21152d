// SimEngine: SimGrid as a clock, actors, events and flows. engine.cc is the one file that includes SimGrid and catches
// its exceptions. There is one engine for each process, since SimGrid has one; sim/run/isolated.h runs many, each in a
// child.
//
// Actors take turns, so nothing here needs a lock, and the same calls give the same run. A turn ends only in wait() and
// in kill(); during any other call no other actor runs. All calls but these two are allowed while a stack is unwound.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "sim/scenario/cluster_links.h"

namespace crossdock {

// Where an actor waits. Opened once for each thing that happens; a gate that is open lets the next waiter through at
// once and closes behind it.
class Gate {
 public:
  Gate();
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open();  // from anywhere in the simulation

 private:
  friend class SimEngine;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

enum class FlowEnd { kDone, kFailed, kCancelled };

struct FlowResult {
  FlowEnd end = FlowEnd::kDone;
  uint64_t moved_bytes = 0;  // all when done; else how far it came, at most all but one
};

using ActorId = uint64_t;
using FlowId = uint64_t;

class SimEngine {
 public:
  // `origin` is what now() says when the simulation starts.
  SimEngine(const ClusterLinks& links, TimePoint origin);
  ~SimEngine();

  TimePoint now() const;

  // An actor ends when `body` returns. Killed, its stack is unwound from the call in which it waits (R7).
  ActorId spawn(const std::string& name, std::function<void()> body);
  // Nothing when it has ended; not the caller itself. It is unwound when kill() returns, and others may have run by
  // then. Called outside of actors, or by an actor that is being unwound itself, it is unwound later in the same
  // instant.
  void kill(ActorId actor);

  // In an actor: waits until the gate is open, or until the deadline; false when it came first. True wins when both
  // come at the same instant. now() >= deadline when it returns false.
  bool wait(Gate& gate, TimePoint deadline);

  // Calls `event` at that time (now, when it is past), in an actor of the engine's own that never waits inside; events
  // of one instant in the order in which they were added. Events that lie after the end of all actors do not come.
  void at(TimePoint time, std::function<void()> event);
  void after(Duration delay, std::function<void()> event) { at(now() + delay, std::move(event)); }

  // Bytes on their way; `done` is called once, in an actor of the engine, at the time of its end, never before start()
  // has returned. A link on its way that is off fails it at once. `rate_max` in bytes per second, or 0.
  FlowId start(const Place& from, const Place& to, uint64_t bytes, double rate_max,
               std::function<void(const FlowResult&)> done);
  void cancel(FlowId flow);  // a hint; done is called all the same

  // Numbers in ClusterLinks::links(). Off: flows on it fail, new ones too. `factor` of its bandwidth, above 0.
  void set_link_on(uint32_t link, bool on);
  bool is_link_on(uint32_t link) const;
  void set_link_factor(uint32_t link, double factor);
  uint64_t flow_count() const;  // under way

  // Bytes that passed each link so far, of flows that ended (all, or as far as they came).
  const std::vector<double>& carried_bytes() const;

  // Runs until the last spawned actor has ended. Names of the actors that wait for ever, when it cannot go on; they are
  // unwound then.
  std::vector<std::string> run();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace crossdock
