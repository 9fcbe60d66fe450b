#pragma once
#include <cstdint>

#include "tlm/machine/fidelity.h"

namespace kernbench {

/// When ranks that wait resume; see docs/runtime.md.
enum class SchedulingKind : std::uint8_t {
  concurrent,  ///< each when its own handle completes
  rounds       ///< all at one point, when everything that can complete has
};

/// What a run may switch without changing a result of its program; all but fidelity and what follows leave every
/// simulated time as it is.
struct RunOptions {
  bool data = true;                ///< off: no contents, arithmetic, weights or checks
  bool debug = false;              ///< extra checks: reads of bytes that nobody wrote
  unsigned recorder_window = 256;  ///< ops that a kernel may be recorded ahead of its execution; at least 1
  Fidelity fidelity;               ///< how closely each part is modelled
  bool timed_host_io = false;      ///< host copies travel through the PCIe endpoint and take simulated time
  SchedulingKind scheduling = SchedulingKind::concurrent;  ///< of the host's ranks
  std::uint32_t longest = 256;  ///< bytes that travel as one packet; the machine raises it where there are trains
};

}  // namespace kernbench
