#include "tests/support/step_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"
#include "executor/transfer_job.h"

namespace crossdock::testing {
namespace {

constexpr size_t kStepsMax = 20000;

}  // namespace

std::string ScheduledDeviation::to_text() const {
  constexpr const char* kNames[] = {"take other", "fail", "fail late", "double", "time passes", "refuse", "never"};
  return fmt::format("step {}: {}{}", step, kNames[static_cast<size_t>(what)],
                     what == Deviation::kTakeOther ? fmt::format(" +{}", which) : "");
}

std::vector<ScheduledDeviation> deviations_at(size_t step, const DeviationKinds& kinds) {
  std::vector<ScheduledDeviation> list;
  for (size_t which = 1; which <= kinds.passed_over_max; ++which) list.push_back({step, Deviation::kTakeOther, which});
  for (const Deviation what : {Deviation::kFail, Deviation::kFailLate, Deviation::kDouble, Deviation::kTimePasses,
                               Deviation::kRefuse, Deviation::kNever})
    if (what != Deviation::kDouble || kinds.messages) list.push_back({step, what, 0});
  return list;
}

std::vector<ScheduledDeviation> draw_two_deviations(Rng& rng, size_t step_count, const DeviationKinds& kinds) {
  std::vector<ScheduledDeviation> two;
  for (int k = 0; k < 2; ++k) {
    const std::vector<ScheduledDeviation> all = deviations_at(rng.below(step_count), kinds);
    two.push_back(all[rng.below(all.size())]);
  }
  return two;
}

void StepWorld::add_runtime(const ParticipantId& participant, Role role, AnyBinding binding,
                            std::map<RegionId, std::vector<std::byte>>& bytes) {
  RuntimeState& state = runtimes_[{role, participant}];
  state.binding = binding;
  for (const RegionKey& key : region_keys(*binding)) state.regions.emplace_back(key, &bytes.at(key.id));
}

void StepWorld::add(const PeerId& peer, Role role, Protocol& protocol) {
  parties_.push_back(Party{peer, role, &protocol, {}, {}, {}});
}

bool StepWorld::is_data(const Post& post) const {
  return std::holds_alternative<CopyPost>(post.call) || std::holds_alternative<PutPost>(post.call) ||
         std::holds_alternative<GetPost>(post.call);
}

void StepWorld::complete(size_t party, Completion completion) {
  if (parties_[party].under_way.erase(completion.op) != 1)
    violations_.push_back(fmt::format("I6: operation {} of '{}' completes a second time", completion.op.value(),
                                      parties_[party].peer.text()));
  parties_[party].inbox.push_back(std::move(completion));
}

void StepWorld::inject(const SendPost& message) {
  for (size_t i = 0; i < parties_.size(); ++i)
    if (parties_[i].peer == message.to) events_.push_back(Event{i, Post{OpId(), message}, true, false});
}

void StepWorld::wake(const PeerId& peer) {
  for (size_t i = 0; i < parties_.size(); ++i)
    if (parties_[i].peer == peer) advance(i);
}

void StepWorld::deliver(size_t party, const Message& message) {
  Party& to = parties_[party];
  if (to.receives.empty()) {
    boxes_[to.peer].push_back(message);
    return;
  }
  const OpId op = to.receives.front();
  to.receives.pop_front();
  complete(party, Completion{op, Status(), message, true});
}

void StepWorld::take_posts(size_t party, std::vector<Post> posts) {
  Party& from = parties_[party];
  for (Post& post : posts) {
    if (std::holds_alternative<CancelPost>(post.call)) {
      // A hint; only a receive that waits ends by it.
      const auto waits = std::find(from.receives.begin(), from.receives.end(), post.op);
      if (waits == from.receives.end()) continue;
      from.receives.erase(waits);
      complete(party, Completion{post.op, Status(Code::kCancelled, "cancelled"), std::monostate(), true});
      continue;
    }
    if (!from.under_way.insert(post.op).second)
      violations_.push_back(fmt::format("'{}' posts operation {} twice", from.peer.text(), post.op.value()));
    if (refuse_next_ || (fate_of && fate_of(post) == Fate::kRefused)) {
      refuse_next_ = false;
      complete(party, Completion{post.op, Status(Code::kResourceExhausted, "refused"), std::monostate(), false});
      continue;
    }
    if (std::holds_alternative<RecvPost>(post.call)) {
      std::deque<Message>& box = boxes_[from.peer];
      if (box.empty()) {
        from.receives.push_back(post.op);
      } else {
        complete(party, Completion{post.op, Status(), box.front(), true});
        box.pop_front();
      }
      continue;
    }
    events_.push_back(Event{party, std::move(post), false, false});
  }
}

void StepWorld::advance(size_t party) {
  Party& each = parties_[party];
  for (int rounds = 0; rounds < 1000; ++rounds) {
    if (killed_.contains(each.peer) || each.protocol->finished()) {
      each.inbox.clear();
      return;
    }
    std::vector<Completion> completions = std::move(each.inbox);
    each.inbox.clear();
    std::vector<Post> posts;
    each.protocol->advance(now_, completions, posts);
    take_posts(party, std::move(posts));
    if (!each.inbox.empty()) continue;
    if (!each.protocol->finished() && each.protocol->wake_at() <= now_)
      violations_.push_back(fmt::format("I6: '{}' ({}) wants to be called again and again at one time",
                                        each.peer.text(), each.protocol->state()));
    return;
  }
  violations_.push_back(fmt::format("'{}' never comes to rest at one time", each.peer.text()));
}

Status StepWorld::copy(const CopyPost& post, bool in_part) {
  const StepSpan& steps = post.steps;
  const CopyWork& work = steps.work();
  TRY(const std::vector<MemoryRegistry::Access> sources, memory_.access_all(work.source_regions));
  TRY(const std::vector<MemoryRegistry::Access> targets,
      memory_.write_access_all(work.target_regions, post.grant->id, &work.source_regions.front().owner));
  for (const CopyStep& step : steps.steps()) {
    const auto& target_key = work.target_regions[step.target_region];
    for (const auto& [id, state] : runtimes_)
      for (const auto& [key, bytes] : state.regions)
        if (key == target_key && given_back_.contains(bytes))
          violations_.push_back(fmt::format("I3: a write into {} after it was given back", key.to_text()));
    ByteRanges pieces(step);
    for (ByteCopy piece; pieces.next(piece);) {
      if (in_part && rng_.chance(1, 2)) continue;
      for (uint64_t i = 0; i < piece.bytes; ++i)
        targets[step.target_region].bytes()[piece.target_offset + i] =
            sources[step.source_region].bytes()[piece.source_offset + i];
    }
  }
  return Status();
}

// As executor/ports.h says: each call of a hold happens once, and a hold that was released is never held again.
Completion StepWorld::call_runtime(Role role, const RuntimePost& call) {
  const auto found = runtimes_.find({role, call.hold.participant});
  CHECK(found != runtimes_.end());
  RuntimeState& state = found->second;
  const HoldId& hold = call.hold;
  const auto conflict = [](const char* why) { return completion_of(Status(Code::kConflict, why)); };
  Completion completion;
  switch (call.call) {
    case RuntimeCall::kPin:
    case RuntimeCall::kReserve:
      if (state.released.contains(hold) || state.active.contains(hold)) return conflict("was released or activated");
      if (role == Role::kTarget && !state.held.empty() && !state.held.contains(hold)) return conflict("another has it");
      completion.result = state.binding;
      if (!state.held.insert(hold).second) break;
      ++(call.call == RuntimeCall::kPin ? state.pins : state.reserves);
      for (const auto& [key, bytes] : state.regions) {
        given_back_.erase(bytes);
        if (registered_[key]++ == 0) CHECK(memory_.add(key, *bytes).ok());
      }
      break;
    case RuntimeCall::kValidate:
      if (!state.held.contains(hold)) return conflict("is not reserved");
      if (state.refuses_validation) completion.status = Status(Code::kInvalidArgument, "the runtime does not like it");
      break;
    case RuntimeCall::kActivate:
      if (state.active.contains(hold)) break;
      if (state.held.erase(hold) == 0) return conflict("is not reserved");
      state.active.insert(hold);
      ++state.activations;
      break;
    case RuntimeCall::kRelease:
      if (state.active.contains(hold)) return conflict("is active");
      if (state.refuses_release) return completion_of(Status(Code::kUnavailable, "the runtime is busy"));
      state.released.insert(hold);
      if (state.held.erase(hold) == 0) break;
      ++state.releases;
      if (role == Role::kTarget)
        for (const auto& [key, bytes] : state.regions) given_back_.insert(bytes);
      break;
  }
  return completion;
}

// `happens`: what the operation does takes place, at least in part.
void StepWorld::execute(const Event& event, bool fail, bool happens) {
  const Party& from = parties_[event.party];
  Completion completion;
  const Post& post = event.post;
  if (const auto* call = std::get_if<CopyPost>(&post.call)) {
    if (happens) completion = completion_of(copy(*call, fail));
  } else if (const auto* sum = std::get_if<ChecksumPost>(&post.call)) {
    const bool of_source = sum->end == StepEnd::kSource;
    StepsChecksum result;
    for (const CopyStep& step : sum->steps.steps()) {
      const CopyWork& work = sum->steps.work();
      const RegionKey& key =
          of_source ? work.source_regions[step.source_region] : work.target_regions[step.target_region];
      const auto access = memory_.access(key);
      CHECK(access.ok());
      ByteRanges pieces(step);
      for (ByteCopy piece; pieces.next(piece);)
        result.crc32c =
            crc32c(access.value().bytes().subspan(of_source ? piece.source_offset : piece.target_offset, piece.bytes),
                   result.crc32c);
    }
    completion.result = result;
  } else if (const auto* revoke = std::get_if<RevokePost>(&post.call)) {
    if (happens) completion = completion_of(memory_.revoke(revoke->request.id));
  } else if (const auto* grant = std::get_if<GrantPost>(&post.call)) {
    if (happens) completion = completion_of(memory_.grant(grant->request));
    if (completion.status.ok()) completion.result = Grant{grant->request.id, {}};
  } else if (const auto* begin = std::get_if<BeginPost>(&post.call)) {
    if (happens) completion = completion_of(store_->begin(begin->txn, begin->target));
  } else if (const auto* put = std::get_if<PutPost>(&post.call)) {
    if (happens) completion = completion_of(store_->put(put->txn, put->step, memory_));
  } else if (const auto* commit = std::get_if<CommitPost>(&post.call)) {
    if (happens) completion = completion_of(store_->commit(commit->txn, commit->publication));
  } else if (const auto* abort = std::get_if<AbortPost>(&post.call)) {
    if (happens) completion = completion_of(store_->abort(abort->txn));
  } else if (const auto* lookup = std::get_if<LookupPost>(&post.call)) {
    if (happens) completion = completion_of(store_->lookup(lookup->lookup));
  } else if (const auto* get = std::get_if<GetPost>(&post.call)) {
    if (happens) completion = completion_of(store_->get(get->step, memory_));
  } else if (const auto* release = std::get_if<ReleaseLeasePost>(&post.call)) {
    if (happens) completion = completion_of(store_->release(release->lease));
  } else if (const auto* runtime = std::get_if<RuntimePost>(&post.call)) {
    if (happens) completion = call_runtime(from.role, *runtime);
  } else if (const auto* send = std::get_if<SendPost>(&post.call)) {
    sent_.push_back(*send);
    if (happens && !(loses && loses(*send)))
      for (size_t i = 0; i < parties_.size(); ++i)
        if (parties_[i].peer == send->to) events_.push_back(Event{i, post, true, false});
  }
  completion.op = post.op;
  if (fail) {
    // A control operation that was refused has not happened: the refusal is its answer.
    const bool is_refusal = happens && !completion.status.ok() && !is_data(post);
    if (!is_refusal)
      completion.status =
          Status(happens && !is_data(post) ? Code::kOutcomeUnknown : Code::kUnavailable, "made to fail");
    if (happens) completion.result = std::monostate();
  }
  if (killed_.contains(from.peer) || from.protocol->finished()) return;
  complete(event.party, std::move(completion));
}

bool StepWorld::pass_time() {
  TimePoint next = TimePoint::never();
  for (const Party& each : parties_)
    if (!each.protocol->finished() && !killed_.contains(each.peer)) next = std::min(next, each.protocol->wake_at());
  if (next == TimePoint::never()) return false;
  now_ = std::max(now_, next);
  for (Event& event : events_) event.is_held = false;
  for (size_t i = 0; i < parties_.size(); ++i) advance(i);
  return true;
}

void StepWorld::run(const std::vector<ScheduledDeviation>& deviations, uint64_t chaos) {
  for (size_t i = 0; i < parties_.size(); ++i) advance(i);
  for (; step_count_ < kStepsMax; ++step_count_) {
    if (before_step) before_step(step_count_);
    const auto is_over = [&](const Party& each) { return each.protocol->finished() || killed_.contains(each.peer); };
    if (std::all_of(parties_.begin(), parties_.end(), is_over)) break;
    size_t at = 0;
    bool fail = false;
    bool happens = true;
    for (const ScheduledDeviation& deviation : deviations) {
      if (deviation.step != step_count_) continue;
      switch (deviation.what) {
        case Deviation::kTakeOther: at = deviation.which; break;
        case Deviation::kFail: fail = true, happens = false; break;
        case Deviation::kFailLate: fail = true; break;
        case Deviation::kDouble:
          if (!events_.empty() && events_.front().is_delivery) events_.push_back(events_.front());
          break;
        case Deviation::kTimePasses: pass_time(); break;
        case Deviation::kRefuse: refuse_next_ = true; break;
        case Deviation::kNever:
          if (!events_.empty() && is_data(events_.front().post)) events_.front().is_held = true;
          break;
      }
    }
    if (chaos > 0 && !events_.empty()) {
      if (rng_.chance(chaos, 100)) at = rng_.below(events_.size());
      if (rng_.chance(chaos, 1000)) fail = true, happens = rng_.chance(1, 2);
      if (rng_.chance(chaos, 2000)) pass_time();
    }
    // Held events wait for time to pass; without any other event, it does.
    std::vector<size_t> ready;
    for (size_t i = 0; i < events_.size(); ++i)
      if (!events_[i].is_held) ready.push_back(i);
    if (ready.empty()) {
      if (!pass_time()) break;
      continue;
    }
    const size_t chosen = ready[std::min(at, ready.size() - 1)];
    const Event event = events_[chosen];
    events_.erase(events_.begin() + static_cast<ptrdiff_t>(chosen));
    const Fate fate = fate_of && !event.is_delivery ? fate_of(event.post) : Fate::kAsUsual;
    if (fate == Fate::kAnswerLost) fail = happens = true;
    if (fate == Fate::kFails) fail = true, happens = false;
    if (event.is_delivery) {
      if (!fail && !killed_.contains(parties_[event.party].peer))  // else it is lost
        deliver(event.party, std::get<SendPost>(event.post.call).message);
    } else if (!killed_.contains(parties_[event.party].peer) || rng_.chance(1, 2)) {
      execute(event, fail, happens);  // what a dead party posted may still happen
    }
    advance(event.party);
    for (size_t i = 0; i < parties_.size(); ++i)
      if (!parties_[i].inbox.empty()) advance(i);
  }
  for (const Party& each : parties_)
    if (!each.protocol->finished() && !killed_.contains(each.peer))
      violations_.push_back(
          fmt::format("I6: '{}' is still {} after {} steps", each.peer.text(), each.protocol->state(), step_count_));
  // What is still to happen of operations that their posters gave up, or that were posted by the dead.
  for (const Event& event : std::exchange(events_, {}))
    if (!event.is_delivery && is_data(event.post)) execute(event, false, true);
}

}  // namespace crossdock::testing
