#include "executor/recording/replay_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/overloaded.h"
#include "executor/recording/completion_json.h"

// What the ports promise a protocol (executor/ports.h), checked for a recording that may come from outside. Protocols
// CHECK these promises, because a backend that breaks them is a bug; a file that breaks them is bad input.
namespace crossdock {
namespace {

using Answer = CompletionResult;

// A recording must not set limits that make its replay take more memory than the caller allows.
void lower_to(LowerLimits& limits, const LowerLimits& most) {
  for (uint64_t LowerLimits::*field :
       {&LowerLimits::work_max, &LowerLimits::pattern_count_max, &LowerLimits::page_piece_count_max,
        &LowerLimits::step_count_max, &LowerLimits::bytes_max})
    limits.*field = std::min(limits.*field, most.*field);
}

Status invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

// The preconditions of prefix_objects() and prefix_manifest(): pages within the keys, layouts within the catalog.
Status check_prefix(const PrefixRestore& prefix, const ReplayLimits& limits) {
  uint64_t end = 0;
  uint64_t object_count = 0;
  for (const RowSource& rows : prefix.match.rows) {
    if (rows.pages.empty() || rows.pages.begin() < end || rows.pages.end() > prefix.keys.size())
      return invalid(fmt::format("rows of pages [{},{}) are not in order within the {} keys", rows.pages.begin(),
                                 rows.pages.end(), prefix.keys.size()));
    if (prefix.catalog.find(rows.layout) == nullptr)
      return invalid(fmt::format("layout {} is not in the catalog", rows.layout.hex()));
    end = rows.pages.end();
    object_count += rows.pages.size() * rows.parts.size();  // does not wrap: both are lengths of lists in the text
    if (object_count > limits.prefix_object_count_max)
      return invalid(fmt::format("more than {} page objects", limits.prefix_object_count_max));
  }
  if (!prefix.match.state) return Status();
  if (prefix.match.state->page >= prefix.keys.size())
    return invalid(fmt::format("a state of page {} of {}", prefix.match.state->page, prefix.keys.size()));
  if (prefix.catalog.find(prefix.match.state->layout) == nullptr)
    return invalid(fmt::format("layout {} is not in the catalog", prefix.match.state->layout.hex()));
  return Status();
}

// A value of the kind that the port's declaration names for the post; monostate where it names none.
Answer answer_of(const Post& post) {
  return std::visit(Overloaded{
                        [](const ChecksumPost&) -> Answer { return StepsChecksum(); },
                        [](const GrantPost&) -> Answer { return Grant(); },
                        [](const BeginPost&) -> Answer { return TxnState(); },
                        [](const CommitPost&) -> Answer { return TxnState(); },
                        [](const AbortPost&) -> Answer { return TxnState(); },
                        [](const PutPost&) -> Answer { return PutReceipt(); },
                        [](const LookupPost&) -> Answer { return Found(); },
                        [](const GetPost&) -> Answer { return GetReport(); },
                        [](const RecvPost&) -> Answer { return Message(); },
                        [](const RuntimePost& runtime) -> Answer {
                          if (runtime.call == RuntimeCall::kPin || runtime.call == RuntimeCall::kReserve)
                            return AnyBinding();
                          return std::monostate();
                        },
                        [](const auto&) -> Answer { return std::monostate(); },
                    },
                    post.call);
}

// A snapshot comes with the objects of its manifest, in its order; pages as they were asked for.
bool answers(const Found& found, const Lookup& lookup) {
  if (std::holds_alternative<ContentId>(lookup.key)) {
    return found.manifest != nullptr && found.pages.empty() &&
           std::equal(found.objects.begin(), found.objects.end(), found.manifest->objects.begin(),
                      found.manifest->objects.end(),
                      [](const FoundObject& each, const StoredObject& object) { return each.object == object; });
  }
  if (found.manifest != nullptr || found.pages.size() != found.objects.size()) return false;
  const auto& wanted = std::get<std::vector<PageObjectKey>>(lookup.key);
  auto next = wanted.begin();
  return std::all_of(found.pages.begin(), found.pages.end(), [&](const PageObjectKey& page) {
    // One pass over both lists, since found pages keep the order of the question.
    next = std::find(next, wanted.end(), page);
    if (next == wanted.end()) return false;
    ++next;
    return true;
  });
}

}  // namespace

Status check_options(RecordedOptions& options, const ReplayLimits& limits) {
  // What protocols require of their options.
  const auto is_named = [](const auto& name, const char* what) {
    return name.empty() ? invalid(fmt::format("options: '{}' is empty", what)) : Status();
  };
  return std::visit(Overloaded{
                        [&](ParticipantRecord& record) {
                          lower_to(record.context.lower, limits.lower);
                          uint64_t& count = record.options.split.step_count_max;
                          count = std::min(count, limits.split_step_count_max);
                          return is_named(record.options.attempt, "attempt");
                        },
                        [&](CoordinatorRecord& record) {
                          lower_to(record.transfer.lower, limits.lower);
                          TRY_STATUS(is_named(record.options.instance, "instance"));
                          return is_named(record.options.attempt, "attempt");
                        },
                        [&](UploadRecord& record) {
                          lower_to(record.upload.lower, limits.lower);
                          return Status();
                        },
                        [&](RestoreRecord& record) {
                          lower_to(record.restore.lower, limits.lower);
                          TRY_STATUS(is_named(record.options.attempt, "attempt"));
                          const auto* prefix = std::get_if<std::shared_ptr<const PrefixRestore>>(&record.restore.what);
                          return prefix == nullptr ? Status() : check_prefix(**prefix, limits);
                        },
                    },
                    options);
}

// R1: an id that is posted is under way until it completes once.
void PendingPosts::add(const Post& post) {
  if (std::holds_alternative<CancelPost>(post.call)) return;  // a hint about another operation
  Pending pending{post.name(), answer_of(post), std::nullopt};
  if (const auto* lookup = std::get_if<LookupPost>(&post.call)) pending.lookup = lookup->lookup;
  pending_.insert_or_assign(post.op, std::move(pending));
}

Status PendingPosts::complete(const Completion& completion) {
  const uint64_t op = completion.op.value();
  // A wake-up: no operation's id, and no value.
  if (op == 0) {
    if (std::holds_alternative<std::monostate>(completion.result)) return Status();
    return invalid("a completion of no operation brings a value");
  }
  const auto found = pending_.find(completion.op);
  if (found == pending_.end()) return invalid(fmt::format("operation {} completes but is not under way", op));
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  const bool has_answer = completion.result.index() == pending.answer.index();
  // A failure may bring the value of its kind or none; protocols look at it only after a success.
  if (!completion.status.ok()) {
    if (has_answer || std::holds_alternative<std::monostate>(completion.result)) return Status();
  } else if (!completion.posted) {
    return invalid(fmt::format("operation {} was refused, and succeeds", op));
  }
  const std::string what = fmt::format("operation {}, which is a {},", op, pending.name);
  if (!has_answer)
    return invalid(fmt::format("{} brings '{}' where '{}' is needed", what, result_kind(completion.result),
                               result_kind(pending.answer)));
  if (const auto* binding = std::get_if<AnyBinding>(&completion.result); binding != nullptr && *binding == nullptr)
    return invalid(fmt::format("{} succeeds without a binding", what));
  if (const auto* all = std::get_if<Found>(&completion.result); all != nullptr && !answers(*all, *pending.lookup))
    return invalid(fmt::format("{} finds objects that it did not ask for", what));
  return Status();
}

}  // namespace crossdock
