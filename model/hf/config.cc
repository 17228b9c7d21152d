#include "model/hf/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/hf/cache_fields.h"
#include "model/hf/families.h"

namespace crossdock {
namespace {

constexpr size_t kNamedMax = 8;  // close names in a message

// How many letters two names have in common at their begin.
size_t common_begin(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The known architectures that begin most alike; all of them would be a page.
std::string close_names(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Family& family : hf_families())
    if (names.empty() || names.back() != family.architecture) names.push_back(family.architecture);
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return common_begin(a, name) > common_begin(b, name);
  });
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamedMax); ++i)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", names[i]);
  return fmt::format("{} of {} known: {}", std::min(names.size(), kNamedMax), names.size(), text);
}

void refuse_family(const ConfigFields& fields, std::string_view name, const std::string& what) {
  fields.refuse(name, Rule::kConfigArchitecture,
                fmt::format("{}; --schema gives a cache schema for any other model", what));
}

// The first name in the list is the class that the checkpoint was saved from. Empty, with a diagnostic, without one.
std::string read_architecture(const ConfigFields& root) {
  std::string name;
  if (!root.has("architectures")) refuse_family(root, "architectures", fmt::format("is missing; {}", close_names("")));
  root.visit("architectures", [&](const JsonCursor& list) {
    if (!list.require(JsonKind::kArray)) return;
    const std::optional<JsonValue> first = list.value.first();
    if (!first) return refuse_family(root, "architectures", fmt::format("is empty; {}", close_names("")));
    const JsonPath path = list.path.element(0);
    if (JsonCursor{*first, path, list.diagnostics}.require(JsonKind::kString)) name = std::string(first->text());
  });
  return name;
}

// The rows of an architecture.
std::span<const Family> rows_of(std::string_view architecture) {
  const std::span<const Family> all = hf_families();
  const auto [begin, end] =
      std::equal_range(all.begin(), all.end(), Family{architecture, {}},
                       [](const Family& a, const Family& b) { return a.architecture < b.architecture; });
  return all.subspan(static_cast<size_t>(begin - all.begin()), static_cast<size_t>(end - begin));
}

// The row of the pair, or of the pairs outside and inside; null, with a diagnostic, when there is none. A class of the
// transformers library is chosen by model_type, so it has to be there; a part's has a default.
const Family* find_family(const ConfigFields& root, std::span<const Family> rows) {
  const std::optional<std::string> model_type = root.find_text("model_type");
  if (!model_type) {
    root.refuse_missing("model_type");
    return nullptr;
  }
  const auto names = [&](std::string_view Family::*member) {
    std::string text;
    std::string_view previous;
    for (const Family& row : rows)
      if (row.*member != previous) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", previous = row.*member);
    return text;
  };
  const auto outside =
      std::find_if(rows.begin(), rows.end(), [&](const Family& row) { return row.model_type == *model_type; });
  if (outside == rows.end()) {
    refuse_family(root, "model_type",
                  fmt::format("'{}' is not known for {}; known: {}", shown_text(*model_type), rows.front().architecture,
                              names(&Family::model_type)));
    return nullptr;
  }
  if (outside->text_field.empty()) return &*outside;
  if (!root.has(outside->text_field)) {
    root.refuse_missing(outside->text_field);
    return nullptr;
  }
  const Family* found = nullptr;
  root.visit_object(outside->text_field, [&](const ConfigFields& text) {
    const std::optional<std::string> inner = text.find_text("model_type");
    if (text.failed()) return;
    if (!inner) return void(found = &*outside);
    const auto inside = std::find_if(rows.begin(), rows.end(), [&](const Family& row) {
      return row.model_type == *model_type && row.text_model_type == *inner;
    });
    if (inside != rows.end()) return void(found = &*inside);
    refuse_family(text, "model_type",
                  fmt::format("'{}' is not a language model that is known for {}; known: {}", shown_text(*inner),
                              rows.front().architecture, names(&Family::text_model_type)));
  });
  return found;
}

// The draft layers' classes; empty, with a diagnostic, when the option asks for some that the model does not have.
std::vector<uint32_t> read_draft_layers(const ConfigInput& input, const Family& family, const ModelShape& shape) {
  if (!input.options.draft_layers) return {};
  if ((family.draft_field.empty() && !family.one_draft) || shape.draft_step.empty()) {
    if (!shape.draft_layers.empty()) return shape.draft_layers;
    refuse_option(input, "draft_layers",
                  family.draft_field.empty() && !family.one_draft
                      ? fmt::format("draft layers of {} are not known", family.architecture)
                      : fmt::format("the config does not say of which kind the draft layers of "
                                    "{} are",
                                    family.architecture));
    return {};
  }
  const uint64_t steps = family.one_draft ? 1 : input.text.find_number(family.draft_field).value_or(0);
  const uint64_t layer_count = shape.layers.size();
  if (steps == 0)
    refuse_option(input, "draft_layers", fmt::format("the config has none (field {})", family.draft_field));
  else if (steps > (kHfLayersMax - layer_count) / shape.draft_step.size())
    input.text.refuse(family.draft_field, fmt::format("{} and {} hidden layers are more than the limit of {}", steps,
                                                      layer_count, kHfLayersMax));
  if (input.root.failed() || input.text.failed()) return {};
  std::vector<uint32_t> layers;
  for (uint64_t step = 0; step < steps; ++step)
    layers.insert(layers.end(), shape.draft_step.begin(), shape.draft_step.end());
  return layers;
}

