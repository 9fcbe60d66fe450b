#include "topology/plan/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <vector>

#include "tlm/observe/find_cycle.h"
#include "topology/plan/machine_error.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

namespace {

using Channel = std::uint32_t;
constexpr Channel kNone = 0xFFFF'FFFF;

/// Numbers of all channels of a machine, and back to their names.
class Channels {
 public:
  explicit Channels(const Plan& plan) : plan_(plan) {
    for (const Network& network : plan.networks) {
      first_router_.push_back(static_cast<std::uint32_t>(first_port_.size()));
      for (std::uint16_t router = 0; router < network.routers(); ++router) {
        first_port_.push_back(count_);
        count_ += network.ports(router) * 2;
      }
    }
    for (const LinkEnd& end : plan.ends) {
      first_end_.push_back(count_);
      count_ += static_cast<Channel>(end.spots->size()) * 4;
    }
  }
  Channel size() const { return count_; }
  /// The buffer behind an output port.
  Channel output(std::uint32_t network, std::uint16_t router, std::uint8_t port, std::uint8_t set) const {
    return first_port_[first_router_[network] + router] + port * 2u + set;
  }
  /// The receiving side of a wire, at its receiver.
  Channel wire(std::uint32_t end, std::uint16_t connection, std::uint8_t set) const {
    return first_end_[end] + connection * 4u + set;
  }
  /// The router input that a link port injects into.
  Channel injection(std::uint32_t end, std::uint16_t connection, std::uint8_t set) const {
    return first_end_[end] + connection * 4u + 2 + set;
  }
  /// Index of a connection over all ends.
  std::size_t slot(std::uint32_t end, std::uint16_t connection) const {
    return (first_end_[end] - first_end_.front()) / 4 + connection;
  }
  std::size_t slots() const { return first_end_.empty() ? 0 : (count_ - first_end_.front()) / 4; }

  std::string name(Channel channel) const {
    if (!first_end_.empty() && channel >= first_end_.front()) {
      const auto end = static_cast<std::uint32_t>(std::upper_bound(first_end_.begin(), first_end_.end(), channel) -
                                                  first_end_.begin() - 1);
      const Channel offset = channel - first_end_[end];
      return fmt::format("{} connection {} {}, set {}", plan_.end_name(end), offset / 4,
                         offset % 4 < 2 ? "receives" : "injects", offset % 2);
    }
    const auto flat = static_cast<std::uint32_t>(std::upper_bound(first_port_.begin(), first_port_.end(), channel) -
                                                 first_port_.begin() - 1);
    const auto network = static_cast<std::uint32_t>(std::upper_bound(first_router_.begin(), first_router_.end(), flat) -
                                                    first_router_.begin() - 1);
    const Channel offset = channel - first_port_[flat];
    const auto router = static_cast<std::uint16_t>(flat - first_router_[network]);
    return fmt::format("{} output {}, set {}", plan_.router_name(network, router),
                       port_name(network, router, offset / 2), offset % 2);
  }

 private:
  std::string port_name(std::uint32_t network, std::uint16_t router, unsigned port) const {
    if (port < kFirstLocalPort) return letter(static_cast<Side>(port));
    const Beyond beyond = plan_.beyond(network, router, static_cast<std::uint8_t>(port));
    if (beyond.kind == Beyond::Kind::node) return "to " + plan_.map.name(beyond.node);
    if (beyond.kind == Beyond::Kind::end)
      return fmt::format("to {} connection {}", plan_.end_name(beyond.end), beyond.connection);
    return std::to_string(port);
  }

  const Plan& plan_;
  Channel count_ = 0;
  std::vector<std::uint32_t> first_router_;  // by network
  std::vector<Channel> first_port_;          // by router over all networks
  std::vector<Channel> first_end_;           // by end
};

/// A packet about to enter a network at a router.
struct Entry {
  std::uint32_t network = 0;
  std::uint16_t router = 0;
  bool from_io = false;
  std::uint8_t dateline = 0;
  Channel held = kNone;  ///< receiving side of the wire that it came over; kNone: an endpoint injects it
  std::uint32_t end = kNoEnd;
  std::uint16_t connection = 0;
};

class DependencyGraph {
 public:
  explicit DependencyGraph(const Plan& plan)
      : plan_(plan), channels_(plan), next_(channels_.size()), seen_(channels_.slots() * kStates, 0) {}

