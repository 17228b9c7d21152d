// What a family of architectures makes of a config, before it becomes a cache schema, and the pieces to make it from.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/hf/config.h"
#include "model/hf/fields.h"
#include "model/kv/cache_schema.h"

namespace crossdock {

// One component of a layer, and which of its rows live.
struct ClassComponent {
  Component component;
  LiveTokens live = {};
};

// What one kind of layer keeps; empty: nothing.
using LayerClass = std::vector<ClassComponent>;

struct ModelShape {
  std::vector<LayerClass> classes;
  std::vector<uint32_t> layers;             // class of each hidden layer
  std::vector<uint32_t> draft_step;         // class of each layer of one draft step; empty: draft layers are not known
  std::vector<uint32_t> draft_layers = {};  // of all draft layers, where the config states each; else by draft_step

  // Adds a class, and returns its number.
  uint32_t add(LayerClass layer_class);
};

struct ConfigInput {
  const ConfigFields& root;
  const ConfigFields& text;  // the language model's fields; the root itself unless the model is more than that
  const HfOptions& options;
  std::vector<std::string>& notes;

  bool is_vllm() const { return options.engine == Engine::kVllm; }
};

// num_hidden_layers, within kHfLayersMax.
std::optional<uint64_t> read_layer_count(const ConfigFields& text, std::optional<uint64_t> fallback = std::nullopt);

// A word of a list of layers, and the class that it stands for.
struct LayerWord {
  std::string_view word;
  uint32_t layer_class;
};
// The classes that the list `name` states, one for each of `layer_count` layers and at most `more` behind them; empty,
// with a diagnostic, when it has another length or another word. The field has to be there.
std::vector<uint32_t> read_layer_list(const ConfigFields& text, std::string_view name, uint64_t layer_count,
                                      std::span<const LayerWord> words, uint64_t more = 0);
// A list of `layer_count` unsigned numbers and at most `more` behind them; empty, with a diagnostic, otherwise.
std::vector<uint64_t> read_number_list(const ConfigFields& text, std::string_view name, uint64_t layer_count,
                                       uint64_t more = 0);
// Every `period`-th layer is `last`, the others are `other`. `period` must not be zero.
std::vector<uint32_t> periodic_layers(uint64_t layer_count, uint64_t period, uint32_t other, uint32_t last);

// Attention over `window` tokens, the present one among them: the tokens before it that the next one needs. 1 is
// refused at `name`: such a layer keeps nothing.
std::optional<LiveTokens> sliding(const ConfigFields& text, std::string_view name, uint64_t window);

// Rule "config-field" for what an option asks and this model cannot give.
void refuse_option(const ConfigInput& input, std::string_view option, std::string message);

}  // namespace crossdock
