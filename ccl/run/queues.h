#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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
inline QueueShape queue_shape(const MachineMap& map) { return {map.ipcq_slots, map.ipcq_slot_bytes, map.ipcq_buffer}; }

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
  /// Throws Error if `count` more rings of a PE do not fit into `memory`.
  void check(PeCoord pe, std::uint16_t count, const QueueShape& queue, const RingMemory& memory) const;
  /// Takes `count` consecutive rings of a PE; returns the first. Throws likewise.
  std::uint16_t take(PeCoord pe, std::uint16_t count, const QueueShape& queue, const RingMemory& memory);
  std::uint16_t used(PeCoord pe) const;
  std::uint16_t most_used() const { return most_; }  ///< of all PEs

 private:
  std::map<PeCoord, std::uint16_t> used_;
  std::uint16_t most_ = 0;
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

}  // namespace kernbench::ccl
