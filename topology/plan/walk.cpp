#include "topology/plan/walk.h"

#include <fmt/format.h>

#include <stdexcept>

#include "topology/plan/plan.h"

namespace kernbench::topology {

std::vector<RouterStep> walk(const Plan& plan, NodeId from, NodeId to) {
  const Attachment& at = plan.map.node(from).at;
  return walk_from(plan, plan.network_of(from), at.router, at.port, to);
}

std::vector<RouterStep> walk_from(const Plan& plan, std::uint32_t network, std::uint16_t router, std::uint8_t in_port,
                                  NodeId to) {
  std::vector<RouterStep> steps;
  bool from_io = false;
  std::uint8_t dateline = 0;
  const std::size_t most = 4 * plan.networks.size() * 64 + 65536;  // a longer way goes in circles
  while (steps.size() < most) {
    const Network& net = plan.networks[network];
    const RouteDecision decision = net.routes->enter(to, router, from_io, dateline);
    Beyond beyond;
    do {
      const std::uint8_t out_port = net.routes->next_port(router, decision.exit);
      steps.push_back({network, router, in_port, out_port, decision.vc_set, kNoEnd, 0});
      beyond = plan.beyond(network, router, out_port);
      if (beyond.kind == Beyond::Kind::router) {
        router = beyond.router;
        in_port = beyond.in_port;
      }
    } while (beyond.kind == Beyond::Kind::router && steps.size() < most);
    if (beyond.kind == Beyond::Kind::node && beyond.node == to) return steps;
    if (beyond.kind != Beyond::Kind::end) break;
    steps.back().end = beyond.end;
    steps.back().connection = beyond.connection;
    const LinkEnd& there = plan.ends[plan.ends[beyond.end].peer];
    const Spot spot = (*there.spots)[beyond.connection];
    network = there.network;
    router = spot.router;
    in_port = spot.port;
    from_io = there.kind->from_io;
    dateline = decision.dateline;
  }
  throw std::logic_error(
      fmt::format("routing leads packets for {} astray at {}", plan.map.name(to), plan.router_name(network, router)));
}

}  // namespace kernbench::topology
