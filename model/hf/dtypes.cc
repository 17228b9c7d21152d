#include "model/hf/dtypes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"

namespace crossdock {
namespace {

constexpr uint64_t kItemsPerByte = 2;    // of a 4-bit dtype
constexpr uint64_t kItemsPerScale = 16;  // NVFP4: one fp8 scale for 16 items

// A name that --kv-dtype takes.
struct KvName {
  std::string_view name;
  KvType::Form form;
  std::string_view dtype;  // of kPlain
  bool vllm;
  bool sglang;
};

using Form = KvType::Form;
// vLLM: config/cache.py, CacheDType, and utils/torch_utils.py. SGLang: server_args.py, --kv-cache-dtype. PyTorch's own
// names are taken too, whatever the engine. The order is that of the list in messages.
constexpr std::array kKvNames = {
    KvName{"fp8", Form::kPlain, "float8_e4m3fn", true, false},
    KvName{"fp8_e4m3", Form::kPlain, "float8_e4m3fn", true, true},
    KvName{"fp8_e5m2", Form::kPlain, "float8_e5m2", true, true},
    KvName{"bfloat16", Form::kPlain, "bfloat16", true, true},
    KvName{"bf16", Form::kPlain, "bfloat16", false, true},
    KvName{"float16", Form::kPlain, "float16", true, true},
    KvName{"nvfp4", Form::kNvfp4, "", true, true},
    KvName{"fp4_mx_block16", Form::kNvfp4, "", false, true},
    KvName{"fp8_ds_mla", Form::kDsMla, "", true, true},
    KvName{"float8_e4m3fn", Form::kPlain, "float8_e4m3fn", true, true},
    KvName{"float8_e5m2", Form::kPlain, "float8_e5m2", true, true},
    KvName{"float8_e4m3fnuz", Form::kPlain, "float8_e4m3fnuz", true, true},
    KvName{"float8_e5m2fnuz", Form::kPlain, "float8_e5m2fnuz", true, true},
    KvName{"float4_e2m1fn_x2", Form::kFp4, "", true, true},
};

ItemType item_of(std::string_view dtype) {
  const std::string name(dtype);
  return ItemType{name, known_item_bytes(name).value_or(0)};
}

bool is_of_engine(const KvName& name, Engine engine) { return engine == Engine::kVllm ? name.vllm : name.sglang; }

// What models compute in; a quantised checkpoint names one of them too.
std::optional<ItemType> read_item_type(const ConfigFields& fields, std::string_view name) {
  const std::optional<std::string> dtype = fields.find_text(name);
  if (!dtype) return std::nullopt;
  for (const std::string_view known : {"bfloat16", "float16", "float32"})
    if (*dtype == known) return item_of(known);
  fields.refuse(name, fmt::format("'{}' is none of bfloat16, float16 and float32", shown_text(*dtype)));
  return std::nullopt;
}

// torch_dtype or dtype of one object, as it says it.
std::optional<ItemType> stated_type(const ConfigFields& fields) {
  const std::optional<std::string> older = fields.find_text("torch_dtype");
  const std::optional<std::string> newer = fields.find_text("dtype");
  if (older && newer && *older != *newer) {
    fields.refuse("dtype", fmt::format("'{}' contradicts torch_dtype '{}'", shown_text(*newer), shown_text(*older)));
    return std::nullopt;
  }
  return read_item_type(fields, older ? "torch_dtype" : "dtype");
}

// vLLM config/model.py _resolve_auto_dtype: bfloat16 for a 32-bit checkpoint, and for a 16-bit one whose family float16
// is too narrow for. SGLang configs/model_config.py _get_and_verify_dtype: float16, for the Gemma family bfloat16.
ItemType served_type(const ConfigInput& input, const ItemType& stated) {
  const std::string model_type = input.text.find_text("model_type").value_or("");
  const bool is_gemma = model_type.starts_with("gemma");
  if (stated.item_bytes > 2) return item_of(input.is_vllm() || is_gemma ? "bfloat16" : "float16");
  if (stated.dtype == "float16" && input.is_vllm() && (model_type == "gemma2" || model_type.starts_with("gemma3")))
    return item_of("bfloat16");
  return stated;
}

bool is_text(const ConfigFields& fields, std::string_view name) {
  bool found = false;
  fields.visit(name, [&](const JsonCursor& field) { found = field.value.kind() == JsonKind::kString; });
  return found;
}

// A cache scheme of compressed-tensors or ModelOpt: {"num_bits":8,"type":"float","dynamic":false,...}.
struct CacheScheme {
  uint64_t bits = 0;
  std::string type;
  std::optional<bool> dynamic;
  bool is_symmetric = true;
  std::string strategy;
};

std::optional<CacheScheme> read_scheme(const ConfigFields& quantization) {
  std::optional<CacheScheme> scheme;
  quantization.visit_object("kv_cache_scheme", [&](const ConfigFields& fields) {
    CacheScheme read;
    read.bits = fields.count("num_bits").value_or(0);
    read.type = fields.find_text("type").value_or("int");
    read.dynamic = fields.find_flag("dynamic");
    read.strategy = fields.find_text("strategy").value_or("tensor");
    read.is_symmetric = fields.find_flag("symmetric").value_or(true);
    if (!fields.failed()) scheme = std::move(read);
  });
  return scheme;
}

// The name of kKvNames that a checkpoint's scheme amounts to; "auto" without one.
class CheckpointScheme {
 public:
  CheckpointScheme(const ConfigInput& input, const KvTypeRequest& request) : input_(input), request_(request) {}

