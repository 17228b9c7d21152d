// Writer: one source of a live transfer. It pins, exports, copies what the job says to each target that has granted its
// memory, tells each that its bytes have landed, and releases its pin once there is a decision and nothing of it is
// under way.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/participant.h"

namespace crossdock {

// R2: its pin is released only when no copy and no checksum of it is under way. outcome().bytes counts the bytes of
// copies that completed OK.
//
// Targets are served side by side, from a place of this writer's own on: if all writers began with the same target, its
// network interface would be busy and all others idle. So each pair has a small window within the whole one, pairs take
// turns, and a new pair begins when those that have begun leave room. The steps of a pair exist from then until its
// receipt, which bounds their memory.
class Writer : public ParticipantProtocol {
 public:
  explicit Writer(const ParticipantOptions& options)
      : ParticipantProtocol(Role::kSource, RuntimeCall::kPin, options), room_(options.window) {}

  void advance(TimePoint now, std::span<const Completion> completions, std::vector<Post>& posts) override;

 private:
  // All that goes to one target.
  // `crc32c` is of the bytes in the order of the pair's steps, once its checksum has completed.
  struct Pair {
    const CopyPair* copies = nullptr;
    PeerIdentity target;
    PeerId peer;
    std::shared_ptr<const Grant> grant;  // null: it has not come yet
    std::optional<PairWork> work;
    std::optional<WorkList> list;
    std::optional<Task> checksum;
    uint32_t crc32c = 0;
    bool is_in_turn = false;
  };
  struct Copy {
    size_t pair;
    uint64_t bytes;
  };

  bool complete(const Completion& completion, TimePoint now) override;
  void accept(const std::shared_ptr<const TransferJob>& job) override;
  void hear(const Message& message) override;
  TimePoint wake_of_work() const override;
  void take_grant(Pair& pair, const Message& message, const GrantBody& body);
  bool step(TimePoint now, std::vector<Post>& posts);  // true: look again
  bool pin(TimePoint now, std::vector<Post>& posts);
  bool execute(TimePoint now, std::vector<Post>& posts);
  // False: the steps of a pair cannot be made, and the transfer has failed.
  bool post_copies(TimePoint now, std::vector<Post>& posts);
  bool open(size_t number);
  void take_turn(size_t number);
  bool finish_pairs(TimePoint now, std::vector<Post>& posts);
  bool drain(TimePoint now, std::vector<Post>& posts);
  std::string ungranted() const;
  // Copies and checksums, which must complete before the pin may be released (R2).
  std::vector<OpId> data_under_way() const;

  std::vector<Pair> pairs_;                       // in the order in which they are served first
  std::map<PeerIdentity, size_t> pair_of_;        // by target
  std::map<PeerIdentity, Message> early_grants_;  // came before the job
  Window room_;                                   // of all pairs together
  std::deque<size_t> waiting_;                    // granted, not begun
  std::set<size_t> begun_;                        // and their receipts are not sent
  std::deque<size_t> turn_;                       // of those that have begun, and may have something to post
  std::map<OpId, Copy> copies_;                   // under way
  size_t done_count_ = 0;
};

}  // namespace crossdock
