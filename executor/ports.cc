#include "executor/ports.h"

namespace crossdock {

CompletionResult::CompletionResult() = default;
CompletionResult::CompletionResult(const CompletionResult&) = default;
CompletionResult::CompletionResult(CompletionResult&&) noexcept = default;
CompletionResult& CompletionResult::operator=(const CompletionResult&) = default;
CompletionResult& CompletionResult::operator=(CompletionResult&&) noexcept = default;
CompletionResult::~CompletionResult() = default;

}  // namespace crossdock
