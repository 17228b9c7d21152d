#include "cli/log_observer.h"

#include <fmt/format.h>

#include <utility>

#include "cli/log.h"

namespace crossdock::cli {
namespace {

class LogObserver : public ProtocolObserver {
 public:
  LogObserver(std::string name, std::unique_ptr<ProtocolObserver> inner)
      : name_(std::move(name)), inner_(std::move(inner)) {}

  void advancing(Protocol& protocol) override {
    if (inner_ != nullptr) inner_->advancing(protocol);
  }
  void advanced(TimePoint now, std::span<const Completion> completions, std::span<const Post> posts,
                const Protocol& protocol) override {
    if (std::string state = protocol.state(); state != state_) {
      log_info(fmt::format("{}: {}", name_, state));
      state_ = std::move(state);
    }
    if (logs_debug()) log_round(completions, posts);
    if (inner_ != nullptr) inner_->advanced(now, completions, posts, protocol);
  }

 private:
  void log_round(std::span<const Completion> completions, std::span<const Post> posts) const {
    for (const Completion& completion : completions)
      if (!completion.status.ok())
        log_debug(fmt::format("{}: operation {} {}: {}: {}", name_, completion.op.value(),
                              completion.posted ? "failed" : "was refused", code_name(completion.status.code()),
                              completion.status.message()));
    for (const Post& post : posts) log_debug(fmt::format("{}: posts {} {}", name_, post.name(), post.op.value()));
  }

  const std::string name_;
  const std::unique_ptr<ProtocolObserver> inner_;
  std::string state_;
};

}  // namespace

std::unique_ptr<ProtocolObserver> logged(std::string name, std::unique_ptr<ProtocolObserver> inner) {
  // Without an observer of its own a protocol pays nothing for a log that is off.
  if (!logs_info()) return inner;
  return std::make_unique<LogObserver>(std::move(name), std::move(inner));
}

}  // namespace crossdock::cli
