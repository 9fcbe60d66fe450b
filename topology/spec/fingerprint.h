#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench::topology {

/// MachineMap::fingerprint: of a whole configuration, its overrides among it, without what moves no time between the
/// start of a collective kernel and its end: energies, GEMM, PCIe, and what commands and launches take.
std::string fingerprint(const nlohmann::ordered_json& config);

}  // namespace kernbench::topology
