#pragma once
#include <cstddef>
#include <vector>

namespace kernbench {

/// Stacks for kernels that are being recorded. One pool serves a whole machine: a kernel that has returned gives its
/// stack back at once, so there are only as many as kernels longer than the recorder's window.
///
/// What is below a stack faults when touched, up to a number of live stacks (each guard costs two of the process's
/// memory mappings, of which Linux allows 65,530); every stack has a canary that is checked when its kernel switches
/// away.
class StackPool {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{128} << 10;  ///< address space; only touched pages cost memory
  /// Address space too. Code that is compiled without -fstack-clash-protection may touch its frame's low end first.
  static constexpr std::size_t kGuardBytes = std::size_t{256} << 10;
  static constexpr std::size_t kGuarded = 8192;

  /// Up to `kept` unused stacks stay mapped; up to `guarded` have guards.
  explicit StackPool(std::size_t kept = 64, std::size_t guarded = kGuarded) : kept_(kept), most_guarded_(guarded) {}
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  struct Stack {
    std::byte* base = nullptr;  ///< lowest usable address
    std::size_t bytes = 0;
    std::size_t guard_bytes = 0;  ///< below it; 0: there is none
  };
  Stack take();
  void give_back(const Stack& stack);
  /// False if a kernel has overwritten the lowest word of its stack.
  static bool intact(const Stack& stack);
  std::size_t in_use() const { return in_use_; }

 private:
  static void unmap(const Stack& stack);
  Stack map();

  const std::size_t kept_, most_guarded_;
  std::vector<Stack> free_;
  std::size_t in_use_ = 0, guarded_ = 0;
};

}  // namespace kernbench