  /// Everything that packets to `destination` can do from the given sources on.
  void walk(NodeId destination, std::vector<Entry> entries) {
    ++round_;
    while (!entries.empty()) {
      const Entry entry = entries.back();
      entries.pop_back();
      cross(destination, entry, entries);
    }
  }
  /// Packets of every state in which an earlier walk came over this connection.
  void add_arrivals(std::uint32_t end, std::uint16_t connection, std::vector<Entry>& entries) const {
    for (unsigned state = 0; state < kStates; ++state) {
      if (seen_[channels_.slot(end, connection) * kStates + state] == 0) continue;
      entries.push_back(
          arrival(end, connection, static_cast<std::uint8_t>(state / 4), static_cast<std::uint8_t>(state % 4)));
    }
  }
  void check() const;
  DeadlockStats stats() const {
    DeadlockStats stats{channels_.size(), 0};
    for (const auto& list : next_) stats.dependencies += list.size();
    return stats;
  }

 private:
  static constexpr std::size_t kStates = 8;  // VC set on the wire, dateline bits

  Entry arrival(std::uint32_t end, std::uint16_t connection, std::uint8_t set, std::uint8_t dateline) const {
    const LinkEnd& there = plan_.ends[end];
    return {there.network, (*there.spots)[connection].router,    there.kind->from_io,
            dateline,      channels_.wire(end, connection, set), end,
            connection};
  }
  void depend(Channel from, Channel to) {
    if (from == kNone) return;
    auto& list = next_[from];
    if (std::find(list.begin(), list.end(), to) == list.end()) list.push_back(to);
  }
  void cross(NodeId destination, const Entry& entry, std::vector<Entry>& entries);
  void follow_wire(const Beyond& beyond, Channel held, const RouteDecision& decision, std::vector<Entry>& entries);

