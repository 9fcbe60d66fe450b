#include <fmt/format.h>

#include <algorithm>

#include "tlm/ext/packet.h"
#include "tlm/machine/names.h"
#include "topology/plan/machine_error.h"
#include "topology/plan/plan.h"
#include "topology/spec/neighbours.h"

namespace kernbench::topology {

namespace {

constexpr const char *kIoClass = "UCIe of the IO chiplets", *kCubeSection = "cube.ucie";

std::string side_name(const Network& of, std::uint16_t side) {
  return names::ucie({of.sip, of.cube}, static_cast<Side>(side));
}
std::string column_name(const Network& of, std::uint16_t column) { return names::io_ucie(of.sip, column); }
std::string port_name(const Network& of, std::uint16_t port) { return names::link_port(of.sip, port); }
std::string fabric_port_name(const Network&, std::uint16_t sip) { return names::fabric_link(sip); }

constexpr LinkKind ucie_kind(const char* people, const char* section, bool from_io, LinkKind::Name name) {
  return {people, "ucie", section, PartKind::ucie, EdgeKind::ucie, Delay::ucie, false, from_io, name};
}
constexpr LinkKind sip_kind(LinkKind::Name name) {
  return {"links between SIPs",
          "link",
          "system.links",
          PartKind::link_port,
          EdgeKind::inter_sip,
          Delay::fabric,
          true,
          true,
          name};
}

// Kinds of ends, by what they belong to and lead to.
constexpr LinkKind kCubeToCube = ucie_kind("UCIe between cubes", kCubeSection, false, &side_name);
constexpr LinkKind kCubeToIo = ucie_kind(kIoClass, kCubeSection, true, &side_name);
constexpr LinkKind kIoToCube = ucie_kind(kIoClass, "sip.io.ucie", false, &column_name);
constexpr LinkKind kIoToSip = sip_kind(&port_name);
constexpr LinkKind kFabricToSip = sip_kind(&fabric_port_name);

/// Which ends there are, kind by kind, and who faces whom.
class Connector {
 public:
  explicit Connector(Plan& plan) : plan_(plan), spec_(plan.spec) {}

  void make_networks() {
    for (std::uint16_t sip = 0; sip < spec_.sips; ++sip) {
      for (std::uint16_t cube = 0; cube < plan_.map.cubes_per_sip(); ++cube) {
        Network& network = add_network(NetworkKind::cube, sip, cube, kSides);
        network.layout = plan_.layout_of[plan_.cube_network({sip, cube})];
        network.noc = &spec_.cube_at({sip, cube}).noc;
      }
    }
    for (std::uint16_t sip = 0; sip < plan_.crossbars.size(); ++sip) {
      const CrossbarLayout& crossbar = plan_.crossbars[sip];
      const bool io = sip < spec_.sips;
      Network& network = add_network(io ? NetworkKind::io : NetworkKind::fabric, sip, kIoChiplet,
                                     crossbar.ucie.size() + crossbar.links.size());
      network.crossbar = &crossbar;
      network.noc = io ? &spec_.sip.io.crossbar : &spec_.links.switch_crossbar;
    }
  }

  void join_cubes(std::uint16_t sip) {
    for (std::uint16_t cube = 0; cube < plan_.map.cubes_per_sip(); ++cube) {
      for (const Side side : {Side::east, Side::south}) {
        const auto other = cube_neighbour(plan_.map.cube_w, plan_.map.cube_h, cube, side);
        if (!other || spec_.broken_cube_links.count({CubeCoord{sip, cube}, *other}) != 0) continue;
        join(of_cube(kCubeToCube, {sip, cube}, side), of_cube(kCubeToCube, {sip, *other}, opposite(side)));
      }
    }
  }
  void join_io_chiplet(std::uint16_t sip) {
    const std::uint32_t network = plan_.io_network(sip);
    for (std::uint16_t column = 0; column < plan_.map.cube_w; ++column) {
      join(end(kIoToCube, network, column, column, plan_.crossbars[sip].ucie[column], spec_.sip.io.ucie.link()),
           of_cube(kCubeToIo, {sip, column}, Side::north));
    }
  }
  void join_sips(std::uint16_t sip) {
    const std::vector<std::uint16_t>& neighbours = plan_.crossbars[sip].neighbours;
    for (std::uint16_t number = 0; number < neighbours.size(); ++number) {
      const std::uint16_t other = neighbours[number];
      if (other == kFabric) {
        LinkConfig link = spec_.links.link;
        link.latency += spec_.links.switch_latency;
        join(of_sip(sip, number),
             end(kFabricToSip, plan_.fabric_network(), sip, sip, plan_.crossbars[spec_.sips].links[sip], link));
      } else if (other > sip && spec_.broken_sip_links.count({sip, other}) == 0) {
        const auto& theirs = plan_.crossbars[other].neighbours;
        const auto back = std::find(theirs.begin(), theirs.end(), sip) - theirs.begin();
        join(of_sip(sip, number), of_sip(other, static_cast<std::uint16_t>(back)));
      }
    }
  }

