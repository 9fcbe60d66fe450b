#include "models/pe/cpu/fiber.h"

#include "tlm/sim/stack_guard.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define KERNBENCH_ASAN 1
#else
#define KERNBENCH_ASAN 0
#endif

namespace kernbench::pe {

namespace {
/// Boost asks for memory and is given a stack that the fiber's owner holds already.
struct Borrowed {
  void deallocate(boost::context::stack_context&) noexcept {}
};

#if KERNBENCH_ASAN
void leave(void** fake, const void* base, std::size_t bytes) { __sanitizer_start_switch_fiber(fake, base, bytes); }
void arrive(void* fake, const void** base, std::size_t* bytes) { __sanitizer_finish_switch_fiber(fake, base, bytes); }
#else
void leave(void**, const void*, std::size_t) {}
void arrive(void*, const void**, std::size_t*) {}
#endif
}  // namespace

void KernelFiber::start(std::function<void()> body) {
  stack_ = pool_.take();
  body_ = std::move(body);
  error_ = nullptr;
  active_ = true;
  boost::context::stack_context context;
  context.size = stack_.bytes;
  context.sp = stack_.base + stack_.bytes;
  inside_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(context.sp, context.size, context),
                                  Borrowed{}, [this](boost::context::fiber&& outside) {
                                    outside_ = std::move(outside);
                                    run();
                                    // Null: this stack is not switched to again, AddressSanitizer drops its shadow.
                                    leave(nullptr, outside_base_, outside_bytes_);
                                    return std::move(outside_);
                                  });
  switch_in();
}

void KernelFiber::run() {
  arrive(nullptr, &outside_base_, &outside_bytes_);
  try {
    body_();
  } catch (const Cancelled&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  body_ = nullptr;
  active_ = false;
}

void KernelFiber::switch_in() {
  if (label_.activity != nullptr) label_.activity->enter(label_.kernel, label_.pe);
  {
    StackGuard guard(stack_.base - stack_.guard_bytes, stack_.base, StackPool::kStackBytes,
                     {&label_.kernel, label_.pe, -1});
    const StackGuard::Entered entered(guard);
    leave(&fake_outside_, stack_.base, stack_.bytes);
    inside_ = std::move(inside_).resume();
    arrive(fake_outside_, nullptr, nullptr);
    if (!StackPool::intact(stack_)) guard.overflowed();
  }
  if (label_.activity != nullptr) label_.activity->leave();
  if (active_) return;
#if KERNBENCH_ASAN
  __asan_unpoison_memory_region(stack_.base, stack_.bytes);  // frames that an exception skipped leave red zones
#endif
  pool_.give_back(stack_);
}

void KernelFiber::resume() { switch_in(); }

void KernelFiber::suspend() {
  leave(&fake_inside_, outside_base_, outside_bytes_);
  outside_ = std::move(outside_).resume();
  arrive(fake_inside_, &outside_base_, &outside_bytes_);
  check();
}

void KernelFiber::check() {
  if (cancelling_) throw Cancelled();
}

void KernelFiber::cancel() {
  if (!active_) return;
  cancelling_ = true;
  while (active_) switch_in();
  cancelling_ = false;
}

}  // namespace kernbench::pe
