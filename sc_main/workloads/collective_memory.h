#pragma once
#include <string>

#include "sc_main/workloads/collective_options.h"
#include "sc_main/workloads/workload.h"

namespace kernbench {

/// Throws HostShortage if the largest size of a collective needs more memory than this computer has left: for what
/// stands in the modelled memories, for what the host keeps of it to compare, and for the results. Before there is any
/// of it. Nothing where the device is too small, which it says itself.
void check_host_memory(Session& session, const std::string& name, const CollectiveRun& request,
                       const PlacementUnits& units);

}  // namespace kernbench