  // Empty when refused.
  std::optional<std::string_view> read() {
    std::optional<std::string_view> name;
    // An older name of compressed-tensors, which vLLM reads too.
    for (const std::string_view field : {"quantization_config", "compression_config"}) {
      if (!input_.root.has(field)) continue;
      input_.root.visit_object(field, [&](const ConfigFields& quantization) { name = from(quantization, true); });
      return name;
    }
    if (&input_.root == &input_.text || !input_.text.has("quantization_config")) return from_file();
    input_.text.visit_object("quantization_config",
                             [&](const ConfigFields& quantization) { name = from(quantization, false); });
    return name;
  }

 private:
  // vLLM utils/torch_utils.py get_kv_cache_quant_algo_string, layers/attention/attention.py; SGLang
  // mem_cache/kv_cache_dtype.py configure_kv_cache_dtype, layers/quantization/modelopt_quant.py.
  std::optional<std::string_view> from(const ConfigFields& quantization, bool at_root) {
    const std::string method = quantization.find_text("quant_method").value_or("");
    if (method == "compressed-tensors") return compressed_tensors(quantization);
    const bool states_scheme = quantization.has("kv_cache_scheme") || quantization.has("kv_cache_quant_algo");
    const std::string_view field = quantization.has("kv_cache_scheme") ? "kv_cache_scheme" : "kv_cache_quant_algo";
    if (method.starts_with("modelopt") && !at_root && states_scheme)
      return refuse(quantization, field, "lies with the language model, where engines differ in whether they read it");
    if (method.starts_with("modelopt")) return modelopt(quantization);
    if (states_scheme)
      return refuse(quantization, field, fmt::format("is not known for quant_method '{}'", shown_text(method)));
    return "auto";
  }

  std::optional<std::string_view> compressed_tensors(const ConfigFields& quantization) {
    if (!quantization.has("kv_cache_scheme")) return "auto";
    const std::optional<CacheScheme> scheme = read_scheme(quantization);
    if (!scheme) return std::nullopt;
    if (!input_.is_vllm()) {
      input_.notes.push_back(
          "SGLang keeps the model's own type at 'auto', whatever the compressed-tensors "
          "kv_cache_scheme says; vLLM keeps fp8");
      return "auto";
    }
    if (request_.is_latent)
      return refuse(quantization, "kv_cache_scheme", "with latent attention engines differ in what they make of it");
    const bool is_known_strategy = scheme->strategy == "tensor" || scheme->strategy == "attn_head";
    if (scheme->bits != 8 || scheme->type != "float" || !scheme->is_symmetric || !is_known_strategy)
      return refuse(quantization, "kv_cache_scheme",
                    fmt::format("{} bits of type '{}' by '{}' is not what vLLM serves (8 bits, float, symmetric, by "
                                "tensor or attn_head)",
                                scheme->bits, shown_text(scheme->type), shown_text(scheme->strategy)));
    return "fp8";
  }

