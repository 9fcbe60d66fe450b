#pragma once
#include <cstdint>

namespace kernbench {

/// What a run may switch without changing a single simulated time.
struct RunOptions {
  bool data = true;                 ///< off: no contents, arithmetic, weights or checks
  bool debug = false;               ///< extra checks: reads of bytes that nobody wrote
  unsigned recorder_window = 4096;  ///< ops that a kernel may be recorded ahead of its execution; at least 1
};

}  // namespace kernbench
