// Serving engines whose rules differ where a model's config alone does not decide.
#pragma once

#include <array>
#include <string_view>

namespace crossdock {

enum class Engine { kVllm, kSglang };

inline constexpr std::array<std::string_view, 2> kEngineNames = {"vllm", "sglang"};  // in the order of Engine
inline constexpr std::array<std::string_view, 2> kEngineTitles = {"vLLM", "SGLang"};

constexpr std::string_view engine_title(Engine engine) { return kEngineTitles[static_cast<size_t>(engine)]; }

}  // namespace crossdock
