#include "tlm/sim/stack_guard.h"

#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace kernbench {

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
  Line& operator<<(std::size_t number) {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    return *this << std::string_view(digits + at, sizeof digits - at);
  }
  Line& operator<<(const StackOwner& owner) {
    if (owner.kernel == nullptr) return *this << "rank " << static_cast<std::size_t>(owner.rank);
    return *this << "kernel '" << *owner.kernel << "' on sip" << std::size_t{owner.pe.sip} << ".cube"
                 << std::size_t{owner.pe.cube} << ".pe" << std::size_t{owner.pe.pe};
  }
  void print() const { static_cast<void>(!::write(STDERR_FILENO, text_, size_)); }

 private:
  char text_[512];
  std::size_t size_ = 0;
};

/// Where a shared library stands in memory; nothing: it is part of the program.
struct Span {
  std::uintptr_t begin = 0, end = 0;
  bool has(std::uintptr_t at) const { return at >= begin && at < end; }
};

/// Its memory pool (sc_allocator::allocate) writes to what malloc() returns, a null pointer too: no fault of whoever
/// called it.
Span systemc_library() {
  Span found;
  const auto look = [](dl_phdr_info* library, std::size_t, void* to) {
    if (library->dlpi_name == nullptr || std::strstr(library->dlpi_name, "libsystemc") == nullptr) return 0;
    Span& span = *static_cast<Span*>(to);
    span.begin = ~std::uintptr_t{0};
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const auto& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      span.begin = std::min<std::uintptr_t>(span.begin, library->dlpi_addr + part.p_vaddr);
      span.end = std::max<std::uintptr_t>(span.end, library->dlpi_addr + part.p_vaddr + part.p_memsz);
    }
    return 1;
  };
  ::dl_iterate_phdr(look, &found);
  return found;
}

/// The instruction that a signal came from; 0: this processor is not known.
std::uintptr_t instruction_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  return 0;
#endif
}

constexpr std::uintptr_t kNullPage = 4096;  ///< fields of what a null pointer points to
}  // namespace

/// One per process, since signals are the process's; made by the first guard.
class FaultHandler {
 public:
  static FaultHandler& one() {
    static FaultHandler handler;
    return handler;
  }

  const StackGuard* entered = nullptr;
  void (*clean_up)() = nullptr;

 private:
  /// On a stack of its own: the owner's has no room left.
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
    std::atexit([] {
      if (one().entered != nullptr && one().clean_up != nullptr) one().entered->called_exit();
    });
  }

  static void handle(int, siginfo_t* info, void* context) {
    const FaultHandler& self = one();
    if (const StackGuard* entered = self.entered) {
      if (entered->below(info->si_addr)) entered->overflowed();
      const bool null = info->si_code == SEGV_MAPERR && reinterpret_cast<std::uintptr_t>(info->si_addr) < kNullPage;
      if (null && !self.systemc_.has(instruction_of(context))) entered->used_null();
    }
    // Not ours: it happens again, to whoever was there before.
    ::sigaction(SIGSEGV, &self.before_segv_, nullptr);
    ::sigaction(SIGBUS, &self.before_bus_, nullptr);
  }

  const Span systemc_ = systemc_library();
  struct sigaction before_segv_ {};
  struct sigaction before_bus_ {};
};

StackGuard::StackGuard(const std::byte* low, const std::byte* high, std::size_t stack_bytes, const StackOwner& owner)
    : low_(low), high_(high), stack_bytes_(stack_bytes), owner_(owner) {}

void StackGuard::enter() {
  before_ = FaultHandler::one().entered;
  FaultHandler::one().entered = this;
}

void StackGuard::leave() { FaultHandler::one().entered = before_; }

void StackGuard::before_end(void (*clean_up)()) { FaultHandler::one().clean_up = clean_up; }

bool StackGuard::below(const void* at) const {
  const auto* const address = static_cast<const std::byte*>(at);
  return address >= low_ && address < high_;
}

namespace {
[[noreturn]] void end_with(const Line& line) {
  line.print();
  if (const auto clean_up = FaultHandler::one().clean_up) clean_up();
  ::_exit(kProgramFailed);
}
}  // namespace

void StackGuard::overflowed() const {
  end_with(Line() << "kernbench: error: " << owner_ << " overflowed its stack of " << stack_bytes_ / 1024
                  << " KiB: keep large arrays in vectors\n");
}

void StackGuard::called_exit() const {
  end_with(Line() << "kernbench: error: " << owner_ << " called exit: return, or throw\n");
}

void StackGuard::used_null() const { end_with(Line() << "kernbench: error: " << owner_ << " used a null pointer\n"); }

}  // namespace kernbench
