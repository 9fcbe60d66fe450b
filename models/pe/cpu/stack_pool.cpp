#include "models/pe/cpu/stack_pool.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace kernbench {

namespace {
constexpr std::uint64_t kCanary = 0x6B65'726E'2D73'7461;

std::byte* map_bytes(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}
}  // namespace

StackPool::Stack StackPool::map() {
  if (guarded_ < most_guarded_) {
    if (std::byte* memory = map_bytes(kGuardBytes + kStackBytes)) {
      if (mprotect(memory, kGuardBytes, PROT_NONE) == 0) {
        ++guarded_;
        return {memory + kGuardBytes, kStackBytes, kGuardBytes};
      }
      munmap(memory, kGuardBytes + kStackBytes);
    }
  }
  std::byte* memory = map_bytes(kStackBytes);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, kStackBytes, 0};
}

void StackPool::unmap(const Stack& stack) { munmap(stack.base - stack.guard_bytes, stack.guard_bytes + stack.bytes); }

StackPool::Stack StackPool::take() {
  Stack stack;
  if (!free_.empty()) {
    stack = free_.back();
    free_.pop_back();
  } else {
    stack = map();
  }
  ++in_use_;
  std::memcpy(stack.base, &kCanary, sizeof kCanary);
  return stack;
}

void StackPool::give_back(const Stack& stack) {
  --in_use_;
  if (free_.size() < kept_) {
    free_.push_back(stack);
    return;
  }
  if (stack.guard_bytes > 0) --guarded_;
  unmap(stack);
}

bool StackPool::intact(const Stack& stack) { return std::memcmp(stack.base, &kCanary, sizeof kCanary) == 0; }

StackPool::~StackPool() {
  for (const Stack& stack : free_) unmap(stack);
}

}  // namespace kernbench
