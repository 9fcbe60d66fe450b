#include "tlm/machine/machine_map.h"

#include <fmt/format.h>

#include <stdexcept>

#include "tlm/machine/names.h"

namespace kernbench {

const char* to_string(SipTopology topology) {
  switch (topology) {
    case SipTopology::ring_1d:
      return "ring_1d";
    case SipTopology::torus_2d:
      return "torus_2d";
    case SipTopology::mesh_2d_no_wrap:
      return "mesh_2d_no_wrap";
    case SipTopology::switch_star:
      return "switch";
    case SipTopology::fully_connected:
      return "fully_connected";
  }
  return "?";
}

namespace {
/// `name(at)` is what the message calls a part that is not there.
template <class Table, class At>
NodeId look_up(const Table& table, std::size_t slot, bool in_range, std::string (*name)(At), At at) {
  if (!in_range || slot >= table.size() || table[slot] == kNoNode) {
    throw std::out_of_range(fmt::format("the machine has no {}", name(at)));
  }
  return table[slot];
}
}  // namespace

PeRates MachineMap::rates(PeCoord pe) const {
  const auto odd = odd_pes.find(pe);
  return odd != odd_pes.end() ? odd->second : PeRates{hbm_slice.peak, tcm.peak, pe_port, engines};
}

bool MachineMap::has(PeCoord pe) const {
  return pe.sip < sips && pe.cube < cubes_per_sip() && pe.pe < pes_per_cube && pe_nodes[slot(pe)] != kNoNode;
}

std::vector<PeCoord> MachineMap::pes(std::uint16_t sip) const {
  std::vector<PeCoord> list;
  for (std::uint16_t cube = 0; cube < cubes_per_sip(); ++cube) {
    for (std::uint16_t pe = 0; pe < pes_per_cube; ++pe) {
      if (has({sip, cube, pe})) list.push_back({sip, cube, pe});
    }
  }
  return list;
}

NodeId MachineMap::pe(PeCoord pe) const {
  const bool ok = pe.sip < sips && pe.cube < cubes_per_sip() && pe.pe < pes_per_cube;
  return look_up(pe_nodes, slot(pe), ok, names::pe, pe);
}

NodeId MachineMap::hbm_port(PeCoord owner) const {
  const bool ok = owner.sip < sips && owner.cube < cubes_per_sip() && owner.pe < pes_per_cube;
  return look_up(hbm_nodes, slot(owner), ok, names::hbm_port, owner);
}

NodeId MachineMap::sram_of(CubeCoord cube) const {
  return look_up(sram_nodes, slot(cube), cube.sip < sips && cube.cube < cubes_per_sip(), names::sram, cube);
}

NodeId MachineMap::m_cpu(CubeCoord cube) const {
  return look_up(m_cpu_nodes, slot(cube), cube.sip < sips && cube.cube < cubes_per_sip(), names::m_cpu, cube);
}

NodeId MachineMap::io_cpu(std::uint16_t sip) const {
  return look_up(io_cpu_nodes, sip, sip < sips, names::io_cpu, sip);
}
NodeId MachineMap::pcie_ep(std::uint16_t sip) const {
  return look_up(pcie_nodes, sip, sip < sips, names::pcie_ep, sip);
}

std::string MachineMap::name(NodeId id) const {
  const Node& n = node(id);
  switch (n.kind) {
    case NodeKind::pe:
      return names::pe({n.at.sip, n.at.cube, n.unit});
    case NodeKind::hbm_port:
      return names::hbm_port({n.at.sip, n.at.cube, n.unit});
    case NodeKind::sram:
      return names::sram({n.at.sip, n.at.cube});
    case NodeKind::m_cpu:
      return names::m_cpu({n.at.sip, n.at.cube});
    case NodeKind::pcie_ep:
      return names::pcie_ep(n.at.sip);
    case NodeKind::io_cpu:
      return names::io_cpu(n.at.sip);
    case NodeKind::initiator:
      return names::initiator({n.at.sip, n.at.cube}, n.unit);
  }
  return "?";
}

PeCoord MachineMap::coord(NodeId pe_node) const {
  const Node& n = node(pe_node);
  return {n.at.sip, n.at.cube, n.unit};
}

NodeId MachineMap::resolve(std::uint64_t encoded) const {
  try {
    return resolve(PhysicalAddress::decode(encoded));
  } catch (const std::invalid_argument&) {
    return kNoNode;
  }
}

NodeId MachineMap::resolve(const PhysicalAddress& address) const {
  if (address.rack != 0 || address.sip >= sips) return kNoNode;
  const CubeCoord cube{address.sip, address.cube};
  const PeCoord owner{address.sip, address.cube, address.unit};
  switch (address.kind) {
    case MemoryKind::hbm: {  // a missing PE leaves its slice
      const bool inside =
          address.cube < cubes_per_sip() && address.unit < pes_per_cube && address.offset < hbm_slice.bytes;
      return inside ? hbm_nodes[slot(owner)] : kNoNode;
    }
    case MemoryKind::tcm:
      return has(owner) && address.offset < tcm.bytes ? pe_nodes[slot(owner)] : kNoNode;
    case MemoryKind::sfr:
      return has(owner) ? pe_nodes[slot(owner)] : kNoNode;
    case MemoryKind::sram:
      return address.cube < cubes_per_sip() && address.offset < sram.bytes ? sram_nodes[slot(cube)] : kNoNode;
    case MemoryKind::host:
      return pcie_nodes[address.sip];
  }
  return kNoNode;
}

}  // namespace kernbench
