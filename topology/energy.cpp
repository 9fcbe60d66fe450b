#include "topology/energy.h"

#include "topology/machine.h"
#include "topology/plan.h"

namespace kernbench::topology {

namespace {

constexpr double kPjPerAj = 1e-6;
constexpr double kPjPerMicrowattPs = 1e-6;  // 1 uW during 1 ps is 1e-18 J

/// Adds the work of one component and the power that it takes all the time.
class Row {
 public:
  Row(const char* component, Ps elapsed) : elapsed_(static_cast<double>(elapsed)) { row_.component = component; }
  void work(double attojoule) { row_.dynamic_pj += attojoule * kPjPerAj; }
  void power(std::uint64_t microwatt) {
    row_.static_pj += static_cast<double>(microwatt) * elapsed_ * kPjPerMicrowattPs;
  }
  const EnergyRow& row() const { return row_; }

 private:
  EnergyRow row_;
  double elapsed_;
};

EnergyRow pes(Machine& machine, const Plan& plan, Ps elapsed) {
  Row row("pe", elapsed);
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    for (const PeCoord at : plan.map.pes(sip)) {
      const PeEnergyConfig& config = plan.spec.pe_at(at).energy;
      row.work(dynamic_energy_aj(machine.pe(at).statistics(), config));
      row.power(config.static_uw);
    }
  }
  return row.row();
}

EnergyRow routers(Machine& machine, const Plan& plan, Ps elapsed) {
  Row row("noc", elapsed);
  for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
    const Network& network = plan.networks[id];
    std::uint64_t bytes = 0;
    for (std::uint16_t at = 0; at < network.routers(); ++at) {
      const Router& router = machine.router(id, at);
      for (unsigned port = 0; port < network.ports(at); ++port) {
        if (router.out[port] != nullptr) bytes += router.output_stats(port).bytes;
      }
      row.power(network.noc->static_uw);
    }
    row.work(8.0 * static_cast<double>(bytes) * static_cast<double>(network.noc->energy_per_bit_aj));
  }
  return row.row();
}

EnergyRow wires(Machine& machine, const Plan& plan, bool between_sips) {
  Row row(between_sips ? "inter_sip" : "ucie", 0);
  for (std::uint32_t id = 0; id < plan.ends.size(); ++id) {
    const LinkEnd& end = plan.ends[id];
    const bool inter_sip = end.kind == LinkEnd::Kind::io_link || end.kind == LinkEnd::Kind::fabric_link;
    if (inter_sip != between_sips) continue;
    const LinkPort& port = machine.link_port(id);
    for (unsigned i = 0; i < end.spots->size(); ++i) row.work(static_cast<double>(port.wire(i).energy_aj()));
  }
  return row.row();
}

EnergyRow host_links(Machine& machine, const Plan& plan) {
  Row row("pcie", 0);
  const double per_byte = 8.0 * static_cast<double>(plan.spec.sip.io.pcie.energy_per_bit_aj);
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    const PcieEp& port = machine.pcie_ep(sip);
    row.work(per_byte * static_cast<double>(port.down_stats().raw_bytes + port.up_stats().raw_bytes));
  }
  return row.row();
}

EnergyRow srams(Machine& machine, const Plan& plan, Ps elapsed) {
  Row row("sram", elapsed);
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
      const SramConfig& config = plan.spec.cube_at({sip, cube}).sram;
      row.work(static_cast<double>(machine.sram({sip, cube}).bytes_moved()) *
               static_cast<double>(config.energy_per_byte_aj));
      row.power(config.static_uw);
    }
  }
  return row.row();
}

EnergyRow stacks(Machine& machine, const Plan& plan, Ps elapsed) {
  Row row("hbm", elapsed);
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
      row.work(machine.hbm({sip, cube}).dynamic_energy_aj());
      row.power(plan.spec.cube_at({sip, cube}).hbm.static_uw);
    }
  }
  return row.row();
}

}  // namespace

std::vector<EnergyRow> energy(Machine& machine, const Plan& plan, Ps elapsed) {
  return {pes(machine, plan, elapsed),  routers(machine, plan, elapsed), wires(machine, plan, false),
          wires(machine, plan, true),   host_links(machine, plan),       stacks(machine, plan, elapsed),
          srams(machine, plan, elapsed)};
}

double total_pj(const std::vector<EnergyRow>& rows) {
  double sum = 0;
  for (const EnergyRow& row : rows) sum += row.dynamic_pj + row.static_pj;
  return sum;
}

double dynamic_pj(Machine& machine, const Plan& plan) { return total_pj(energy(machine, plan, 0)); }

}  // namespace kernbench::topology
