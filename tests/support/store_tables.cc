#include "tests/support/store_tables.h"

#include <utility>

namespace crossdock::testing {

Status StoreTables::call(Control& control, std::string_view kind, const std::function<Status()>& happen) {
  const bool counts = control.fault && (control.fault->kind.empty() || control.fault->kind == kind);
  if (!counts || control.calls++ != control.fault->call) return happen();
  control.failed = kind;
  if (control.fault->happens) TRY_STATUS(happen());
  return Status(control.fault->code, "made to fail");
}

class StoreTables::Records : public RecordTable {
 public:
  explicit Records(const StoreTables& all) : all_(all) {}

  Result<std::optional<std::string>> get(const std::string& key) const override {
    std::optional<std::string> found;
    TRY_STATUS(call(*all_.control_, "get", [&] {
      TRY(found, all_.records_->get(key));
      return Status();
    }));
    return found;
  }
  Status write(std::span<const RecordChange> changes, bool durable) override {
    if (*all_.observer_) (*all_.observer_)(changes, durable);
    return call(*all_.control_, "write", [&] { return all_.records_->write(changes, durable); });
  }
  Status scan(const std::string& prefix,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    return call(*all_.control_, "scan", [&] { return all_.records_->scan(prefix, visit); });
  }

 private:
  StoreTables all_;
};

class StoreTables::Writer : public SegmentWriter {
 public:
  Writer(std::unique_ptr<SegmentWriter> inner, std::shared_ptr<Control> control)
      : inner_(std::move(inner)), control_(std::move(control)) {}

  Status append(ObjectNumber object, uint32_t chunk, std::span<const std::byte> bytes) override {
    return call(*control_, "append", [&] { return inner_->append(object, chunk, bytes); });
  }
  uint64_t bytes() const override { return inner_->bytes(); }
  Status finish() override {
    return call(*control_, "finish", [&] { return inner_->finish(); });
  }
  std::unique_ptr<SegmentWriter> take() { return std::move(inner_); }

 private:
  std::unique_ptr<SegmentWriter> inner_;
  std::shared_ptr<Control> control_;
};

class StoreTables::Chunks : public ChunkTable {
 public:
  explicit Chunks(const StoreTables& all) : all_(all) {}

  Result<std::unique_ptr<SegmentWriter>> new_segment(uint64_t segment) override {
    std::unique_ptr<SegmentWriter> made;
    TRY_STATUS(call(*all_.control_, "new segment", [&] {
      TRY(made, all_.chunks_->new_segment(segment));
      return Status();
    }));
    return std::unique_ptr<SegmentWriter>(std::make_unique<Writer>(std::move(made), all_.control_));
  }
  Status add(std::vector<std::unique_ptr<SegmentWriter>> segments) override {
    std::vector<std::unique_ptr<SegmentWriter>> inner;
    for (const std::unique_ptr<SegmentWriter>& each : segments) inner.push_back(static_cast<Writer&>(*each).take());
    return call(*all_.control_, "add", [&] { return all_.chunks_->add(std::move(inner)); });
  }
  Status read(std::span<const ChunkName> names, const Take& take) const override {
    const Take changed = [&](size_t i, bool found, std::span<const std::byte> bytes) {
      const std::optional<ChunkDamage>& damage = *all_.damage_;
      if (!damage || names[i].object != damage->object || names[i].chunk != damage->chunk) return take(i, found, bytes);
      if (damage->what == ChunkDamage::What::kGone) return take(i, false, {});
      if (damage->what == ChunkDamage::What::kCut) return take(i, found, bytes.first(damage->byte));
      std::vector<std::byte> wrong(bytes.begin(), bytes.end());
      wrong.at(damage->byte) ^= std::byte{1};
      return take(i, found, wrong);
    };
    return call(*all_.control_, "read", [&] { return all_.chunks_->read(names, changed); });
  }
  Status remove(std::span<const uint64_t> segments) override {
    return call(*all_.control_, "remove", [&] { return all_.chunks_->remove(segments); });
  }
  Result<std::vector<uint64_t>> segments() const override {
    std::vector<uint64_t> found;
    TRY_STATUS(call(*all_.control_, "segments", [&] {
      TRY(found, all_.chunks_->segments());
      return Status();
    }));
    return found;
  }

 private:
  StoreTables all_;
};

std::unique_ptr<RecordTable> StoreTables::records() const { return std::make_unique<Records>(*this); }
std::unique_ptr<ChunkTable> StoreTables::chunks() const { return std::make_unique<Chunks>(*this); }

}  // namespace crossdock::testing
