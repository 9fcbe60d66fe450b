#include "sc_main/run/replay_energy.h"

#include <algorithm>

#include "topology/plan/plan.h"

namespace kernbench {

struct ReplayEnergy::Counted final : ReplayRecord::Done {
  bool links = false;
  Counts counts;
};

ReplayEnergy::Counts ReplayEnergy::read(int sip, bool links) {
  Counts counts(2 * counters_.size());
  for (const topology::EnergyRow& row :
       topology::work_of_sip(machine_, plan_, static_cast<std::uint16_t>(sip), links)) {
    for (const topology::EnergyOperation& done : row.operations) {
      if (done.operation == topology::kRefreshOperation) continue;
      const auto [place, fresh] = places_.emplace(std::pair(row.component, done.operation), counters_.size());
      if (fresh) {
        counters_.push_back({row.component, done.operation, done.unit});
        counts.resize(2 * counters_.size());
      }
      counts[2 * place->second] = done.count;
      counts[2 * place->second + 1] = done.dynamic_pj;
    }
  }
  return counts;
}

std::unique_ptr<ReplayRecord::Done> ReplayEnergy::begin(const Batch& batch) {
  auto done = std::make_unique<Counted>();
  done->links = batch.links;
  done->counts = read(batch.sip, batch.links);
  return done;
}

void ReplayEnergy::end(int sip, Done& done) {
  auto& counted = static_cast<Counted&>(done);
  Counts now = read(sip, counted.links), &counts = counted.counts;
  for (std::size_t i = 0; i < counts.size(); ++i) now[i] -= counts[i];
  counts = std::move(now);
}

void ReplayEnergy::simulated(Work work, const Done& done, Ps, bool afresh) {
  Kind& kind = kinds_[{work.kind, work.part}];
  if (afresh) kind.sums.clear();
  kind.occurrences = afresh ? 1 : kind.occurrences + 1;
  const Counts& counts = static_cast<const Counted&>(done).counts;
  kind.sums.resize(std::max(kind.sums.size(), counts.size()));
  for (std::size_t i = 0; i < counts.size(); ++i) kind.sums[i] += counts[i];
}

void ReplayEnergy::repeated(Work work, const Batch&, Ps, Ps) { ++kinds_[{work.kind, work.part}].repeats; }

void ReplayEnergy::add(std::vector<topology::EnergyRow>& rows) const {
  Counts all(2 * counters_.size());
  for (const auto& [work, kind] : kinds_) {
    if (kind.repeats == 0 || kind.occurrences == 0) continue;
    const double times = static_cast<double>(kind.repeats) / static_cast<double>(kind.occurrences);
    for (std::size_t i = 0; i < kind.sums.size(); ++i) all[i] += kind.sums[i] * times;
  }
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const Counter& counter = counters_[i];
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const topology::EnergyRow& one) { return one.component == counter.component; });
    const auto done = std::find_if(
        row->operations.begin(), row->operations.end(),
        [&](const topology::EnergyOperation& operation) { return operation.operation == counter.operation; });
    done->count += all[2 * i];
    done->dynamic_pj += all[2 * i + 1];
    row->dynamic_pj += all[2 * i + 1];
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
