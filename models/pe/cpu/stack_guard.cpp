#include "models/pe/cpu/stack_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string_view>

namespace kernbench::pe {

namespace {
constexpr int kProgramFailed = 8;  ///< docs/cli.md, exit codes

/// Appends to a text in place: a signal handler may not allocate.
class Line {
 public:
  Line& operator<<(std::string_view part) {
    const std::size_t n = part.size() < sizeof text_ - size_ ? part.size() : sizeof text_ - size_;
    std::memcpy(text_ + size_, part.data(), n);
    size_ += n;
    return *this;
  }
  Line& operator<<(unsigned number) {
    char digits[10];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    return *this << std::string_view(digits + at, sizeof digits - at);
  }
  void print() const { static_cast<void>(!::write(STDERR_FILENO, text_, size_)); }

 private:
  char text_[512];
  std::size_t size_ = 0;
};
}  // namespace

/// One per process, since signals are the process's; made by the first guard.
class FaultHandler {
 public:
  static FaultHandler& one() {
    static FaultHandler handler;
    return handler;
  }

  const StackGuard* alive = nullptr;
  void (*clean_up)() = nullptr;

 private:
  /// On a stack of its own: the kernel's has no room left.
  FaultHandler() {
    stack_t stack{};
    if (::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
      constexpr std::size_t kBytes = std::size_t{64} << 10;
      void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) return;
      stack = {};
      stack.ss_sp = memory;
      stack.ss_size = kBytes;
      ::sigaltstack(&stack, nullptr);
    }
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGSEGV, &action, &before_segv_);
    ::sigaction(SIGBUS, &action, &before_bus_);
  }

  static void handle(int, siginfo_t* info, void*) {
    const FaultHandler& self = one();
    if (self.alive != nullptr && self.alive->below(info->si_addr)) self.alive->overflowed();
    // Not ours: it happens again, to whoever was there before.
    ::sigaction(SIGSEGV, &self.before_segv_, nullptr);
    ::sigaction(SIGBUS, &self.before_bus_, nullptr);
  }

  struct sigaction before_segv_ {};
  struct sigaction before_bus_ {};
};

StackGuard::StackGuard(const std::byte* low, const std::byte* high, const std::string& kernel, PeCoord pe)
    : low_(low), high_(high), kernel_(kernel), pe_(pe) {
  FaultHandler::one().alive = this;
}

StackGuard::~StackGuard() { FaultHandler::one().alive = nullptr; }

void StackGuard::before_end(void (*clean_up)()) { FaultHandler::one().clean_up = clean_up; }

bool StackGuard::below(const void* at) const {
  const auto* const address = static_cast<const std::byte*>(at);
  return address >= low_ && address < high_;
}

void StackGuard::overflowed() const {
  Line line;
  line << "kernbench: error: kernel '" << kernel_ << "' on sip" << pe_.sip << ".cube" << pe_.cube << ".pe" << pe_.pe
       << " overflowed its stack of 128 KiB: keep large arrays in vectors\n";
  line.print();
  if (const auto clean_up = FaultHandler::one().clean_up) clean_up();
  ::_exit(kProgramFailed);
}

}  // namespace kernbench::pe
