#pragma once
#include <cstdint>
#include <vector>

#include "tlm/machine/ids.h"
#include "topology/plan/network.h"

namespace kernbench::topology {

struct Plan;

/// One router that a packet passes. `end` and `connection`: the link port that it leaves the network by, if it does.
struct RouterStep {
  std::uint32_t network = 0;
  std::uint16_t router = 0;
  std::uint8_t in_port = 0, out_port = 0;
  std::uint8_t vc_set = 0;
  std::uint32_t end = kNoEnd;
  std::uint16_t connection = 0;
};

/// The routers on the way of a packet, worked out by the routing objects that the models ask. Both nodes may be the
/// same.
std::vector<RouterStep> walk(const Plan& plan, NodeId from, NodeId to);

/// The same for a packet that is injected at a router, not at an endpoint.
std::vector<RouterStep> walk_from(const Plan& plan, std::uint32_t network, std::uint16_t router, std::uint8_t in_port,
                                  NodeId to);

}  // namespace kernbench::topology
