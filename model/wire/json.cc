#include "model/wire/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace crossdock {
namespace {

// The parser checks the grammar, UTF-8 and the range of numbers; this file checks what the parser lets pass: limits,
// repeated fields, a byte order mark, NUL bytes. Limits are checked before a value is stored, so a hostile text costs
// memory in proportion to its own size at most.

using Sax = nlohmann::json_sax<nlohmann::json>;

constexpr size_t kShownBytesMax = 60;  // of the document's own text in a message
constexpr size_t kReasonBytesMax = 240;

// nlohmann's message without its own prefix: "[json.exception.parse_error.101] parse error at line 1, column 2: ...".
std::string reason_of(const nlohmann::detail::exception& error) {
  std::string_view message = error.what();
  for (const std::string_view prefix : {"] ", "parse error at "}) {
    const size_t found = message.find(prefix);
    if (found != std::string_view::npos) message.remove_prefix(found + prefix.size());
  }
  return shorten(message, kReasonBytesMax);
}

}  // namespace

// Builds the tree from parser events. Each handler returns false to stop the parser; the reason is then in the
// diagnostics.
class JsonTreeBuilder final : public Sax {
 public:
  JsonTreeBuilder(JsonTree& tree, const JsonLimits& limits, Diagnostics& diagnostics)
      : tree_(tree), limits_(limits), diagnostics_(diagnostics) {}

