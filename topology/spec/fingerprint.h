#pragma once
#include <string>

#include "topology/spec/spec.h"

namespace kernbench::topology {

/// MachineMap::fingerprint: of the canonical configuration without what moves no time between the start of a collective
/// kernel and its end: energies, GEMM, PCIe, and what commands and launches take.
std::string fingerprint(const SystemSpec& spec);

}  // namespace kernbench::topology
