#include "topology/machine/energy.h"

#include <algorithm>
#include <utility>

#include "topology/machine/machine.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

namespace {

constexpr double kAjPerPj = 1e6;
constexpr double kPjPerMicrowattPs = 1e-6;  // 1 uW during 1 ps is 1e-18 J

/// Adds the work of one component and the power that it takes all the time.
class Row {
 public:
  Row(const char* component, Ps elapsed) : elapsed_(static_cast<double>(elapsed)) { row_.component = component; }
  /// `count` times `each` attojoule.
  void work(const std::string& operation, const char* unit, double count, std::uint64_t each) {
    if (count != 0) of(operation, unit, count).dynamic_pj += count * static_cast<double>(each) / kAjPerPj;
  }
  void power(std::uint64_t microwatt) {
    row_.static_pj += static_cast<double>(microwatt) * elapsed_ * kPjPerMicrowattPs;
  }
  EnergyRow row() {
    for (const EnergyOperation& operation : row_.operations) row_.dynamic_pj += operation.dynamic_pj;
    return std::move(row_);
  }

 private:
  EnergyOperation& of(const std::string& operation, const char* unit, double count) {
    std::vector<EnergyOperation>& all = row_.operations;
    auto found =
        std::find_if(all.begin(), all.end(), [&](const EnergyOperation& o) { return o.operation == operation; });
    if (found == all.end()) found = all.insert(found, {operation, unit, 0, 0});
    found->count += count;
    return *found;
  }

  EnergyRow row_;
  double elapsed_;
};

/// SIPs [first, last), and what the fabric switch sends to them.
struct Part {
  std::uint16_t first = 0, last = 0;
  bool whole = false;                  ///< what belongs to no SIP, too
  bool inside = true, between = true;  ///< what stays in its SIP; what leaves over links between SIPs
  bool counts(bool between_sips) const { return between_sips ? between : inside; }
  bool has(std::uint16_t sip) const { return sip >= first && sip < last; }
};

EnergyRow pes(Machine& machine, const Plan& plan, Part part, Ps elapsed) {
  Row row("pe", elapsed);
  for (std::uint16_t sip = part.first; sip < part.last; ++sip) {
    for (const PeCoord at : plan.map.pes(sip)) {
      const PeEnergyConfig& each = plan.spec.pe_at(at).energy;
      const PeStatistics done = machine.pe(at).statistics();
      const auto count = [&](const char* operation, const char* unit, std::uint64_t times, std::uint64_t aj) {
        row.work(operation, unit, static_cast<double>(times), aj);
      };
      count("pe.energy.mac_8bit", "MAC", done.macs_8bit, each.mac_8bit_aj);
      count("pe.energy.mac_16bit", "MAC", done.macs_16bit, each.mac_16bit_aj);
      count("pe.energy.mac_32bit", "MAC", done.macs_32bit, each.mac_32bit_aj);
      count("pe.energy.mac_64bit", "MAC", done.macs_64bit, each.mac_64bit_aj);
      count("pe.energy.math", "element and cycle", done.math_lane_cycles, each.math_aj);
      count("pe.energy.tcm_byte", "B", done.tcm_bytes, each.tcm_aj_per_byte);
      count("pe.energy.dma_byte", "B", done.dma_read_bytes + done.dma_write_bytes, each.dma_aj_per_byte);
      row.power(each.static_uw);
    }
  }
  return row.row();
}

const char* router_key(NetworkKind kind) {
  return kind == NetworkKind::cube ? "cube.noc.energy_per_bit"
         : kind == NetworkKind::io ? "sip.io.crossbar.energy_per_bit"
                                   : "system.links.switch.energy_per_bit";
}

EnergyRow routers(Machine& machine, const Plan& plan, Part part, Ps elapsed) {
  Row row("noc", elapsed);
  for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
    const Network& network = plan.networks[id];
    const bool fabric = network.kind == NetworkKind::fabric;
    if ((!fabric && !part.has(network.sip)) || (network.kind == NetworkKind::cube && !part.inside)) continue;
    std::uint64_t bytes = 0;
    for (std::uint16_t at = 0; at < network.routers(); ++at) {
      const Router& router = machine.router(id, at);
      for (unsigned port = 0; port < network.ports(at); ++port) {
        const auto number = static_cast<std::uint8_t>(port);
        if (router.out[port] == nullptr || !part.has(plan.sip_of(id, at, number))) continue;
        if (part.counts(plan.leads_between_sips(id, at, number))) bytes += router.output_stats(port).bytes;
      }
      if (!fabric || part.whole) row.power(network.noc->static_uw);
    }
    row.work(router_key(network.kind), "bit and router", 8.0 * static_cast<double>(bytes),
             network.noc->energy_per_bit_aj);
  }
  return row.row();
}