// An option about states is for a model that has some.
void check_state_options(const ConfigInput& input, const ModelShape& shape) {
  const bool has_states = std::any_of(shape.classes.begin(), shape.classes.end(), [](const LayerClass& each) {
    return std::any_of(each.begin(), each.end(), [](const ClassComponent& part) { return part.component.is_state(); });
  });
  if (has_states) return;
  if (input.options.conv_dtype) refuse_option(input, "conv_dtype", "the model has no states");
  if (input.options.ssm_dtype) refuse_option(input, "ssm_dtype", "the model has no states");
}

bool keeps_the_same(const LayerClass& a, const LayerClass& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ClassComponent& x, const ClassComponent& y) {
    return x.component == y.component && x.live == y.live;
  });
}

// One group for each class that keeps something; classes that keep the same are one.
CacheSchema to_schema(const ModelShape& shape, const std::vector<uint32_t>& layers) {
  CacheSchema schema;
  std::vector<size_t> first_alike(shape.classes.size());
  for (size_t i = 0; i < shape.classes.size(); ++i) {
    size_t j = 0;
    while (!keeps_the_same(shape.classes[j], shape.classes[i])) ++j;
    first_alike[i] = j;
  }
  for (size_t number = 0; number < shape.classes.size(); ++number) {
    if (shape.classes[number].empty() || first_alike[number] != number) continue;
    std::vector<Range> ranges;
    for (uint64_t layer = 0; layer < layers.size(); ++layer) {
      if (first_alike[layers[layer]] != number) continue;
      if (!ranges.empty() && ranges.back().end() == layer)
        ranges.back() = Range(ranges.back().begin(), layer + 1);
      else
        ranges.emplace_back(layer, layer + 1);
    }
    if (ranges.empty()) continue;
    LayerGroup group;
    group.layers = IntervalSet::from_ranges(std::move(ranges));
    for (const ClassComponent& each : shape.classes[number]) {
      group.components.push_back(each.component);
      group.component_life.push_back({each.component.name, each.live});
    }
    schema.groups.push_back(std::move(group));
  }
  return schema;
}

std::optional<HfModel> read_model(const ConfigInput& input, const Family& family) {
  std::optional<ModelShape> shape = family.read(input);
  if (!shape || input.root.failed() || input.text.failed()) return std::nullopt;
  refuse_unread_cache_fields(input.text);  // a reader that was refused has not asked for all
  check_state_options(input, *shape);
  if (input.root.failed() || input.text.failed()) return std::nullopt;
  const std::vector<uint32_t> draft_layers = read_draft_layers(input, family, *shape);
  if (input.root.failed() || input.text.failed()) return std::nullopt;
  std::vector<uint32_t> layers = shape->layers;
  layers.insert(layers.end(), draft_layers.begin(), draft_layers.end());
  CacheSchema made = to_schema(*shape, layers);
  Diagnostics& diagnostics = input.root.cursor().diagnostics;
  const std::string document = diagnostics.document();
  std::optional<Valid<CacheSchema>> schema = Valid<CacheSchema>::make(std::move(made), diagnostics);
  diagnostics.set_document(document);  // validation names the schema, which is in no file
  if (!schema) return std::nullopt;
  HfModel model{std::string(family.architecture),
                std::string(family.text_model_type.empty() ? family.model_type : family.text_model_type),
                shape->layers.size(),
                draft_layers.size(),
                std::move(*schema),
                std::move(input.notes),
                {}};
  for (const std::string& name : input.root.asked())
    if (input.root.cursor().value.find(name)) model.fields.push_back(name);
  if (&input.root != &input.text)
    for (const std::string& name : input.text.asked())
      if (input.text.cursor().value.find(name)) model.fields.push_back(fmt::format("{}.{}", family.text_field, name));
  return model;
}

}  // namespace

std::optional<HfModel> read_hf_config(std::string_view json, const HfOptions& options, const JsonLimits& limits,
                                      Diagnostics& diagnostics) {
  const std::optional<JsonTree> tree = JsonTree::parse(json, limits, diagnostics);
  if (!tree) return std::nullopt;
  diagnostics.set_document("model config");
  const JsonPath root_path;
  const JsonCursor root_cursor = {tree->root(), root_path, diagnostics};
  if (!root_cursor.require(JsonKind::kObject)) return std::nullopt;
  AskedFields root_asked;
  const ConfigFields unnamed(root_cursor, {}, root_asked);
  const std::string architecture = read_architecture(unnamed);
  if (architecture.empty()) return std::nullopt;
  const std::span<const Family> rows = rows_of(architecture);
  if (rows.empty()) {
    refuse_family(unnamed, "architectures",
                  fmt::format("'{}' is not known; {}", shown_text(architecture), close_names(architecture)));
    return std::nullopt;
  }
  diagnostics.set_document(fmt::format("model config '{}'", architecture));
  const ConfigFields root(root_cursor, rows.front().architecture, root_asked);
  const Family* family = find_family(root, rows);
  if (family == nullptr) return std::nullopt;
  std::vector<std::string> notes;
  if (family->text_field.empty()) return read_model({root, root, options, notes}, *family);
  std::optional<HfModel> model;
  root.visit(family->text_field, [&](const JsonCursor& text_cursor) {
    AskedFields text_asked = {"model_type"};
    const ConfigFields text(text_cursor, family->architecture, text_asked);
    model = read_model({root, text, options, notes}, *family);
  });
  return model;
}

std::vector<HfFamily> known_hf_families() {
  std::vector<HfFamily> families;
  for (const Family& family : hf_families())
    families.push_back({family.architecture, family.model_type, family.text_model_type});
  return families;
}

}  // namespace crossdock
