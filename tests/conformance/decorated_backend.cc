#include <deque>
#include <utility>

#include "tests/conformance/backend.h"
#include "tests/support/fault_ports.h"

namespace crossdock::testing {
namespace {

class DecoratedBackend : public Backend {
 public:
  explicit DecoratedBackend(std::unique_ptr<Backend> inside) : inside_(std::move(inside)) {}

  Ports join(const PeerId& name) override {
    return decorators_.emplace_back(inside_->join(name), PortFaultPlan()).ports();
  }
  Ports join_with_pages(const PeerId& name, Role role, const BindingPointer& binding,
                        const std::shared_ptr<const Valid<CacheSchema>>& schema) override {
    return decorators_.emplace_back(inside_->join_with_pages(name, role, binding, schema), PortFaultPlan()).ports();
  }
  Status add_memory(const RegionKey& key, std::span<std::byte> bytes) override {
    return inside_->add_memory(key, bytes);
  }
  std::shared_ptr<void> hold(const GrantId& grant, const RegionKey& key) override { return inside_->hold(grant, key); }
  void complete(const PeerId& name, Completion completion) override { inside_->complete(name, std::move(completion)); }
  void run_together(const std::vector<std::function<void()>>& bodies) override { inside_->run_together(bodies); }
  void pause() override { inside_->pause(); }
  void pass_time(Duration duration) override { inside_->pass_time(duration); }
  Status remove(const ContentId& content) override { return inside_->remove(content); }
  Status collect_garbage() override { return inside_->collect_garbage(); }
  StoreUse store_use() override { return inside_->store_use(); }

 private:
  std::unique_ptr<Backend> inside_;
  std::deque<FaultPorts> decorators_;
};

}  // namespace

BackendCase decorated(BackendCase inside) {
  return BackendCase{inside.name + "_decorated", [make = std::move(inside.make)](const BackendOptions& options) {
                       return std::make_unique<DecoratedBackend>(make(options));
                     }};
}

}  // namespace crossdock::testing
