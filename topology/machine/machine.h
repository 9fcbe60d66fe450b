#pragma once
#include <memory>
#include <systemc>
#include <tlm>
#include <vector>

#include "models/hbm/hbm.h"
#include "models/io/io_cpu.h"
#include "models/io/pcie_ep.h"
#include "models/link/link_port.h"
#include "models/m_cpu/m_cpu.h"
#include "models/noc/network_interface.h"
#include "models/noc/router.h"
#include "models/pe/pe.h"
#include "models/sram/sram.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/wait_for.h"
#include "tlm/sim/dispatcher.h"
#include "topology/machine/foreign.h"

namespace kernbench {
struct RaceKind;  // models/pe/cpu/race_detector.h
}

namespace kernbench::topology {

struct Plan;  // topology/plan/plan.h: results of stages 2 to 5

/// What is simulated when `asked` is asked for. The fast grade lets the flits of a packet follow each other without
/// gaps, which holds where buffers cover the way of a credit. Where those of one network do not, all networks go flit
/// by flit, unless they were asked for by name.
Fidelity fidelity_that_holds(const Plan& plan, const Fidelity& asked);

/// Bytes that travel as one packet at most: kMaxPacketBytes, or a train's where `fidelity` has trains.
std::uint32_t longest_packet(const Plan& plan, const Fidelity& fidelity);

/// Stage 6: the machine as bound SystemC modules. Children's names nest as the YAML does (sip0.cube2.pe5, no root
/// prefix). At most one per process.
class Machine {
 public:
  /// `observer` may be null. `plan` must outlive the machine.
  /// `foreign`: parts that the caller brings along and binds before the simulation starts.
  Machine(const Plan& plan, const RunOptions& options, Observer* observer, ForeignParts foreign = {});
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const MachineMap& map() const;
  Dispatcher& dispatcher();
  PayloadPool& pool();
  /// Host side of a SIP's PCIe endpoint; bind an initiator to it before the simulation starts.
  tlm::tlm_target_socket<>& host_socket(std::uint16_t sip);
  /// For the i-th of SystemSpec::initiators. REQUIRES: there is one.
  tlm::tlm_target_socket<>& initiator(std::size_t i);
  /// For an initiator in the place of a PE, and for a target in the place of a memory. REQUIRES: so named in `foreign`.
  tlm::tlm_target_socket<>& foreign_initiator(PeCoord place);
  tlm::tlm_initiator_socket<>& foreign_memory(NodeId place);
  /// Why things stand still; PEs in (sip, cube, pe) order.
  void explain(std::vector<Blocked>& blocked) const;
  /// To be called at the end of an observed run: models that evaluate lazily publish what they still hold.
  void flush();

  // Parts, for statistics and tests. Networks and link ends are numbered as in the plan.
  Router& router(std::uint32_t network, std::uint16_t index);
  LinkPort& link_port(std::uint32_t end);
  NetworkInterface& network_interface(NodeId node);
  Hbm& hbm(CubeCoord cube);
  Sram& sram(CubeCoord cube);
  PcieEp& pcie_ep(std::uint16_t sip);
  IoCpu& io_cpu(std::uint16_t sip);
  MCpu& m_cpu(CubeCoord cube);
  Pe& pe(PeCoord pe);
  PageTable& page_table(std::uint16_t sip);  ///< to map memory without messages
  /// What `--debug` has found, in the order of the first of each kind.
  const std::vector<RaceKind>& races() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench::topology
