#pragma once
#include <functional>
#include <set>
#include <tlm>

#include "tlm/machine/ids.h"

namespace kernbench::topology {

/// Parts of a machine that somebody else wrote: TLM-2.0 modules in the place of PEs and memories (docs/tlm.md).
struct ForeignParts {
  std::set<PeCoord> initiators;  ///< PEs replaced by a bridge: Machine::foreign_initiator()
  std::set<NodeId> memories;     ///< SRAMs and HBM ports replaced by a bridge: Machine::foreign_memory()
  /// How an endpoint and its network interface are bound; empty: directly. A test puts a checker between.
  std::function<void(tlm::tlm_initiator_socket<>& from, tlm::tlm_target_socket<>& to)> bind;
};

}  // namespace kernbench::topology
