#pragma once
#include <string>
#include <utility>

#include "tlm/config/problems.h"

namespace kernbench::topology {

/// The values are sound one by one, but not the machine they make. `key` leads to the place in the user's file
/// (Resolved::place_of), which stages 3 to 5 do not know.
class MachineError : public ConfigError {
 public:
  MachineError(std::string the_key, std::string text, std::string hint)
      : ConfigError(Location{}, std::move(text), std::move(hint)), key(std::move(the_key)) {}
  const std::string key;  ///< of a value or section of topology.yaml
};

}  // namespace kernbench::topology
