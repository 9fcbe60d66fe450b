#pragma once
#include <string>
#include <vector>

#include "tlm/machine/fidelity.h"

namespace kernbench {

/// Reads the value of --fidelity: "accurate", "fast", or entries such as "noc=fast,hbm=accurate"; parts that are not
/// named are accurate, or what a leading "fast" says. Throws UsageError, which names the entry and the nearest name.
Fidelity parse_fidelity(const std::string& text);

/// What `kernbench validate` has found of one part at one grade.
struct ErrorBand {
  Subsystem part;
  Grade grade;
  const char* measure;  ///< of what, against what
  double percent;       ///< largest deviation
};
/// The bands that hold for a run; at least one for each part.
std::vector<ErrorBand> error_bands(const Fidelity& fidelity);
/// One line for people: what was simulated, and why that is not what was asked for.
std::string describe(const Fidelity& fidelity, const Fidelity& asked);

}  // namespace kernbench
