// Drives protocols over the ports of their participants, one thread each, until all have finished. It knows no backend:
// the ports may be of this process, of a network, or decorated (backends/faults/).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "executor/protocol.h"

namespace crossdock {

// What a caller observes and controls while protocols run. All may be empty.
struct DriveHooks {
  // Called about ten times a second, by the caller's thread, with the bytes that were moved so far.
  std::function<void(uint64_t done_bytes)> tick;
  // Set by any thread, or by a signal handler: what runs is aborted, drained and released.
  const std::atomic<bool>* interrupted = nullptr;
  // Makes an observer for a protocol before it starts ("coordinator", "source p0-t0", ...), or returns null.
  std::function<std::unique_ptr<ProtocolObserver>(const std::string& name)> observe;
};

struct DrivenProtocol {
  std::string name;  // for DriveHooks::observe
  Protocol* protocol = nullptr;
  Ports ports;
  // Called once after an interrupt, in the protocol's thread. Empty: an interrupt does not reach it.
  std::function<void(const std::string& reason)> request_abort;
  // Makes ports.queue->wait() return soon; called by another thread, once after an interrupt. With request_abort only.
  std::function<void()> wake;
  // Called after each step of the protocol, in its thread. May be empty.
  std::function<void()> advanced;
};

// Returns when all protocols have finished. Protocols and ports outlive the call; `done_bytes` is called by the
// caller's thread.
void drive_protocols(std::span<const DrivenProtocol> protocols, const DriveHooks& hooks,
                     const std::function<uint64_t()>& done_bytes);

}  // namespace crossdock
