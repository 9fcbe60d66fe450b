#include "topology/plan/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/noc/virtual_channel.h"
#include "tlm/machine/names.h"
#include "topology/plan/machine_error.h"
#include "topology/spec/neighbours.h"

namespace kernbench::topology {

namespace {

std::vector<Spot> add_ports(CrossbarLayout& layout, CrossbarPort::Kind kind, std::uint16_t end,
                            std::size_t connections) {
  std::vector<Spot> spots;
  for (std::size_t i = 0; i < connections; ++i) {
    layout.ports.push_back({kind, end, static_cast<std::uint16_t>(i)});
    // Numbers past the limit are refused before anybody uses them.
    spots.push_back({0, static_cast<std::uint8_t>(kFirstLocalPort + layout.ports.size() - 1)});
  }
  return spots;
}

void check_ports(const CrossbarLayout& layout, const std::string& name, const char* key, const char* hint) {
  const std::size_t ports = kFirstLocalPort + layout.ports.size();
  if (ports <= kNoPort) return;
  throw MachineError(
      key, fmt::format("{} would need {} ports; {} is the most", name, layout.ports.size(), kNoPort - kFirstLocalPort),
      hint);
}

}  // namespace

CrossbarLayout layout_io(const SystemSpec& spec, std::uint16_t sip) {
  CrossbarLayout layout;
  layout.pcie_ep = add_ports(layout, CrossbarPort::Kind::pcie_ep, 0, 1).front();
  layout.io_cpu = add_ports(layout, CrossbarPort::Kind::io_cpu, 0, 1).front();
  for (std::uint16_t column = 0; column < spec.sip.cube_w; ++column) {
    layout.ucie.push_back(add_ports(layout, CrossbarPort::Kind::ucie, column, spec.sip.io.ucie.connections));
  }
  for (const std::uint16_t other : sip_neighbours(spec, sip)) {
    const auto number = static_cast<std::uint16_t>(layout.links.size());
    layout.links.push_back(add_ports(layout, CrossbarPort::Kind::link, number, spec.links.links_per_neighbour));
    layout.neighbours.push_back(other);
  }
  check_ports(layout, names::crossbar(sip), "sip.io",
              "use fewer links per neighbour, fewer UCIe connections or another system.topology");
  return layout;
}

CrossbarLayout layout_fabric(const SystemSpec& spec) {
  CrossbarLayout layout;
  for (std::uint16_t sip = 0; sip < spec.sips; ++sip) {
    layout.links.push_back(add_ports(layout, CrossbarPort::Kind::link, sip, spec.links.links_per_neighbour));
    layout.neighbours.push_back(sip);
  }
  check_ports(layout, names::fabric_crossbar(), "system", "use fewer SIPs or fewer links per neighbour");
  return layout;
}

std::uint32_t credit_cycles(const Network& network) {
  const NocConfig& noc = *network.noc;
  const std::uint32_t back = noc.link_delay + noc.credit_delay;
  const std::uint32_t of_source = 1 + back, of_router = 2 * noc.sw_alloc_delay + noc.switch_delay + back;
  return network.kind == NetworkKind::cube ? std::max(of_source, of_router) : of_source;
}

bool buffers_cover_credits(const Network& network) { return network.noc->vc_depth_flits >= credit_cycles(network); }

std::uint64_t port_payload_rate(const NocConfig& noc) {
  return noc.clock_hz * kMaxPacketBytes / FlitCounter(noc.flit_bytes)(kMaxPacketBytes);
}

Ps round_trip(const LinkEnd& from, const LinkEnd& peer) {
  const LinkConfig& link = from.link;
  return link.rate().time_for(kMaxPacketBytes + link.header_bytes) + link.latency + peer.link.latency;
}

std::uint32_t packets_to_cover(const LinkEnd& from, const LinkEnd& peer) {
  LinkConfig both = from.link;
  both.latency = (from.link.latency + peer.link.latency + 1) / 2;
  return both.packets_to_cover();
}

}  // namespace kernbench::topology
