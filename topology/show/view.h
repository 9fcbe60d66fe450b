#pragma once
#include <map>
#include <string>

#include "tlm/machine/ids.h"

namespace kernbench::topology {

struct Plan;

struct ViewOptions {
  PeCoord at;  ///< which SIP, cube and PE the narrower views show
  /// Utilisation, 0 to 1, of a link by "from to" (structural names as drawn); links without one are drawn grey. Empty:
  /// plain.
  std::map<std::string, double> utilisation;
};

/// A projection of the machine: `view` is system, sip, cube or pe, `format` svg, dot (with positions: `neato -n`) or
/// json.
/// Throws std::invalid_argument for other words, std::out_of_range for a unit that is not there.
std::string show_view(const Plan& plan, const std::string& view, const std::string& format,
                      const ViewOptions& options = {});

}  // namespace kernbench::topology
