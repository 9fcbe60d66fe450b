#pragma once
#include <optional>

#include "runtime/runtime.h"

namespace kernbench {

/// What a rank asks of its group.
struct CollectiveRequest {
  CollectiveCall call;  ///< op, reduce_op, root; to and from as group ranks
  Tensor in, out;       ///< an empty handle: another rank has it
  Group group;
  std::optional<TensorForm> elsewhere{};
  int distance = 0;      ///< of a shift
  bool prepare = false;  ///< all but the call itself
  bool columns = false;  ///< of an all_gather: blocks lie side by side
};

}  // namespace kernbench