  bool null() override { return add(JsonKind::kNull, 0); }
  bool boolean(bool value) override { return add(JsonKind::kBool, value ? 1 : 0); }
  bool number_integer(number_integer_t value) override {
    // Signed integers are negative here, or "-0", which the parser gives as 0.
    return add_text(JsonKind::kOtherNumber, value == 0 ? "-0" : fmt::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override { return add(JsonKind::kUnsigned, value); }
  bool number_float(number_float_t, const string_t& text) override { return add_text(JsonKind::kOtherNumber, text); }
  bool string(string_t& value) override { return add_text(JsonKind::kString, value); }
  bool binary(binary_t&) override { return refuse(Rule::kJsonSyntax, "binary values are not JSON"); }

  bool start_object(size_t) override { return open(JsonKind::kObject); }
  bool start_array(size_t) override { return open(JsonKind::kArray); }
  bool end_object() override {
    // At the end of the object, when all of its keys are known. A repeated field is refused and never resolved: two
    // readers could resolve it differently.
    if (!check_keys_differ()) return false;
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    const uint64_t text = store(name);
    key_begin_ = static_cast<uint32_t>(text >> 32);
    key_size_ = static_cast<uint32_t>(text);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    return refuse(Rule::kJsonSyntax, reason_of(error));
  }

 private:
  struct Open {
    uint32_t node;
    uint32_t last_child;
  };

  bool refuse(Rule rule, std::string message) {
    diagnostics_.add(rule, place(), std::move(message));
    return false;
  }

  // "parts[3].owns": where in the document the builder is.
  std::string place() const {
    std::string path;
    for (size_t i = 1; i < open_.size(); ++i) {
      const JsonTree::Node& node = tree_.nodes_[open_[i].node];
      const JsonTree::Node& parent = tree_.nodes_[open_[i - 1].node];
      if (parent.kind == JsonKind::kArray)
        path += fmt::format("[{}]", parent.child_count - 1);
      else
        path += fmt::format("{}{}", path.empty() ? "" : ".",
                            shorten(tree_.text_at(uint64_t{node.key_begin} << 32 | node.key_size), kShownBytesMax));
    }
    return path;
  }

  uint64_t store(std::string_view text) {
    const uint64_t begin = tree_.text_.size();  // fits in 32 bits: no longer than the document
    tree_.text_.append(text);
    return begin << 32 | text.size();
  }

  bool add_text(JsonKind kind, std::string_view text) { return add(kind, store(text)); }

  bool add(JsonKind kind, uint64_t payload) {
    if (tree_.nodes_.size() >= limits_.values_max)
      return refuse(Rule::kJsonValues, fmt::format("more than the limit of {} values", limits_.values_max));
    // Below values_max, which has 32 bits.
    const auto index = static_cast<uint32_t>(tree_.nodes_.size());
    JsonTree::Node node;
    node.kind = kind;
    node.payload = payload;
    if (!open_.empty()) {
      Open& parent = open_.back();
      JsonTree::Node& parent_node = tree_.nodes_[parent.node];
      if (parent_node.kind == JsonKind::kObject) {
        node.key_begin = key_begin_;
        node.key_size = key_size_;
      }
      if (parent.last_child == JsonTree::kNone)
        parent_node.payload = index;
      else
        tree_.nodes_[parent.last_child].next = index;
      parent.last_child = index;
      ++parent_node.child_count;
    }
    tree_.nodes_.push_back(node);
    return true;
  }

  bool open(JsonKind kind) {
    if (open_.size() >= limits_.depth_max)
      return refuse(Rule::kJsonDepth, fmt::format("nested deeper than the limit of {}", limits_.depth_max));
    if (!add(kind, 0)) return false;
    open_.push_back(Open{static_cast<uint32_t>(tree_.nodes_.size() - 1), JsonTree::kNone});
    return true;
  }

  // Sorted, so that a hostile object with many fields costs O(n log n).
  bool check_keys_differ() {
    const JsonTree::Node& object = tree_.nodes_[open_.back().node];
    keys_.clear();
    uint32_t child = object.child_count == 0 ? JsonTree::kNone : static_cast<uint32_t>(object.payload);
    for (; child != JsonTree::kNone; child = tree_.nodes_[child].next) {
      const JsonTree::Node& node = tree_.nodes_[child];
      // Views into text_, which does not grow before keys_ was used.
      keys_.push_back(tree_.text_at(uint64_t{node.key_begin} << 32 | node.key_size));
    }
    if (!std::is_sorted(keys_.begin(), keys_.end())) std::sort(keys_.begin(), keys_.end());
    const auto repeated = std::adjacent_find(keys_.begin(), keys_.end());
    if (repeated == keys_.end()) return true;
    return refuse(Rule::kFieldRepeated, fmt::format("field '{}' is listed twice", shorten(*repeated, kShownBytesMax)));
  }

  JsonTree& tree_;
  const JsonLimits& limits_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
  std::vector<std::string_view> keys_;
  uint32_t key_begin_ = 0;
  uint32_t key_size_ = 0;
};

std::optional<JsonTree> JsonTree::parse(std::string_view text, const JsonLimits& limits, Diagnostics& diagnostics) {
  // Positions in text_ have 32 bits.
  CHECK(limits.bytes_max <= UINT32_MAX);
  if (text.size() > limits.bytes_max) {
    diagnostics.add(Rule::kJsonBytes, "",
                    fmt::format("{} bytes, more than the limit of {}", text.size(), limits.bytes_max));
    return std::nullopt;
  }
  if (text.starts_with("\xef\xbb\xbf")) {  // which the parser would skip
    diagnostics.add(Rule::kJsonSyntax, "", "line 1, column 1: a byte order mark");
    return std::nullopt;
  }
  if (const size_t at = text.find('\0'); at != std::string_view::npos) {  // which the parser would take for the end
    diagnostics.add(Rule::kJsonSyntax, "", fmt::format("byte {} of {} is NUL", at + 1, text.size()));
    return std::nullopt;
  }
  JsonTree tree;
  JsonTreeBuilder builder(tree, limits, diagnostics);
  if (!nlohmann::json::sax_parse(text, &builder)) return std::nullopt;
  return tree;
}

std::string_view JsonTree::text_at(uint64_t begin_and_size) const {
  return std::string_view(text_).substr(begin_and_size >> 32, begin_and_size & UINT32_MAX);
}

JsonKind JsonValue::kind() const { return tree_->nodes_[index_].kind; }

bool JsonValue::as_bool() const {
  CHECK(kind() == JsonKind::kBool);
  return tree_->nodes_[index_].payload != 0;
}

uint64_t JsonValue::as_unsigned() const {
  CHECK(kind() == JsonKind::kUnsigned);
  return tree_->nodes_[index_].payload;
}

std::string_view JsonValue::text() const {
  CHECK(kind() == JsonKind::kString || kind() == JsonKind::kOtherNumber);
  return tree_->text_at(tree_->nodes_[index_].payload);
}

uint32_t JsonValue::size() const { return tree_->nodes_[index_].child_count; }

std::optional<JsonValue> JsonValue::first() const {
  if (size() == 0) return std::nullopt;
  return JsonValue(tree_, static_cast<uint32_t>(tree_->nodes_[index_].payload));
}

std::optional<JsonValue> JsonValue::next() const {
  const uint32_t next = tree_->nodes_[index_].next;
  if (next == JsonTree::kNone) return std::nullopt;
  return JsonValue(tree_, next);
}

std::string_view JsonValue::key() const {
  const JsonTree::Node& node = tree_->nodes_[index_];
  return tree_->text_at(uint64_t{node.key_begin} << 32 | node.key_size);
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  for (std::optional<JsonValue> field = first(); field; field = field->next())
    if (field->key() == key) return field;
  return std::nullopt;
}

std::string_view json_kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kBool: return "a boolean";
    case JsonKind::kUnsigned: return "an integer";
    case JsonKind::kOtherNumber: return "a number";
    case JsonKind::kString: return "a string";
    case JsonKind::kArray: return "an array";
    case JsonKind::kObject: return "an object";
  }
  check_failed("a known JSON kind", __FILE__, __LINE__);
}

}  // namespace crossdock
