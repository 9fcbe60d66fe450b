#pragma once
#include <atomic>

namespace kernbench {

/// Ctrl-C and SIGTERM while it lives: the first one asks the run to end, the second one ends the process.
/// At most one at a time; the flag that the handler sets is the process's one piece of mutable global state.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;
};

}  // namespace kernbench
