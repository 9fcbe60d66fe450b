#include "topology/plan/event_rates.h"

#include "topology/plan/plan.h"

namespace kernbench::topology {

std::map<std::string, double> most_per_second(const Plan& plan, std::uint16_t sips) {
  std::map<std::string, double> most;
  for (std::uint16_t sip = 0; sip < sips; ++sip) {
    for (const PeCoord at : plan.map.pes(sip)) {
      const GemmConfig& gemm = plan.spec.pe_at(at).gemm;
      const double cells =
          static_cast<double>(gemm.rows) * static_cast<double>(gemm.cols) * static_cast<double>(gemm.clock_hz);
      most["pe.energy.mac_8bit"] += cells * gemm.f8_rate;
      most["pe.energy.mac_16bit"] += cells * gemm.f16_rate;
      most["pe.energy.mac_32bit"] += cells / gemm.f32_cycles;
      most["pe.energy.mac_64bit"] += cells / (2.0 * gemm.f32_cycles);
    }
    for (std::uint16_t cube = 0; cube < plan.map.cubes_per_sip(); ++cube) {
      for (std::uint16_t pe = 0; pe < plan.map.pes_per_cube; ++pe) {  // a slice is there without its PE, too
        const Rate rate = plan.map.rates({sip, cube, pe}).hbm_slice;
        most["cube.hbm.energy_per_bit"] += 8.0 * static_cast<double>(rate.bytes_per_second());
      }
    }
  }
  for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
    const Network& network = plan.networks[id];
    if (network.kind != NetworkKind::cube || network.sip >= sips) continue;
    for (std::uint16_t router = 0; router < network.routers(); ++router) {
      for (unsigned port = 0; port < network.ports(router); ++port) {
        if (plan.beyond(id, router, static_cast<std::uint8_t>(port)).kind == Beyond::Kind::nothing) continue;
        most["cube.noc.energy_per_bit"] += 8.0 * static_cast<double>(network.noc->link_rate().bytes_per_second());
      }
    }
  }
  for (const LinkEnd& end : plan.ends) {
    const Network& network = plan.networks[end.network];
    if ((network.kind == NetworkKind::fabric ? end.number : network.sip) >= sips) continue;
    most[end.kind->key("energy_per_bit")] +=
        8.0 * static_cast<double>(end.link.bytes_per_second) * static_cast<double>(end.spots->size());
  }
  return most;
}

}  // namespace kernbench::topology
