#pragma once
#include <functional>
#include <set>
#include <tlm>

#include "tlm/ext/packet_tap.h"
#include "tlm/machine/ids.h"

namespace kernbench::topology {

/// Parts of a machine that somebody else wrote: TLM-2.0 modules in the place of PEs and memories (docs/tlm.md).
struct ForeignParts {
  std::set<PeCoord> initiators;  ///< PEs replaced by a bridge: Machine::foreign_initiator()
  std::set<NodeId> memories;     ///< SRAMs and HBM ports replaced by a bridge: Machine::foreign_memory()
  unsigned at_once = 1;          ///< requests that such a memory is called with before it has answered one; up to 16
  /// How an endpoint and its network interface are bound; empty: directly. A test puts a checker between.
  std::function<void(tlm::tlm_initiator_socket<>& from, tlm::tlm_target_socket<>& to)> bind;
  /// How routers, network interfaces and link ports are bound to each other: every packet socket of the machine. A test
  /// puts a PacketTap between.
  PacketBinder bind_packets;
};

}  // namespace kernbench::topology
