#pragma once
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tlm/base/time.h"
#include "topology/machine/energy.h"

namespace kernbench {

/// What a machine has done since its start, or between two instants.
struct MachineWork {
  static constexpr std::array<const char*, 5> kParts{"gemm", "hbm", "noc", "ucie", "links"};
  using Shares = std::array<double, kParts.size()>;

  Ps time = 0;
  double pj = 0;                         ///< in all
  double standing_pj = 0;                ///< of these: static power and refreshes, which go by time alone
  std::map<std::string, double> counts;  ///< by key of EnergyOperation
  MachineWork() = default;
  MachineWork(Ps now, const std::vector<topology::EnergyRow>& rows);
  MachineWork& add(const MachineWork& other, int sign = 1);
  /// Of each of kParts the share of the most that it can do (topology::most_per_second); 0 of what there is none of.
  Shares shares(const std::map<std::string, double>& most) const;
  /// The same by name, without what there is none of.
  nlohmann::ordered_json utilisation(const std::map<std::string, double>& most) const;
};

/// "GEMM arrays 3.1 %, HBM 24.0 %, ..."
std::string utilisation_text(const nlohmann::ordered_json& shares);

}  // namespace kernbench