  std::optional<std::string_view> modelopt(const ConfigFields& quantization) {
    std::optional<std::string_view> name = "auto";
    // The scheme stands in an object within, in older files.
    if (quantization.has("quantization"))
      quantization.visit_object("quantization", [&](const ConfigFields& inner) { name = modelopt_scheme(inner); });
    if (name != std::string_view("auto")) return name;
    return modelopt_scheme(quantization);
  }

  std::optional<std::string_view> modelopt_scheme(const ConfigFields& fields) {
    const bool scheme_is_text = is_text(fields, "kv_cache_scheme");
    if (!fields.has("kv_cache_scheme") || scheme_is_text) {
      const std::string_view field = scheme_is_text ? "kv_cache_scheme" : "kv_cache_quant_algo";
      std::string algo = fields.find_text(field).value_or("none");
      std::transform(algo.begin(), algo.end(), algo.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
      if (algo == "fp8") return "fp8_e4m3";
      if (algo == "nvfp4") return nvfp4();
      if (algo == "none" || algo == "mixed_precision") return "auto";
      return refuse(fields, field, fmt::format("'{}' is not known", shown_text(algo)));
    }
    const std::optional<CacheScheme> scheme = read_scheme(fields);
    if (!scheme) return std::nullopt;
    // vLLM takes a scheme that is not stated to be static for none, SGLang does not look.
    if (scheme->type == "float" && scheme->bits == 8 && (scheme->dynamic == false || !input_.is_vllm()))
      return "fp8_e4m3";
    if (scheme->type == "float" && scheme->bits == 4) return nvfp4();
    return refuse(fields, "kv_cache_scheme",
                  fmt::format("{}{} bits of type '{}' is not known", scheme->dynamic == false ? "" : "not static, ",
                              scheme->bits, shown_text(scheme->type)));
  }

  std::string_view nvfp4() {
    if (input_.is_vllm()) return "nvfp4";
    input_.notes.push_back("SGLang keeps the model's own type at 'auto' for this NVFP4 cache scheme; vLLM keeps nvfp4");
    return "auto";
  }

  // ModelOpt's file beside the config, which both engines read when the config has no quantization_config.
  std::optional<std::string_view> from_file() {
    if (!input_.options.quant_config) return "auto";
    Diagnostics& diagnostics = input_.root.cursor().diagnostics;
    const std::string document = diagnostics.document();
    diagnostics.set_document("hf_quant_config.json");
    std::optional<std::string_view> name;
    if (const std::optional<JsonTree> tree = JsonTree::parse(*input_.options.quant_config, JsonLimits(), diagnostics)) {
      const JsonPath path;
      AskedFields asked;
      const JsonCursor cursor = {tree->root(), path, diagnostics};
      if (cursor.require(JsonKind::kObject)) name = modelopt(ConfigFields(cursor, input_.root.architecture(), asked));
    }
    diagnostics.set_document(document);
    return name;
  }

  std::nullopt_t refuse(const ConfigFields& fields, std::string_view field, const std::string& why) {
    fields.refuse(field, why + "; --kv-dtype states the cache's dtype");
    return std::nullopt;
  }

  const ConfigInput& input_;
  const KvTypeRequest& request_;
};

std::optional<KvType> refuse_name(const ConfigInput& input, std::string_view name, std::string_view why) {
  std::string known = "auto";
  for (const KvName& each : kKvNames)
    if (is_of_engine(each, input.options.engine)) known += fmt::format(", {}", each.name);
  refuse_option(
      input, "kv_dtype",
      fmt::format("'{}' {}; known for {}: {}", shown_text(name), why, engine_title(input.options.engine), known));
  return std::nullopt;
}

Component plain(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim) {
  Component component;
  component.name = ComponentName(std::string(name));
  component.dtype = type.dtype;
  component.encoding = "plain";
  component.item_bytes = type.item_bytes;
  component.head_count = head_count;
  component.head_dim = head_dim;
  return component;
}

// vLLM's --mamba-cache-dtype and --mamba-ssm-cache-dtype, SGLang's --mamba-ssm-dtype.
std::optional<ItemType> option_type(const ConfigInput& input, std::string_view option,
                                    const std::optional<std::string>& dtype) {
  if (!dtype || *dtype == "auto") return std::nullopt;
  for (const std::string_view known : {"float32", "float16", "bfloat16"})
    if (*dtype == known) return item_of(known);
  refuse_option(input, option,
                fmt::format("'{}' is not known; known: auto, float32, float16, bfloat16", shown_text(*dtype)));
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> kv_dtype_names(Engine engine) {
  std::vector<std::string_view> names = {"auto"};
  for (const KvName& each : kKvNames)
    if (is_of_engine(each, engine)) names.push_back(each.name);
  return names;
}

std::optional<ItemType> read_model_type(const ConfigInput& input, std::string_view fallback) {
  const std::optional<ItemType> of_root = stated_type(input.root);
  const std::optional<ItemType> of_text = &input.root == &input.text ? of_root : stated_type(input.text);
  if (input.root.failed() || input.text.failed()) return std::nullopt;
  // vLLM transformers_utils/model_arch_config_convertor.py get_torch_dtype: the root first. SGLang takes the language
  // model's, to which the root's is copied where it has none (utils/hf_transformers/common.py).
  const std::optional<ItemType>& first = input.is_vllm() ? of_root : of_text;
  const std::optional<ItemType>& second = input.is_vllm() ? of_text : of_root;
  if (of_root && of_text && of_root->dtype != of_text->dtype)
    input.notes.push_back(fmt::format("dtype '{}' at the root, '{}' of the language model: {} takes '{}'",
                                      of_root->dtype, of_text->dtype, engine_title(input.options.engine),
                                      first->dtype));
  if (first) return served_type(input, *first);
  if (second) return served_type(input, *second);
  if (!fallback.empty()) return item_of(fallback);
  input.root.refuse_missing("torch_dtype");
  return std::nullopt;
}

std::optional<KvType> read_kv_type(const ConfigInput& input, const KvTypeRequest& request) {
  std::string_view name = input.options.kv_dtype ? std::string_view(*input.options.kv_dtype) : "auto";
  if (name == "auto") {
    const std::optional<std::string_view> scheme = CheckpointScheme(input, request).read();
    if (!scheme) return std::nullopt;
    name = *scheme;
  }
  if (name == "auto") {
    const std::optional<ItemType> type = read_model_type(input, request.fallback);
    return type ? std::optional(KvType{Form::kPlain, *type}) : std::nullopt;
  }
  const auto known =
      std::find_if(kKvNames.begin(), kKvNames.end(), [&](const KvName& each) { return each.name == name; });
  if (known == kKvNames.end()) return refuse_name(input, name, "is not known");
  if (!is_of_engine(*known, input.options.engine)) return refuse_name(input, name, "is a name of the other engine");
  if (known->form == Form::kDsMla && !request.is_sparse)
    return refuse_name(input, name, "is a packing of sparse latent attention, which this model has not");
  KvType type{known->form, known->form == Form::kPlain ? item_of(known->dtype) : ItemType()};
  // vLLM layers/attention/mla_attention.py _canonicalize_sparse_mla_kv_cache_dtype: FlashMLA's sparse kernel reads one
  // packing only. SGLang mem_cache/kv_cache_configurator.py calculate_mla_kv_cache_dim. Kernels of other GPUs keep
  // plain fp8.
  if (request.is_sparse && type.is_fp8()) {
    input.notes.push_back(
        "sparse latent attention keeps an fp8 cache packed (fp8_ds_mla), as engines do on Hopper; on "
        "data-center Blackwell they keep it plain");
    type = KvType{Form::kDsMla, {}};
  }
  return type;
}

std::optional<StateTypes> read_state_types(const ConfigInput& input, const StateTypeRequest& request) {
  const std::optional<ItemType> model = read_model_type(input);
  const std::optional<ItemType> conv_option = option_type(input, "conv_dtype", input.options.conv_dtype);
  const std::optional<ItemType> ssm_option = option_type(input, "ssm_dtype", input.options.ssm_dtype);
  // SGLang configs/mamba_utils.py mamba2_state_dtype: bfloat16 whatever the model's type. vLLM
  // layers/mamba/mamba_utils.py: the model's.
  const ItemType conv = conv_option.value_or(input.is_vllm() ? model.value_or(ItemType()) : item_of("bfloat16"));
  const std::string_view field = input.is_vllm() ? request.ssm_field : std::string_view("mamba_ssm_dtype");
  const std::optional<ItemType> stated = field.empty() ? std::nullopt : read_item_type(input.text, field);
  for (const std::string_view name : {"mamba_ssm_dtype", "mamba_ssm_cache_dtype"}) {
    if (name == field) continue;
    const std::optional<ItemType> other = read_item_type(input.text, name);
    if (other && stated && other->dtype != stated->dtype)
      input.text.refuse(name, fmt::format("'{}' contradicts {} '{}'", other->dtype, field, stated->dtype));
  }
  if (request.ssm_is_always_float32 && ssm_option && ssm_option->dtype != "float32")
    refuse_option(input, "ssm_dtype", fmt::format("'{}': both engines keep this state in float32", ssm_option->dtype));
  if (!model || input.root.failed() || input.text.failed()) return std::nullopt;
  ItemType ssm = conv;
  if (request.ssm_is_always_float32 || !input.is_vllm() || request.vllm_ssm_is_float32) ssm = item_of("float32");
  if (stated && !request.ssm_is_always_float32) ssm = *stated;
  return StateTypes{conv, ssm_option.value_or(ssm)};
}

Component token_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim) {
  return plain(name, type, head_count, head_dim);
}

Component state_rows(std::string_view name, const ItemType& type, uint64_t head_count, uint64_t head_dim) {
  Component component = plain(name, type, head_count, head_dim);
  component.tokens_per_row = std::nullopt;
  return component;
}

std::vector<Component> stored_rows(const ConfigInput& input, std::string_view field, std::string_view name,
                                   const KvType& type, uint64_t head_count, uint64_t items) {
  if (type.form == Form::kPlain) return {token_rows(name, type.item, head_count, items)};
  const uint64_t unit = type.form == Form::kFp4 ? kItemsPerByte : kItemsPerScale;
  if (items % unit != 0) {
    input.text.refuse(field, fmt::format("{} items of 4 bits do not fill {} of {}", items,
                                         type.form == Form::kFp4 ? "bytes" : "blocks", unit));
    return {};
  }
  const ItemType packed = item_of("float4_e2m1fn_x2");
  if (type.form == Form::kFp4) return {token_rows(name, packed, head_count, items / kItemsPerByte)};
  if (!input.is_vllm())  // SGLang model_executor/pool_configurator.py: a buffer of scales for each buffer of items
    return {token_rows(name, packed, head_count, items / kItemsPerByte),
            token_rows(fmt::format("{}_scale", name), item_of("float8_e4m3fn"), head_count, items / kItemsPerScale)};
  // vLLM utils/torch_utils.py nvfp4_kv_cache_full_dim: the scales follow the items in each head's slot.
  Component component =
      token_rows(name, ItemType{"uint8", 1}, head_count, items / kItemsPerByte + items / kItemsPerScale);
  component.encoding = "nvfp4+float8_e4m3fn_scale_per_16";
  return {component};
}

}  // namespace crossdock
