#include "models/pe/cpu/stack_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace kernbench {

namespace {
constexpr std::uint64_t kCanary = 0x6B65'726E'2D73'7461;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
}  // namespace

StackPool::Stack StackPool::take() {
  ++in_use_;
  Stack stack;
  if (!free_.empty()) {
    stack = free_.back();
    free_.pop_back();
  } else {
    void* memory =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    stack = {static_cast<std::byte*>(memory), kStackBytes, false};
    if (guarded_ < kGuarded && mprotect(memory, page_bytes(), PROT_NONE) == 0) {
      stack = {stack.base + page_bytes(), kStackBytes - page_bytes(), true};
      ++guarded_;
    }
  }
  std::memcpy(stack.base, &kCanary, sizeof kCanary);
  return stack;
}

void StackPool::give_back(const Stack& stack) {
  --in_use_;
  if (free_.size() < kept_) {
    free_.push_back(stack);
    return;
  }
  if (stack.guarded) --guarded_;
  munmap(stack.base - (stack.guarded ? page_bytes() : 0), kStackBytes);
}

bool StackPool::intact(const Stack& stack) { return std::memcmp(stack.base, &kCanary, sizeof kCanary) == 0; }

StackPool::~StackPool() {
  for (const Stack& stack : free_) munmap(stack.base - (stack.guarded ? page_bytes() : 0), kStackBytes);
}

}  // namespace kernbench
