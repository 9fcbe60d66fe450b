#pragma once
#include <string>
#include <vector>

#include "tlm/sim/time.h"

namespace kernbench::topology {

class Machine;
struct Plan;

/// Energy of all components of one kind.
struct EnergyRow {
  std::string component;  ///< "pe", "noc", "ucie", "inter_sip", "pcie", "hbm" or "sram"
  double dynamic_pj = 0;  ///< of the work done: counts of the models times the energies of the configuration
  double static_pj = 0;   ///< static power times the simulated time
};

/// Since the start of the run, `elapsed` ago. Not counted: M_CPU, IO_CPU, PE_CPU's instructions.
std::vector<EnergyRow> energy(Machine& machine, const Plan& plan, Ps elapsed);
double total_pj(const std::vector<EnergyRow>& rows);
/// Of the work done so far, over all components: the difference of two calls is that of what lies between them.
double dynamic_pj(Machine& machine, const Plan& plan);

}  // namespace kernbench::topology
