#pragma once
#include <string>
#include <vector>

namespace kernbench::topology {

struct Plan;

/// A value that keeps a part of the machine from the rate that another value gives it. The machine runs all the same.
struct Throttle {
  std::string key;   ///< of topology.yaml; "overrides" where one of them gave the value
  std::string text;  ///< key and value found, and what they fall short of
  std::string hint;  ///< the value wanted
};

/// All of them, each once however often the machine has it, outermost links first:
/// - receivers of links with less room than bandwidth x round trip, and PCIe with fewer credits than that;
/// - router ports that pass less than the link behind them brings;
/// - UCIe connections whose two ends differ: the faster one waits;
/// - router buffers that one flow empties before credits are back.
std::vector<Throttle> throttles(const Plan& plan);

}  // namespace kernbench::topology
