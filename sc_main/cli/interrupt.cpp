#include "sc_main/cli/interrupt.h"

#include <csignal>

namespace kernbench {
namespace {
std::atomic<bool> requested_by_signal{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void handle(int signal) {
  requested_by_signal.store(true, std::memory_order_relaxed);
  std::signal(signal, SIG_DFL);
}
}  // namespace

Interrupt::Interrupt() {
  requested_by_signal = false;
  std::signal(SIGINT, handle);
  std::signal(SIGTERM, handle);
  if (std::signal(SIGHUP, handle) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // under nohup it stays ignored
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

const std::atomic<bool>& Interrupt::flag() const { return requested_by_signal; }

}  // namespace kernbench
