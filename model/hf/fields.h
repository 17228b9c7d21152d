// Typed access to the fields of a model config.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "model/wire/decode.h"

namespace crossdock {

// Text of a config in a message, cut when it is long.
std::string shown_text(std::string_view text);

// The names that a reader has asked for, whether the config has them or not.
using AskedFields = std::set<std::string, std::less<>>;

// One object of a config. A field that is null counts as absent. Each reader adds a diagnostic for a field that is
// there but is not what it should be; a caller of several asks failed() once, at the end.
class ConfigFields {
 public:
  // `architecture` names, in diagnostics, the class that needs a field that is missing. `asked` outlives this object.
  ConfigFields(const JsonCursor& cursor, std::string_view architecture, AskedFields& asked, std::string prefix = {})
      : cursor_(cursor),
        architecture_(architecture),
        asked_(&asked),
        prefix_(std::move(prefix)),
        diagnostics_before_(cursor.diagnostics.total()) {}

  // A diagnostic was added since this object was made.
  bool failed() const { return cursor_.diagnostics.total() != diagnostics_before_; }
  std::string_view architecture() const { return architecture_; }
  const JsonCursor& cursor() const { return cursor_; }
  // "linear_attn_config.head_dim" for a field of an object within.
  const AskedFields& asked() const { return *asked_; }

  // False also for null.
  bool has(std::string_view name) const { return find(name).has_value(); }
  // There and null: in some classes this differs from absent.
  bool is_null(std::string_view name) const;
  // Neither there nor null.
  bool is_absent(std::string_view name) const { return !has(name) && !is_null(name); }

  // Each is empty when the field is absent or refused. A count is at least 1.
  std::optional<uint64_t> find_number(std::string_view name) const;
  std::optional<uint64_t> find_count(std::string_view name) const;
  std::optional<bool> find_flag(std::string_view name) const;
  std::optional<std::string> find_text(std::string_view name) const;

  // The field, or `fallback`; with neither, a diagnostic.
  std::optional<uint64_t> count(std::string_view name, std::optional<uint64_t> fallback = std::nullopt) const;

  // Rule "config-field" at the field.
  void refuse(std::string_view name, std::string message) const {
    refuse(name, Rule::kConfigField, std::move(message));
  }
  void refuse(std::string_view name, Rule rule, std::string message) const;
  void refuse_missing(std::string_view name) const;

  // Calls read(const JsonCursor&) with the field, unless it is absent.
  template <class Read>
  void visit(std::string_view name, Read read) const {
    const std::optional<JsonValue> value = find(name);
    if (!value) return;
    const JsonPath path = cursor_.path.field(name);
    read(JsonCursor{*value, path, cursor_.diagnostics});
  }
  // Calls read(const ConfigFields&) with the object in the field, unless it is absent or no object.
  template <class Read>
  void visit_object(std::string_view name, Read read) const {
    visit(name, [&](const JsonCursor& cursor) {
      if (cursor.require(JsonKind::kObject))
        read(ConfigFields(cursor, architecture_, *asked_, fmt::format("{}{}.", prefix_, name)));
    });
  }

 private:
  std::optional<JsonValue> find(std::string_view name) const;
  void note_asked(std::string_view name) const { asked_->insert(prefix_ + std::string(name)); }

  const JsonCursor& cursor_;
  std::string_view architecture_;
  AskedFields* asked_;
  std::string prefix_;
  uint64_t diagnostics_before_;
};

}  // namespace crossdock
