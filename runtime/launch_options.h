#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "runtime/tensor.h"
#include "tlm/ext/message.h"

namespace kernbench {

/// What no way of running a launch can beat, as who submits it says: what its engines and memories need, and what
/// nothing hides. A launch that takes less ends the run with an error (Runtime::check).
struct LaunchBound {
  Ps time = 0;            ///< of the kernel, all PEs; 0: not known
  const char* by = "";    ///< what binds it, a literal: "array", "math", "HBM", "UCIe", "latency"
  double flops = 0;       ///< additions and multiplications
  double bytes = 0;       ///< that memories have to give or take at least
  const char* kind = "";  ///< what it computes, a literal: "gemm", "attention"
  /** of a GEMM */ std::int64_t m = 0, n = 0, k = 0;
  std::string mapping = {};  ///< of a GEMM: how it is computed, as --mapping takes it
};

/// Where a launch runs, if not on all PEs that hold a part of its tensors.
struct LaunchOptions {
  std::vector<PeCoord> targets;  ///< all on one SIP; none: those that hold a non-empty shard of a tensor argument
  std::uint16_t stream = 0;      ///< of Context::new_stream; 0: the rank's default stream
  /// send and recv reach every other PE of the cube, by Direction::local, and PE i of neighbouring cubes, by
  /// Direction::north and so on: the first such launch of a stream on a SIP installs the queues before it starts.
  /// Without it, they are those of the default process group.
  bool cube_queues = false;
  /// Its kernels use no queues of a process group: no kernel of another launch can matter to them. Implied by
  /// cube_queues, and where there is no process group. Others are never repeated (docs/replay.md).
  bool alone = false;
  /// What the work depends on of arguments that differ between launches which take equally long: numbers that replay
  /// compares in place of the arguments' bytes (docs/replay.md). None: it goes by the bytes.
  std::vector<std::int64_t> work = {};
  LaunchBound bound = {};  ///< for the host trace
};

namespace detail {

template <class T>
const T& as_argument(const T& value) {
  return value;
}
inline Va as_argument(const Tensor& tensor) { return tensor ? tensor.va() : 0; }

template <class T>
void add_tensor(const T&, std::vector<Tensor>&) {}
inline void add_tensor(const Tensor& tensor, std::vector<Tensor>& tensors) { tensors.push_back(tensor); }

/// A tensor is a Va to the kernel, not any number.
template <class Parameters>
struct TensorParameters;
template <class... P>
struct TensorParameters<std::tuple<P...>> {
  template <class... Args>
  static constexpr bool are_vas() {
    if constexpr (sizeof...(P) == sizeof...(Args)) {
      return ((!std::is_same_v<Args, Tensor> || std::is_same_v<P, Va>)&&...);
    } else {
      return true;  // said elsewhere
    }
  }
};
template <class Kernel, class... Args>
constexpr void check_tensors() {
  if constexpr (is_kernel_v<Kernel>) {
    static_assert(TensorParameters<KernelParameters<Kernel>>::template are_vas<Args...>(),
                  "a tensor argument is a Va to the kernel: declare its parameter so");
  }
}

/// Not the options of the other form of launch.
template <class Kernel>
using IfKernel = std::enable_if_t<!std::is_same_v<Kernel, LaunchOptions>>;

}  // namespace detail

}  // namespace kernbench
