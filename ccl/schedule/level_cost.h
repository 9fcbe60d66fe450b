#pragma once
#include "ccl/contract/plan_request.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// B of a short message of data: one flit where networks are wide.
inline constexpr std::uint32_t kShortMessage = 64;

inline double seconds(Ps time) { return static_cast<double>(time) * 1e-12; }

/// Bytes per second that last on a bundle where `networks` virtual networks carry data: each sends as much as its
/// receivers hold, then waits for credits, which a place is worth a round trip after its packet began.
double lasting_rate(const LinkBundle& link, unsigned networks);
/// What the receivers of one direction hold of a virtual network, in bytes.
double window_bytes(const LinkBundle& link);

/// Fills in what links, memories and ports of the machine take: everything of a request that `estimate` runs
/// on. Rates are those of the slowest link of a level; times are those of packets on an idle network, of the PEs that
/// are farthest, since the last lane ends an operation.
void describe_machine(const MachineMap& map, PlanRequest& request);

/// Sets the contributors inside a SIP; 1 x 1: the SIP as a whole, whose lanes then lie in all cubes.
/// REQUIRES: describe_machine was called before, this only once.
void set_nodes(PlanRequest& request, std::int32_t cube_w, std::int32_t cube_h);

/// A region of several lies on few PEs each, and every lane has a part of all of them: its loads, or stores, go as far
/// as the farthest PE of the SIP. REQUIRES: nodes are SIPs; operation and lanes are known.
void spread_regions(const MachineMap& map, PlanRequest& request);

}  // namespace kernbench::ccl