  const Plan& plan_;
  const Channels channels_;
  std::vector<std::vector<Channel>> next_;
  std::vector<std::uint32_t> seen_;  // by (connection, state): last round that entered there
  std::uint32_t round_ = 0;
};

void DependencyGraph::cross(NodeId destination, const Entry& entry, std::vector<Entry>& entries) {
  const Network& network = plan_.networks[entry.network];
  const RouteDecision decision = network.routes->enter(destination, entry.router, entry.from_io, entry.dateline);
  Channel held = kNone;
  if (entry.held != kNone) {
    held = channels_.injection(entry.end, entry.connection, decision.vc_set);
    depend(entry.held, held);
  }
  std::uint16_t at = entry.router;
  for (unsigned hops = 0;; ++hops) {
    const std::uint8_t port = network.routes->next_port(at, decision.exit);
    const Beyond beyond = plan_.beyond(entry.network, at, port);
    const Channel out = port < network.ports(at) ? channels_.output(entry.network, at, port, decision.vc_set) : kNone;
    depend(held, out);
    held = out;
    if (beyond.kind == Beyond::Kind::router && hops < network.routers()) {
      at = beyond.router;
    } else if (beyond.kind == Beyond::Kind::node && beyond.node == destination) {
      return;
    } else if (beyond.kind == Beyond::Kind::end) {
      return follow_wire(beyond, held, decision, entries);
    } else {
      throw std::logic_error(fmt::format("routing leads packets for {} astray at {}", plan_.map.name(destination),
                                         plan_.router_name(entry.network, at)));
    }
  }
}

void DependencyGraph::follow_wire(const Beyond& beyond, Channel held, const RouteDecision& decision,
                                  std::vector<Entry>& entries) {
  const std::uint32_t peer = plan_.ends[beyond.end].peer;
  depend(held, channels_.wire(peer, beyond.connection, decision.vc_set));
  std::uint32_t& seen = seen_[channels_.slot(peer, beyond.connection) * kStates + decision.vc_set * std::size_t{4} +
                              (decision.dateline & 3u)];
  if (seen == round_) return;
  seen = round_;
  entries.push_back(arrival(peer, beyond.connection, decision.vc_set, decision.dateline & 3u));
}

void DependencyGraph::check() const {
  const std::vector<std::size_t> cycle = find_cycle(next_);
  if (cycle.empty()) return;
  const auto name = [&](std::size_t channel) { return channels_.name(static_cast<Channel>(channel)); };
  std::string text = "packets could wait for each other in a circle:";
  for (const std::size_t channel : cycle) text += "\n  " + name(channel);
  throw MachineError("cube.noc.routing", text + "\n  and again " + name(cycle.front()),
                     "change cube.noc.routing, the holes or the broken links");
}

/// One entry per router of a network that endpoints are attached to.
void add_sources(const Plan& plan, std::uint32_t id, std::vector<Entry>& entries) {
  const Network& network = plan.networks[id];
  for (std::uint16_t router = 0; router < network.routers(); ++router) {
    for (unsigned port = kFirstLocalPort; port < network.ports(router); ++port) {
      if (plan.beyond(id, router, static_cast<std::uint8_t>(port)).kind != Beyond::Kind::node) continue;
      entries.push_back({id, router});
      break;
    }
  }
}

/// By SIP, one destination per (cube, router, parallel link): others with the same share all but the ejection port.
std::vector<std::vector<NodeId>> destinations(const Plan& plan) {
  std::vector<std::vector<NodeId>> lists(plan.spec.sips);
  std::set<std::tuple<std::uint16_t, std::uint16_t, std::uint16_t, std::uint32_t>> known;
  for (std::uint32_t i = 0; i < plan.map.nodes.size(); ++i) {
    const Attachment& at = plan.map.nodes[i].at;
    const std::uint32_t link = choose_link(NodeId{i}, plan.spec.links.links_per_neighbour);
    if (known.insert({at.sip, at.cube, at.router, link}).second) lists[at.sip].push_back(NodeId{i});
  }
  return lists;
}

void walk_representatives(const Plan& plan, DependencyGraph& graph) {
  const std::uint16_t sips = plan.spec.sips, cubes = plan.map.cubes_per_sip();
  const std::size_t links = plan.spec.links.links_per_neighbour;
  const std::vector<std::vector<NodeId>> of_sip = destinations(plan);
  for (std::uint16_t sip = 0; sip < sips; ++sip) {
    std::vector<Entry> inside;
    for (std::uint16_t cube = 0; cube < cubes; ++cube) add_sources(plan, plan.cube_network({sip, cube}), inside);
    add_sources(plan, plan.io_network(sip), inside);
    for (const NodeId to : of_sip[sip]) graph.walk(to, inside);
    if (sips > 1) graph.walk(of_sip[(sip + 1) % sips].front(), inside);
  }
  // From every crossbar, with what came up to it from its cubes, to every SIP.
  for (std::uint16_t sip = 0; sip < sips; ++sip) {
    std::set<std::uint32_t> known;
    for (const NodeId to : of_sip[sip]) {
      if (!known.insert(choose_link(to, links)).second) continue;
      std::vector<Entry> crossbars;
      for (std::uint16_t other = 0; other < sips; ++other) {
        if (other == sip) continue;
        const std::uint32_t network = plan.io_network(other);
        add_sources(plan, network, crossbars);
        for (std::size_t column = 0; column < plan.map.cube_w; ++column) {
          const std::uint32_t end = plan.networks[network].ends[column];
          for (std::size_t i = 0; i < plan.ends[end].spots->size(); ++i)
            graph.add_arrivals(end, static_cast<std::uint16_t>(i), crossbars);
        }
      }
      graph.walk(to, crossbars);
    }
  }
  // From every crossbar, with what came to it over the links, to every unit of its SIP.
  for (std::uint16_t sip = 0; sip < sips; ++sip) {
    const auto& ends = plan.networks[plan.io_network(sip)].ends;
    for (const NodeId to : of_sip[sip]) {
      std::vector<Entry> arrivals;
      const auto connection = static_cast<std::uint16_t>(choose_link(to, links));
      for (std::size_t i = plan.map.cube_w; i < ends.size(); ++i) {
        if (ends[i] != kNoEnd) graph.add_arrivals(ends[i], connection, arrivals);
      }
      graph.walk(to, arrivals);
    }
  }
}

}  // namespace

DeadlockStats check_deadlock(const Plan& plan, Coverage coverage) {
  DependencyGraph graph(plan);
  if (coverage == Coverage::representatives) {
    walk_representatives(plan, graph);
  } else {
    std::vector<Entry> sources;
    for (std::uint32_t network = 0; network < plan.networks.size(); ++network) add_sources(plan, network, sources);
    for (const auto& sip : destinations(plan)) {
      for (const NodeId to : sip) graph.walk(to, sources);
    }
  }
  graph.check();
  return graph.stats();
}

}  // namespace kernbench::topology
