#pragma once
#include <boost/context/fiber.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "models/pe/cpu/stack_pool.h"
#include "tlm/machine/ids.h"
#include "tlm/sim/activity.h"

namespace kernbench::pe {

/// Whose code a fiber runs: for whoever asks while it does not come back, or overflows its stack.
struct KernelLabel {
  std::string kernel;  ///< a copy: the launch may be gone when its kernel is cancelled
  PeCoord pe;
  Activity* activity = nullptr;  ///< told when the code runs; null: nobody asks
};

/// Runs a function on a stack of its own, until it suspends itself, and on again from there.
class KernelFiber {
 public:
  explicit KernelFiber(StackPool& pool, const KernelLabel& label) : pool_(pool), label_(label) {}
  ~KernelFiber() { cancel(); }
  KernelFiber(const KernelFiber&) = delete;
  KernelFiber& operator=(const KernelFiber&) = delete;

  /// Runs `body` until it suspends or returns. REQUIRES: not active. This and resume() end the
  /// process if it overflows its stack (StackGuard).
  void start(std::function<void()> body);
  void resume();   ///< REQUIRES: active, called from outside
  void suspend();  ///< called by `body`: returns to start() or resume()
  void check();    ///< called by `body`: goes on unwinding if it swallowed the cancellation
  /// Unwinds a suspended body, so that the destructors of its locals run, and gives the stack back.
  void cancel();
  bool active() const { return active_; }
  /// What `body` threw, once it is no longer active; null if it returned, or if it has been taken.
  std::exception_ptr take_error() { return std::exchange(error_, nullptr); }

 private:
  struct Cancelled {};  // not a std::exception: a kernel's catch clauses for errors do not see it
  void run();
  void switch_in();

  StackPool& pool_;
  const KernelLabel label_;
  StackPool::Stack stack_;
  std::function<void()> body_;
  boost::context::fiber inside_, outside_;
  std::exception_ptr error_;
  bool active_ = false, cancelling_ = false;
  // AddressSanitizer keeps a shadow of each stack and has to be told of every switch.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_base_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace kernbench::pe
