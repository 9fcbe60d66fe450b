#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tlm/machine/machine_map.h"
#include "topology/plan/layout.h"
#include "topology/plan/mesh_routes.h"
#include "topology/plan/network.h"
#include "topology/plan/routes.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// Results of stages 2 to 5: the typed specs, the layouts, how the networks hang together, and how packets are led
/// through them. Immutable once made; everything points into it, so it stays where it is.
struct Plan {
  explicit Plan(SystemSpec the_spec);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const SystemSpec spec;

  // Stage 3. Cubes of one shape share a layout.
  std::deque<CubeLayout> layouts;
  std::vector<const CubeLayout*> layout_of;  ///< by (sip, cube)
  std::vector<Spot> initiators;              ///< by number: SystemSpec::initiators
  std::deque<CrossbarLayout> crossbars;      ///< by SIP; then the fabric switch's

  // Stage 4. Networks: cubes by (sip, cube), IO chiplets by SIP, the fabric switch.
  std::vector<Network> networks;
  std::vector<LinkEnd> ends;

  // Stage 5.
  std::deque<MeshRoutes> meshes;
  std::vector<const MeshRoutes*> mesh_of;  ///< by (sip, cube)
  std::deque<CubeTable> cube_tables;
  std::vector<const CubeTable*> cube_table_of;  ///< by SIP
  std::optional<SipTable> sip_table;
  std::vector<std::unique_ptr<NetworkRoutes>> routes;  ///< by network

  MachineMap map;

  bool has_fabric() const { return spec.topology == SipTopology::switch_star && spec.sips > 1; }
  std::uint32_t cube_network(CubeCoord at) const { return std::uint32_t{at.sip} * map.cubes_per_sip() + at.cube; }
  std::uint32_t io_network(std::uint16_t sip) const { return std::uint32_t{spec.sips} * map.cubes_per_sip() + sip; }
  std::uint32_t fabric_network() const { return io_network(spec.sips); }
  std::uint32_t network_of(NodeId node) const;

  /// What a port of a router leads to.
  Beyond beyond(std::uint32_t network, std::uint16_t router, std::uint8_t port) const;
  /// Whose work what leaves there is: the SIP's own or, of the fabric switch, the one's that it is sent to.
  std::uint16_t sip_of(const LinkEnd& end) const;
  std::uint16_t sip_of(std::uint32_t network, std::uint16_t router, std::uint8_t port) const;  ///< kNoSip: of none
  /// It leads to a link between SIPs, or from one to another inside the fabric switch.
  bool leads_between_sips(std::uint32_t network, std::uint16_t router, std::uint8_t port) const;
  static constexpr std::uint16_t kNoSip = 0xFFFF;

  // Structural names.
  std::string router_name(std::uint32_t network, std::uint16_t router) const;
  std::string end_name(std::uint32_t end) const;

 private:
  void lay_out();
  void attach_initiators();
  void connect();
  void route();
  void fill_nodes();
  void fill_capacities();
};

/// Stages 3 to 5. Throws ConfigError for a machine that cannot be: no way between two units, a deadlock, a stale pin.
inline Plan make_plan(SystemSpec spec) { return Plan(std::move(spec)); }

}  // namespace kernbench::topology
