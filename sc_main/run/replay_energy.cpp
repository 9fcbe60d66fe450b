#include "sc_main/run/replay_energy.h"

#include <algorithm>

#include "topology/plan/plan.h"

namespace kernbench {

namespace {
/// Rows are refreshed all the time, with work or without: the machine counts that itself.
constexpr const char* kRefresh = "cube.hbm.bank_refresh_energy";
}  // namespace

void ReplayEnergy::read(int sip, std::vector<double>& into) {
  const std::size_t first = into.size();
  into.resize(first + 2 * counters_.size());
  for (const topology::EnergyRow& row : topology::work_of_sip(machine_, plan_, static_cast<std::uint16_t>(sip))) {
    for (const topology::EnergyOperation& done : row.operations) {
      if (done.operation == kRefresh) continue;
      const auto [place, fresh] = places_.emplace(std::pair(row.component, done.operation), counters_.size());
      if (fresh) {
        counters_.push_back({row.component, done.operation, done.unit});
        into.resize(first + 2 * counters_.size());
      }
      into[first + 2 * place->second] = done.count;
      into[first + 2 * place->second + 1] = done.dynamic_pj;
    }
  }
}

void ReplayEnergy::add(const std::vector<double>& counts, std::vector<topology::EnergyRow>& rows) const {
  for (std::size_t i = 0; 2 * i < counts.size(); ++i) {
    const Counter& counter = counters_[i];
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const topology::EnergyRow& one) { return one.component == counter.component; });
    const auto done = std::find_if(
        row->operations.begin(), row->operations.end(),
        [&](const topology::EnergyOperation& operation) { return operation.operation == counter.operation; });
    done->count += counts[2 * i];
    done->dynamic_pj += counts[2 * i + 1];
    row->dynamic_pj += counts[2 * i + 1];
  }
}

std::vector<std::uint32_t> alike_sips(const topology::Plan& plan) {
  const topology::SystemSpec& spec = plan.spec;
  std::vector<std::uint32_t> alike(spec.sips, 0);
  const auto differs = [&](std::uint16_t sip) { alike[sip] = sip + 1u; };
  for (const auto& [cube, other] : spec.cubes) differs(cube.sip);
  for (const auto& [pe, other] : spec.pes) differs(pe.sip);
  for (const PeCoord& pe : spec.missing_pes) differs(pe.sip);
  for (const auto& [cube, neighbour] : spec.broken_cube_links) differs(cube.sip);
  return alike;
}

}  // namespace kernbench
