#include "model/hf/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crossdock {
namespace {

std::string known_words(std::span<const LayerWord> words) {
  std::string names;
  for (const LayerWord& word : words) names += fmt::format("{}{}", names.empty() ? "" : ", ", word.word);
  return names;
}

// Whether the list has one entry for each layer, or up to `more` behind them.
bool has_length(const ConfigFields& text, const JsonCursor& list, uint64_t layer_count, uint64_t more) {
  if (!list.require(JsonKind::kArray)) return false;
  const uint64_t size = list.value.size();
  if (size >= layer_count && size - layer_count <= more) return true;
  list.refuse(Rule::kConfigField, more == 0
                                      ? fmt::format("has {} entries for {} layers", size, layer_count)
                                      : fmt::format("has {} entries for {} layers and up to {} draft layers of {}",
                                                    size, layer_count, more, text.architecture()));
  return false;
}

}  // namespace

uint32_t ModelShape::add(LayerClass layer_class) {
  classes.push_back(std::move(layer_class));
  return static_cast<uint32_t>(classes.size() - 1);
}

std::optional<uint64_t> read_layer_count(const ConfigFields& text, std::optional<uint64_t> fallback) {
  const std::optional<uint64_t> layer_count = text.count("num_hidden_layers", fallback);
  if (!layer_count || *layer_count <= kHfLayersMax) return layer_count;
  text.refuse("num_hidden_layers", fmt::format("{} layers, more than the limit of {}", *layer_count, kHfLayersMax));
  return std::nullopt;
}

std::vector<uint32_t> read_layer_list(const ConfigFields& text, std::string_view name, uint64_t layer_count,
                                      std::span<const LayerWord> words, uint64_t more) {
  std::vector<uint32_t> classes;
  if (!text.has(name)) text.refuse_missing(name);
  text.visit(name, [&](const JsonCursor& list) {
    if (!has_length(text, list, layer_count, more)) return;
    const uint64_t diagnostics_before = list.diagnostics.total();
    list.for_each([&](const JsonCursor& item) {
      if (!item.require(JsonKind::kString)) return;
      const std::string_view word = item.value.text();
      const auto known =
          std::find_if(words.begin(), words.end(), [&](const LayerWord& each) { return each.word == word; });
      if (known != words.end()) return classes.push_back(known->layer_class);
      item.refuse(Rule::kConfigField, fmt::format("'{}' is not a layer type of {}; known: {}", shown_text(word),
                                                  text.architecture(), known_words(words)));
    });
    if (list.diagnostics.total() != diagnostics_before) classes.clear();
  });
  return classes;
}

std::vector<uint64_t> read_number_list(const ConfigFields& text, std::string_view name, uint64_t layer_count,
                                       uint64_t more) {
  std::vector<uint64_t> numbers;
  if (!text.has(name)) text.refuse_missing(name);
  text.visit(name, [&](const JsonCursor& list) {
    if (!has_length(text, list, layer_count, more)) return;
    const uint64_t diagnostics_before = list.diagnostics.total();
    list.for_each([&](const JsonCursor& item) { numbers.push_back(item.unsigned_integer()); });
    if (list.diagnostics.total() != diagnostics_before) numbers.clear();
  });
  return numbers;
}

std::vector<uint32_t> periodic_layers(uint64_t layer_count, uint64_t period, uint32_t other, uint32_t last) {
  std::vector<uint32_t> classes;
  classes.reserve(layer_count);
  for (uint64_t layer = 0; layer < layer_count; ++layer) classes.push_back((layer + 1) % period == 0 ? last : other);
  return classes;
}

std::optional<LiveTokens> sliding(const ConfigFields& text, std::string_view name, uint64_t window) {
  if (window > 1) return LiveTokens::window(window - 1);
  text.refuse(name, fmt::format("a window of {} token keeps none before the next one", window));
  return std::nullopt;
}

void refuse_option(const ConfigInput& input, std::string_view option, std::string message) {
  input.root.cursor().diagnostics.add(Rule::kConfigField, fmt::format("option {}", option), std::move(message));
}

}  // namespace crossdock
