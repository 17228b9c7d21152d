#include "sim/run/traffic_run.h"

#include <fmt/format.h>

namespace crossdock {
namespace {

// Sends one flow after another: round r of source i goes to target (i + r) % count.
class Sender : public Protocol {
 public:
  Sender(SimWorld& world, const WorkSpec& spec, size_t number, const bool& is_stopped, uint64_t& bytes)
      : world_(world), spec_(spec), number_(number), is_stopped_(is_stopped), bytes_(bytes) {}

  void set_node(SimNode& node) { node_ = &node; }
  // A protocol without posts: its flows are started at the engine, and wake() brings it back. A flow that fails counts
  // as a round too, so background traffic always ends.
  void advance(TimePoint, std::span<const Completion>, std::vector<Post>&) override {
    if (is_flowing_ || finished()) return;
    is_flowing_ = true;
    const size_t target = (number_ + round_) % spec_.target->parallel.participant_count();
    world_.start_flow(place_on(*spec_.source, world_.cluster(), number_),
                      place_on(*spec_.target, world_.cluster(), target), spec_.bytes, [this](const FlowResult& result) {
                        bytes_ += result.moved_bytes / world_.options().bytes_scale;
                        is_flowing_ = false;
                        ++round_;
                        node_->wake();
                      });
  }
  TimePoint wake_at() const override { return TimePoint::never(); }
  bool finished() const override { return !is_flowing_ && (round_ >= spec_.rounds || is_stopped_); }
  std::string state() const override { return "sending"; }

 private:
  SimWorld& world_;
  const WorkSpec& spec_;
  size_t number_;
  const bool& is_stopped_;
  uint64_t& bytes_;
  SimNode* node_ = nullptr;
  uint64_t round_ = 0;
  bool is_flowing_ = false;
};

}  // namespace

Status TrafficRun::prepare() {
  result_.kind = "traffic";
  for (size_t i = 0; i < spec_.source->parallel.participant_count(); ++i) {
    auto sender = std::make_unique<Sender>(world_, spec_, i, is_stopped_, result_.bytes);
    Sender& started = *sender;
    senders_.push_back(std::move(sender));
    SimNode& node = launch(PeerId(fmt::format("{} sender {}", spec_.name, i)),
                           place_on(*spec_.source, world_.cluster(), i), started, {}, nullptr);
    started.set_node(node);
  }
  return Status();
}

}  // namespace crossdock
