#pragma once
#include <cstdint>
#include <vector>

namespace kernbench {

class Context;
class Scheduler;
class Tensor;

/// While one lives, the host code of its rank is at work of the tool's own: it fills data, or checks them. The watchdog
/// takes that for progress, however long it lasts. Not so what others do while the rank waits, and code of users'.
class ToolWork {
 public:
  /// Of the rank that runs: from its thread; in the main context, which nobody watches, it does nothing.
  explicit ToolWork(Context& context);
  ~ToolWork();
  ToolWork(const ToolWork&) = delete;
  ToolWork& operator=(const ToolWork&) = delete;

  /// Contents in row-major order, read and written in no time even where host copies take some: for what the modelled
  /// host does not do. REQUIRES: data; nothing under way touches the tensor.
  static std::vector<std::uint8_t> peek(const Tensor& tensor);
  static void poke(const Tensor& tensor, std::vector<std::uint8_t> contents);

 private:
  Scheduler& scheduler_;
  const int rank_;
};

}  // namespace kernbench
