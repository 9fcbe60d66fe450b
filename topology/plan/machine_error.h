#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tlm/config/problems.h"

namespace kernbench::topology {

/// The values are sound one by one, but not the machine they make. `keys` lead to the place in the user's file
/// (Resolved::place_of), which stages 3 to 5 do not know.
class MachineError : public ConfigError {
 public:
  MachineError(std::string key, std::string text, std::string hint)
      : MachineError(std::vector<std::string>{std::move(key)}, std::move(text), std::move(hint)) {}
  MachineError(std::vector<std::string> the_keys, std::string text, std::string hint)
      : ConfigError(Location{}, std::move(text), std::move(hint)), keys(std::move(the_keys)) {}
  const std::vector<std::string> keys;  ///< of values or sections of topology.yaml that do not go together
};

}  // namespace kernbench::topology
