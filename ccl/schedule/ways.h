#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ccl/contract/plan_request.h"
#include "tlm/machine/machine_map.h"

/// The ways of packets on a machine with broken links, as its routing says (MachineMap::wires).
namespace kernbench::ccl {

/// SIPs on the way between every two of `sips`, by their places there: PlanRequest::sip_ways. Null: no link between
/// SIPs is broken.
std::shared_ptr<const Ways> sip_ways(const MachineMap& map, const std::vector<std::uint16_t>& sips);

/// Cubes on the way between every two of a SIP that has a broken link, as nodes: cube c of sips[r] is r times the cubes
/// of a SIP, plus c. PlanRequest::cube_ways, where every cube is a node. Null: no link between cubes is broken.
std::shared_ptr<const Ways> cube_ways(const MachineMap& map, const std::vector<std::uint16_t>& sips);

using SipPair = std::pair<std::uint16_t, std::uint16_t>;
/// Two SIPs that are `links` links apart: those, or the first ones where a broken link has moved those apart. Nothing
/// if there are none.
std::optional<SipPair> sips_apart(const MachineMap& map, std::size_t links, std::optional<SipPair> whole);

}  // namespace kernbench::ccl
