#include "sc_main/validate/validate.h"

namespace kernbench::validate {

// A line per domain here, and one below; each is defined in a file of its own.
std::vector<Group> noc_groups(const Request& request);
std::vector<Group> hbm_groups(const Request& request);
std::vector<Group> gemm_groups(const Request& request);
std::vector<Group> links_groups(const Request& request);
std::vector<Group> collectives_groups(const Request& request);

const std::vector<Domain>& domains() {
  static const std::vector<Domain> list = {
      {"noc", "bare meshes under synthetic traffic against a flit-level simulator (BookSim2)", "noc", Subsystem::noc,
       &noc_groups},
      {"hbm", "HBM channels under synthetic streams against cycle-level DRAM simulators (Ramulator 2.1, DRAMSys)",
       "hbm", Subsystem::hbm, &hbm_groups},
      {"links", "UCIe connections, inter-SIP links and PCIe against closed forms", "", Subsystem::link, &links_groups},
      {"gemm", "one product on one PE against closed forms of the array", "", Subsystem::pe, &gemm_groups},
      {"collectives", "collectives over SIPs against an analytical simulator and a synthesiser (ASTRA-sim, TACOS)",
       "collectives", Subsystem::link, &collectives_groups},
  };
  return list;
}

}  // namespace kernbench::validate
