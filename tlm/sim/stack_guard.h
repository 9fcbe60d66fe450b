#pragma once
#include <cstddef>
#include <string>

#include "tlm/machine/ids.h"

namespace kernbench {

/// Whose code runs on a stack: a kernel's on a PE or, where there is none, a rank's.
struct StackOwner {
  const std::string* kernel = nullptr;
  PeCoord pe{};
  int rank = -1;
};

/// Of a stack with a guard, [low, high), below. While it is entered, code of `owner` runs there: touching the guard, or
/// a null pointer, or a call of exit() ends the process with a text that names the owner, and exit code 8 (the program
/// failed). Nothing else can be done: there is no stack left to throw on. A signal handler has to find it, so that the
/// one that is entered is the process's own; faults elsewhere go where they went before.
class StackGuard {
 public:
  StackGuard(const std::byte* low, const std::byte* high, std::size_t stack_bytes, const StackOwner& owner);
  StackGuard(const StackGuard&) = delete;
  StackGuard& operator=(const StackGuard&) = delete;

  /// From here on, in its scope.
  class Entered {
   public:
    explicit Entered(StackGuard& guard) : guard_(guard) { guard_.enter(); }
    ~Entered() { guard_.leave(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    StackGuard& guard_;
  };
  /// Not in its scope, in which code of others runs, and again afterwards. REQUIRES: entered.
  class Left {
   public:
    explicit Left(StackGuard& guard) : guard_(guard) { guard_.leave(); }
    ~Left() { guard_.enter(); }
    Left(const Left&) = delete;
    Left& operator=(const Left&) = delete;

   private:
    StackGuard& guard_;
  };

  bool below(const void* at) const;  ///< within the guard
  /// Says so, and ends the process: of a stack without a guard, when it is too late.
  [[noreturn]] void overflowed() const;
  [[noreturn]] void used_null() const;    ///< likewise
  [[noreturn]] void called_exit() const;  ///< likewise; asked where there is something to clean up
  /// `clean_up` is called before the process ends; only what a signal handler may call. Null: nothing.
  static void before_end(void (*clean_up)());

 private:
  void enter();
  void leave();

  const std::byte* const low_;
  const std::byte* const high_;
  const std::size_t stack_bytes_;
  const StackOwner owner_;
  const StackGuard* before_ = nullptr;  // that was entered then
};

}  // namespace kernbench
