#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench::topology {

class Machine;
struct Plan;

/// What components of one kind did of one sort of work, and what it took.
struct EnergyOperation {
  std::string operation;  ///< key of the configuration that gives its energy, such as "pe.energy.mac_16bit"
  std::string unit;       ///< of `count`: "MAC", "bit", ...
  double count = 0;
  double dynamic_pj = 0;  ///< divided by `count`: of one; of their mean where overrides differ
};

/// Energy of all components of one kind.
struct EnergyRow {
  std::string component;  ///< "pe", "noc", "ucie", "inter_sip", "pcie", "hbm" or "sram"
  double dynamic_pj = 0;  ///< of the work done: counts of the models times the energies of the configuration
  double static_pj = 0;   ///< static power times the simulated time
  std::vector<EnergyOperation> operations;  ///< of which `dynamic_pj` is the sum; those that occurred
};

/// The operation that goes on all the time, with work or without.
inline constexpr const char* kRefreshOperation = "cube.hbm.bank_refresh_energy";

/// Since the start of the run, `elapsed` ago. Not counted: M_CPU, IO_CPU, PE_CPU's instructions.
std::vector<EnergyRow> energy(Machine& machine, const Plan& plan, Ps elapsed);
/// The same of one SIP's components and of what the fabric switch sends to it, without static energy.
/// `links`: of what leaves over links between SIPs; else of all the rest.
std::vector<EnergyRow> work_of_sip(Machine& machine, const Plan& plan, std::uint16_t sip, bool links);
double total_pj(const std::vector<EnergyRow>& rows);

}  // namespace kernbench::topology
