#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/pe/cpu/recorder.h"
#include "models/pe/cpu/scoreboard.h"
#include "models/pe/pe_statistics.h"
#include "tlm/ext/message.h"

namespace kernbench::pe {

/// One launch on one PE, from arm to its answer: everything that this kernel's execution consists of.
class KernelContext {
 public:
  enum class State { armed, running, failed };

  KernelContext(std::uint32_t index, Message& message, KernelEnvironment environment)
      : index(index), message(message), recorder(with_context(std::move(environment), this)) {}

  LaunchMessage& launch() const { return std::get<LaunchMessage>(message.body); }

  void enter(Op& op) {
    op.flight = static_cast<std::uint32_t>(in_flight.size());
    in_flight.push_back(&op);
  }
  void leave(Op& op) {
    in_flight[op.flight] = in_flight.back();
    in_flight[op.flight]->flight = op.flight;
    in_flight.pop_back();
  }
  /// The op in flight with this id; null if it is complete.
  Op* find(std::uint64_t id) const {
    for (Op* op : in_flight) {
      if (op->id == id) return op;
    }
    return nullptr;
  }
  /// Messages that went through a queue pair.
  struct QueueCount {
    Direction direction;
    std::uint32_t sent = 0, received = 0;
    const QueueSender* sender = nullptr;  ///< of what it has sent there; null: nothing, or of a collective
  };
  QueueCount& queue(Direction direction) {
    for (QueueCount& count : queues) {
      if (count.direction == direction) return count;
    }
    queues.push_back({direction});
    return queues.back();
  }
  bool fence_would_wait() const {
    for (const Op* op : in_flight) {
      if (!op->async) return true;
    }
    return false;
  }

  const std::uint32_t index;  ///< of the PE's kernel contexts
  Message& message;
  Recorder recorder;
  Scoreboard scoreboard;
  std::vector<Op*> in_flight;  ///< issued and not complete; tiles of composites are not counted
  std::vector<QueueCount> queues;
  State state = State::armed;
  bool ahead = false;           ///< armed while the one before in its stream still runs elsewhere, maybe
  bool dispatching = false;     ///< PE_CPU is issuing its next op
  std::uint64_t waits_for = 0;  ///< id of the op that a wait waits for; 0: none
  bool at_fence = false;
  Cause cause;             ///< of its start
  bool abandoned = false;  ///< failed, and its queued ops are gone
  Ps stalled_since = 0;
  std::optional<CpuWait> stalled;  ///< none: it does not stall
  const Op* stalled_op = nullptr;  ///< that found its queue full, or is waited for; alive while the stall lasts
  /// REQUIRES: it stalls.
  std::string stalled_text() const {
    if (*stalled == CpuWait::fence) return "fence";
    return (*stalled == CpuWait::op ? "wait for " : "") + text_of(*stalled_op);
  }
  std::string mark;  ///< open slice
  Ps marked = 0, started = 0;

 private:
  static KernelEnvironment with_context(KernelEnvironment environment, KernelContext* context) {
    environment.context = context;
    return environment;
  }
};

}  // namespace kernbench::pe
