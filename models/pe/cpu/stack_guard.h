#pragma once
#include <cstddef>
#include <string>

#include "tlm/machine/ids.h"

namespace kernbench::pe {

/// While it lives, code of `kernel` runs on a stack with a guard, [low, high), below: touching that ends the process
/// with a text that names kernel and PE, and exit code 8 (the program failed). Nothing else can be done: there is no
/// stack left to throw on. A signal handler has to find it, so that the one that lives is the process's own; faults
/// elsewhere go where they went before.
class StackGuard {
 public:
  StackGuard(const std::byte* low, const std::byte* high, const std::string& kernel, PeCoord pe);
  ~StackGuard();
  StackGuard(const StackGuard&) = delete;
  StackGuard& operator=(const StackGuard&) = delete;

  bool below(const void* at) const;  ///< within the guard
  /// Says so, and ends the process: of a stack without a guard, when it is too late.
  [[noreturn]] void overflowed() const;
  /// `clean_up` is called before the process ends; only what a signal handler may call. Null: nothing.
  static void before_end(void (*clean_up)());

 private:
  const std::byte* const low_;
  const std::byte* const high_;
  const std::string& kernel_;
  const PeCoord pe_;
};

}  // namespace kernbench::pe
