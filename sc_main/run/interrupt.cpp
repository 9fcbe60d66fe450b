#include "sc_main/run/interrupt.h"

#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

#include "sc_main/run/exit_code.h"
#include "tlm/sim/stack_guard.h"

namespace kernbench {
namespace {
/// Seconds of processor time: a computer that is busy with other things says nothing of the run.   assumed: more than
/// the host takes from one instant to the next, as to choose an algorithm
constexpr time_t kPatience = 4;

void wait_at_most(time_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  ::setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

std::atomic<bool> requested_by_signal{false};
std::atomic<bool> waits_to_be_heard{false};
std::array<std::atomic<const char*>, 8> temporaries{};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free,
              "set and read in signal handlers");

void handle(int signal) {
  requested_by_signal.store(true, std::memory_order_relaxed);
  if (waits_to_be_heard.load(std::memory_order_relaxed)) wait_at_most(kPatience);
  std::signal(signal, SIG_DFL);
}

/// Calls only what a signal handler may call.
void remove_temporaries() {
  for (const std::atomic<const char*>& file : temporaries) {
    if (const char* name = file.load(std::memory_order_relaxed)) ::unlink(name);
  }
}

/// Nobody has heard. Calls only what a signal handler may call.
void end_unheard(int) {
  if (!waits_to_be_heard.load(std::memory_order_relaxed)) return;
  remove_temporaries();
  constexpr std::string_view kText = "kernbench: error: interrupted\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(static_cast<int>(ExitCode::interrupted));
}
}  // namespace

Interrupt::Interrupt(If ends) {
  requested_by_signal = false;
  waits_to_be_heard = ends == If::soon;
  StackGuard::before_end(remove_temporaries);
  std::signal(SIGVTALRM, end_unheard);
  std::signal(SIGINT, handle);
  std::signal(SIGTERM, handle);
  if (std::signal(SIGHUP, handle) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // under nohup it stays ignored
}

Interrupt::~Interrupt() {
  heard();
  for (std::atomic<const char*>& file : temporaries) file = nullptr;
  std::signal(SIGVTALRM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

const std::atomic<bool>& Interrupt::flag() const { return requested_by_signal; }

void Interrupt::heard() const {
  waits_to_be_heard = false;
  wait_at_most(0);
}

void Interrupt::owns(std::string temporary) const {
  if (temporary.empty()) return;
  const char* const name = owned_.emplace_back(std::move(temporary)).c_str();
  for (std::atomic<const char*>& file : temporaries) {
    const char* none = nullptr;
    if (file.compare_exchange_strong(none, name)) return;
  }
}

}  // namespace kernbench
