// Transport of a simulated participant: a copy is one flow between the places of its two ends.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor/ports.h"
#include "sim/world/sim_node.h"

namespace crossdock {

struct FlowResult;

class SimTransport : public Transport {
 public:
  explicit SimTransport(SimNode& node) : node_(node) {}

  Status post_copy(OpId op, const Grant& grant, const StepSpan& steps) override;
  Status post_checksum(OpId op, const StepSpan& steps, StepEnd end) override;
  Status post_grant(OpId op, const GrantRequest& request) override;
  Status post_revoke(OpId op, const RevokeRequest& request) override;
  void cancel(OpId op) override;

  // Copies that did not complete OK, for whatever reason; they may have landed in part (R3).
  uint64_t failed_copy_count() const { return failed_copy_count_; }
  // What becomes of its copies when the process dies; `delay` is of kLate.
  void poster_died(Fate fate, Duration delay);

 private:
  friend class SimWorld;

  enum class Stop { kNone, kPause, kCancel, kRevoke, kDeath };  // of several reasons the last in this list counts
  // One posted copy. It is in copies_ until it completes; the world's events hold it longer.
  struct Copy {
    OpId op;
    GrantId grant;
    StepSpan steps;
    uint64_t bytes = 0;       // of content
    uint64_t landed = 0;      // of those, in the order of the steps
    uint64_t flow_begin = 0;  // the flow under way carries what is behind this byte
    uint64_t flow = 0;
    bool is_flowing = false;
    bool is_over = false;
    Stop stop = Stop::kNone;
    Fate fate = Fate::kLost;
    Duration late_after;
    bool flips_bit = false;                      // of the bytes that land next
    std::optional<PartialWrite> fails_after;     // what lands of it before it fails
    std::vector<std::function<void()>> stopped;  // called once the flow has ended, one for each stop()
  };
  using CopyPointer = std::shared_ptr<Copy>;

  // The life of a copy: begin -> flow -> flow_ended -> land -> end. stop() leads from any point to flow_ended() or
  // end().
  void begin(const CopyPointer& copy);
  void flow(const CopyPointer& copy);
  void flow_ended(const CopyPointer& copy, const FlowResult& result);
  Status land(Copy& copy, uint64_t end);
  void land_later(const CopyPointer& copy, Duration delay);
  void end(const CopyPointer& copy, Status status);
  // Ends its flow; `then` is called once it has.
  void stop(const CopyPointer& copy, Stop why, std::function<void()> then);

  SimNode& node_;
  std::map<OpId, CopyPointer> copies_;
  uint64_t failed_copy_count_ = 0;
};

}  // namespace crossdock
