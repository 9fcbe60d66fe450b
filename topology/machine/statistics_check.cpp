#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "topology/machine/statistics.h"

namespace kernbench::topology {

void compare(RunStatistics& statistics, const std::vector<EnergyRow>& energy) {
  struct Pair {
    const char *kind, *component, *operation;  // an empty operation: all of them
    double per_byte;
  };
  static constexpr Pair kPairs[] = {{"router_port", "noc", "", 8},
                                    {"sram", "sram", "", 1},
                                    {"hbm_channel", "hbm", "cube.hbm.energy_per_bit", 8},
                                    {"tcm", "pe", "pe.energy.tcm_byte", 1},
                                    {"engine", "pe", "pe.energy.dma_byte", 1}};
  constexpr double kRelative = 1e-9;  // of sums of means
  RunStatistics::Check check{"bytes are those that the energy was counted of", 0};
  for (const Pair& pair : kPairs) {
    double counted = 0;
    for (const EnergyRow& row : energy) {
      for (const EnergyOperation& done : row.operations) {
        if (row.component == pair.component && (*pair.operation == '\0' || done.operation == pair.operation))
          counted += done.count;
      }
    }
    for (const KindUse& kind : statistics.totals) {
      if (std::string_view(kind.kind) != pair.kind) continue;
      ++check.compared;
      const double off = std::abs(static_cast<double>(kind.bytes) * pair.per_byte - counted);
      const double rounded = 0.5 * static_cast<double>(kind.used) * pair.per_byte + kRelative * counted;
      if (off > (statistics.repeats ? rounded : 0)) {
        statistics.violations.push_back(
            fmt::format("statistics: {} B of {}, and energy of {}", kind.bytes, kind.kind, counted / pair.per_byte));
      }
    }
  }
  statistics.checks.push_back(check);
}

}  // namespace kernbench::topology