 private:
  /// An end and its place in the `ends` of its network.
  struct Placed {
    LinkEnd end;
    std::size_t slot;
  };

  Network& add_network(NetworkKind kind, std::uint16_t sip, std::uint16_t cube, std::size_t ends) {
    Network& network = plan_.networks.emplace_back();
    network.kind = kind;
    network.sip = sip;
    network.cube = cube;
    network.ends.assign(ends, kNoEnd);
    return network;
  }

  static Placed end(const LinkKind& kind, std::uint32_t network, std::uint16_t number, std::size_t slot,
                    const std::vector<Spot>& spots, const LinkConfig& link) {
    return {{&kind, network, kNoEnd, number, &spots, link}, slot};
  }
  Placed of_cube(const LinkKind& kind, CubeCoord at, Side side) const {
    const std::uint32_t network = plan_.cube_network(at);
    const auto number = static_cast<std::uint16_t>(side);
    return end(kind, network, number, number, plan_.networks[network].layout->ucie[number],
               spec_.cube_at(at).ucie.link());
  }
  Placed of_sip(std::uint16_t sip, std::uint16_t number) const {
    const CrossbarLayout& crossbar = plan_.crossbars[sip];
    return end(kIoToSip, plan_.io_network(sip), number, crossbar.ucie.size() + number, crossbar.links[number],
               spec_.links.link);
  }

  void join(Placed a, Placed b) {
    if (a.end.spots->size() != b.end.spots->size()) {
      // Of the IO chiplet and a cube: all cubes have the same.
      const auto side = [&](const Placed& of) {
        const Network& network = plan_.networks[of.end.network];
        return fmt::format("{} UCIe connections of {}", of.end.spots->size(),
                           network.kind == NetworkKind::io
                               ? fmt::format("the IO chiplet of {}", names::sip(network.sip))
                               : names::cube({network.sip, network.cube}));
      };
      throw MachineError(std::vector<std::string>{"sip.io.ucie.connections", "cube.ucie.connections"},
                         fmt::format("{} face {}", side(a), side(b)), "give both the same ucie.connections");
    }
    // Trained to what both can do.
    const std::uint64_t rate = std::min(a.end.link.bytes_per_second, b.end.link.bytes_per_second);
    const auto first = static_cast<std::uint32_t>(plan_.ends.size());
    a.end.peer = first + 1;
    b.end.peer = first;
    for (const Placed& side : {a, b}) {
      plan_.networks[side.end.network].ends[side.slot] = static_cast<std::uint32_t>(plan_.ends.size());
      plan_.ends.push_back(side.end);
      plan_.ends.back().link.bytes_per_second = rate;
    }
  }

  Plan& plan_;
  const SystemSpec& spec_;
};

}  // namespace

void Plan::connect() {
  Connector connector(*this);
  connector.make_networks();
  for (std::uint16_t sip = 0; sip < spec.sips; ++sip) {
    connector.join_cubes(sip);
    connector.join_io_chiplet(sip);
  }
  for (std::uint16_t sip = 0; sip < spec.sips; ++sip) connector.join_sips(sip);
}

}  // namespace kernbench::topology