EnergyRow wires(Machine& machine, const Plan& plan, Part part, EdgeKind edge) {
  Row row(to_string(edge), 0);
  for (std::uint32_t id = 0; id < plan.ends.size(); ++id) {
    const LinkEnd& end = plan.ends[id];
    if (end.kind->edge != edge || !part.has(plan.sip_of(end))) continue;
    if (!part.counts(end.kind->between_sips)) continue;
    const LinkPort& port = machine.link_port(id);
    for (unsigned i = 0; i < end.spots->size(); ++i) {
      row.work(end.kind->key("energy_per_bit"), "raw bit", 8.0 * static_cast<double>(port.wire_stats(i).raw_bytes),
               port.wire(i).config().energy_per_bit_aj);
    }
  }
  return row.row();
}

EnergyRow host_links(Machine& machine, const Plan& plan, Part part) {
  Row row("pcie", 0);
  for (std::uint16_t sip = part.first; sip < part.last; ++sip) {
    const PcieEp& port = machine.pcie_ep(sip);
    row.work("sip.io.pcie.energy_per_bit", "raw bit",
             8.0 * static_cast<double>(port.down_stats().raw_bytes + port.up_stats().raw_bytes),
             plan.spec.sip.io.pcie.energy_per_bit_aj);
  }
  return row.row();
}

EnergyRow srams(Machine& machine, const Plan& plan, Part part, Ps elapsed) {
  Row row("sram", elapsed);
  for (std::uint16_t sip = part.first; sip < part.last; ++sip) {
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
      const SramConfig& config = plan.spec.cube_at({sip, cube}).sram;
      row.work("cube.sram.energy_per_byte", "B", static_cast<double>(machine.sram({sip, cube}).bytes_moved()),
               config.energy_per_byte_aj);
      row.power(config.static_uw);
    }
  }
  return row.row();
}

EnergyRow stacks(Machine& machine, const Plan& plan, Part part, Ps elapsed) {
  Row row("hbm", elapsed);
  for (std::uint16_t sip = part.first; sip < part.last; ++sip) {
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
      const HbmConfig& config = plan.spec.cube_at({sip, cube}).hbm;
      const Hbm::Stats done = machine.hbm({sip, cube}).stats();
      row.work("cube.hbm.activate_energy", "activate", static_cast<double>(done.activates), config.activate_aj);
      row.work("cube.hbm.energy_per_bit", "bit",
               8.0 * config.burst_bytes * static_cast<double>(done.reads + done.writes), config.energy_per_bit_aj);
      row.work(kRefreshOperation, "bank", static_cast<double>(done.bank_refreshes), config.bank_refresh_aj);
      row.power(config.static_uw);
    }
  }
  return row.row();
}

std::vector<EnergyRow> rows(Machine& machine, const Plan& plan, Part part, Ps elapsed) {
  if (!part.inside) return {routers(machine, plan, part, elapsed), wires(machine, plan, part, EdgeKind::inter_sip)};
  return {pes(machine, plan, part, elapsed),
          routers(machine, plan, part, elapsed),
          wires(machine, plan, part, EdgeKind::ucie),
          wires(machine, plan, part, EdgeKind::inter_sip),
          host_links(machine, plan, part),
          stacks(machine, plan, part, elapsed),
          srams(machine, plan, part, elapsed)};
}

}  // namespace

std::vector<EnergyRow> energy(Machine& machine, const Plan& plan, Ps elapsed) {
  return rows(machine, plan, {0, plan.map.sips, true}, elapsed);
}

std::vector<EnergyRow> work_of_sip(Machine& machine, const Plan& plan, std::uint16_t sip, bool links) {
  return rows(machine, plan, {sip, static_cast<std::uint16_t>(sip + 1), false, !links, links}, 0);
}

double total_pj(const std::vector<EnergyRow>& rows) {
  double sum = 0;
  for (const EnergyRow& row : rows) sum += row.dynamic_pj + row.static_pj;
  return sum;
}

}  // namespace kernbench::topology
