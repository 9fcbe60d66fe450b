#include "ccl/contract/contract.h"

#include <array>
#include <stdexcept>

#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

const char* to_string(ArgumentType type) {
  static constexpr std::array kNames = {"Va", "std::int64_t", "int", "double"};
  return kNames[static_cast<std::size_t>(type)];
}

std::int32_t standard_topology_kind(const char* name) {
  for (std::int32_t kind = 0; kind <= kTopologyKinds.fully_connected; ++kind) {
    if (std::string(name) == kernbench::to_string(static_cast<SipTopology>(kind))) return kind;
  }
  throw std::invalid_argument("unsupported topology '" + std::string(name) + "'");
}

}  // namespace kernbench::ccl
