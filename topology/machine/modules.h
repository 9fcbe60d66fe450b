#pragma once
#include <map>
#include <memory>
#include <systemc>
#include <vector>

#include "models/bridge/initiator_bridge.h"
#include "models/bridge/target_bridge.h"
#include "models/hbm/hbm.h"
#include "models/io/io_cpu.h"
#include "models/io/pcie_ep.h"
#include "models/link/link_port.h"
#include "models/m_cpu/m_cpu.h"
#include "models/noc/network_interface.h"
#include "models/noc/router.h"
#include "models/pe/cpu/race_detector.h"
#include "models/pe/cpu/stack_pool.h"
#include "models/pe/pe.h"
#include "models/sram/sram.h"
#include "tlm/ext/page_table.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/dispatcher.h"
#include "topology/machine/foreign.h"
#include "topology/plan/plan.h"

namespace kernbench::topology {

/// What every part of the machine is built from.
struct BuildContext {
  const Plan& plan;
  const RunOptions& options;
  Observer* observer;
  Dispatcher& dispatcher;
  PayloadPool& pool;
  StackPool& stacks;
  const ForeignParts& foreign;

  /// The fabric switch has the queue behind those of the SIPs.
  EventQueue& queue_of(std::uint32_t network) const { return dispatcher.queue(plan.networks[network].sip); }
  /// An endpoint and its network interface, in either direction.
  void bind(tlm::tlm_initiator_socket<>& from, tlm::tlm_target_socket<>& to) const {
    foreign.bind ? foreign.bind(from, to) : from.bind(to);
  }
  /// Two ends of the packet protocol.
  void bind(PacketInitiatorSocket& from, PacketTargetSocket& to) const {
    foreign.bind_packets ? foreign.bind_packets(from, to) : from.bind(to);
  }
};

/// Routers, network interfaces and link ports of one network, as children of the module in whose constructor it is
/// made; bound among each other.
class NetworkModules {
 public:
  NetworkModules(const BuildContext& context, std::uint32_t network);

  Router& router(std::uint16_t index) { return *routers_[index]; }
  NetworkInterface& interface(NodeId node);
  /// By slot of Network::ends; null where nothing is.
  LinkPort* link_port(std::size_t slot) { return link_ports_[slot].get(); }

 private:
  void make_interface(const BuildContext& context, std::uint32_t network, NodeId node);
  void make_link_port(const BuildContext& context, std::uint32_t end, std::size_t slot);
  void bind(const BuildContext& context, std::uint32_t network);

  RouterNetwork network_;
  std::vector<std::unique_ptr<Router>> routers_;
  std::vector<std::unique_ptr<NetworkInterface>> interfaces_;
  std::vector<NodeId> nodes_;  // of the interfaces
  std::vector<std::unique_ptr<LinkPort>> link_ports_;
};

/// sip0.cube3: its mesh and what is attached to it.
class CubeModule : public sc_core::sc_module {
 public:
  CubeModule(const sc_core::sc_module_name& name, const BuildContext& context, CubeCoord self, PageTable& pages,
             RaceDetector& races);

  NetworkModules network;
  MCpu m_cpu;
  Sram sram;
  Hbm hbm;
  std::vector<std::unique_ptr<Pe>> pes;                           ///< by PE; null: missing, or replaced
  std::map<NodeId, std::unique_ptr<InitiatorBridge>> initiators;  ///< somebody else's, in a PE's place or beside
  std::map<NodeId, std::unique_ptr<TargetBridge>> foreign_memories;

 private:
  void bind_memory(const BuildContext& context, NodeId node, tlm::tlm_target_socket<>& memory);
  std::vector<std::unique_ptr<tlm::tlm_initiator_socket<>>> unused_;  // at the ports of replaced memories
};

/// sip0.io0: crossbar, PCIE_EP, IO_CPU, UCIe ports to the row-0 cubes, link ports.
class IoModule : public sc_core::sc_module {
 public:
  IoModule(const sc_core::sc_module_name& name, const BuildContext& context, std::uint16_t sip, PageTable& pages);

  NetworkModules network;
  PcieEp pcie_ep;
  IoCpu io_cpu;
};

/// sip0: cubes and IO chiplet, joined by UCIe.
class SipModule : public sc_core::sc_module {
 public:
  SipModule(const sc_core::sc_module_name& name, const BuildContext& context, std::uint16_t sip);

  PageTable pages;
  RaceDetector races;  ///< asked with `--debug` only
  std::vector<std::unique_ptr<CubeModule>> cubes;
  std::unique_ptr<IoModule> io;
};

/// fabric: the switch between SIPs, with a queue of its own.
class FabricModule : public sc_core::sc_module {
 public:
  FabricModule(const sc_core::sc_module_name& name, const BuildContext& context);

  NetworkModules network;
};

/// Binds the wires of two link ports, both ways.
void join(const BuildContext& context, LinkPort& a, LinkPort& b);

}  // namespace kernbench::topology
