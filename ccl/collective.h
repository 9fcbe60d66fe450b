#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ccl/contract.h"
#include "ccl/registry.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// Size and memory of every IPCQ ring.
struct QueueShape {
  std::uint16_t slots = 4;
  std::uint32_t slot_bytes = 4096;
  MemoryKind memory = MemoryKind::tcm;  ///< tcm, sram or hbm
  std::uint64_t ring_bytes() const { return std::uint64_t{slots} * slot_bytes; }
};

/// Memory that a PE's rings may fill, from its top end down: its TCM, its HBM slice, or its even share of the cube's
/// SRAM (PE 0 has the highest).
struct RingMemory {
  PhysicalAddress base;
  std::uint64_t bytes = 0;
  std::string name;  ///< for messages
};
RingMemory ring_memory(const MachineMap& map, MemoryKind kind, PeCoord pe);

/// Numbers the rings of every PE over all process groups: own receive ring r lies (r + 1) * ring_bytes below the end of
/// the PE's ring memory.
class RingNumbers {
 public:
  /// Takes `count` consecutive rings of a PE; returns the first. Throws Error if they do not fit into `memory`.
  std::uint16_t take(PeCoord pe, std::uint16_t count, const QueueShape& queue, const RingMemory& memory);
  std::uint16_t used(PeCoord pe) const;

 private:
  std::map<PeCoord, std::uint16_t> used_;
};

/// A process group as the backend sees it. Usually a rank is a SIP. Where ccl.yaml gives a world size, a rank is one
/// PE: algorithms see a ring of as many ranks, with one PE in one cube each.
struct Group {
  std::uint16_t id = 0;
  std::vector<std::uint16_t> sips;  ///< by group rank; all different where a rank is a SIP
  QueueShape queue;
  std::vector<PeCoord> pes{};  ///< by group rank where a rank is a PE, otherwise empty; all different

  bool ranks_are_pes() const { return !pes.empty(); }
};

/// The one table of ranks that are PEs: rank r is the r-th of the machine in (sip, cube, pe) order. Throws Error if
/// there are fewer.
std::vector<PeCoord> rank_pes(const MachineMap& map, int world_size);

/// One algorithm bound to machine, group and scope: neighbour tables at set-up, then one kernel per call and rank.
/// One instance per process group, shared by its ranks. Immutable; takes no simulated time.
class Collective {
 public:
  /// Throws Error: unsupported topology kind or scope, both signatures if kernel_args and kernel disagree, TCM too
  /// small.
  Collective(AlgorithmEntry entry, const MachineMap& map, Group group, Scope scope, RingNumbers& rings);
  ~Collective();
  Collective(Collective&&) noexcept;
  Collective& operator=(Collective&&) noexcept;

  const std::string& name() const;  ///< the algorithm's: names launches and the host trace
  Scope scope() const;
  const Group& group() const;

  /// Rows of the neighbour tables of all PEs of group rank `rank`'s SIP, in (cube, pe, ring) order. Every rank's rows
  /// must be installed before any rank launches. Does not allocate: same answer each time.
  std::vector<NeighbourEntry> neighbours(int rank) const;

  /// What one rank has to launch for one call.
  struct Launch {
    std::string kernel;  ///< LaunchMessage::kernel
    KernelBody body;
    std::vector<PeCoord> targets;  ///< empty if no PE holds an element: nothing to launch
    CollectiveCall call;           ///< completed: LaunchMessage::call
    int contributions = 0;         ///< p of busbw
  };
  /// `call`: op, reduce_op, dtype, in and out (VA bases on this SIP) as the user gave them; the rest is filled in here.
  /// `shards`: those of `call.in` on this rank's SIP, as in LaunchMessage::TensorArg (all of them, empty ones too).
  /// They must be alike on all ranks. Throws Error: operation, reduce op or dtype not served; unequal tiles with scope
  /// cube.
  Launch bind(int rank, CollectiveCall call, const std::vector<TensorShard>& shards) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace kernbench::ccl
