#include "ccl/run/queues.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/contract/error.h"
#include "tlm/machine/names.h"

namespace kernbench::ccl {

RingMemory ring_memory(const MachineMap& map, MemoryKind kind, PeCoord pe) {
  constexpr std::uint64_t kGrain = 256;  // a packet never crosses a multiple of it
  switch (kind) {
    case MemoryKind::tcm:
      return {PhysicalAddress::tcm(pe, 0), map.tcm.bytes, "TCM"};
    case MemoryKind::hbm:
      return {PhysicalAddress::hbm(pe, 0), map.hbm_slice.bytes / kGrain * kGrain, "its HBM slice"};
    case MemoryKind::sram: {
      const std::uint64_t share = map.sram.bytes / map.pes_per_cube / kGrain * kGrain;
      const std::uint64_t top = map.sram.bytes / kGrain * kGrain - pe.pe * share;
      return {PhysicalAddress::sram({pe.sip, pe.cube}, top - share), share, "its share of the cube's SRAM"};
    }
    default:
      throw Error(fmt::format("IPCQ rings cannot lie in {} memory; use tcm, sram or hbm", to_string(kind)));
  }
}

void RingNumbers::check(PeCoord pe, std::uint16_t count, const QueueShape& queue, const RingMemory& memory) const {
  const std::uint64_t bytes = (std::uint64_t{used(pe)} + count) * queue.ring_bytes();
  if (bytes <= memory.bytes) return;
  throw Error(
      fmt::format("{}: {} IPCQ rings of {} x {} B need {} B of {}, which has {} B; use fewer slots or smaller ones",
                  names::pe(pe), used(pe) + count, queue.slots, queue.slot_bytes, bytes, memory.name, memory.bytes));
}

std::uint16_t RingNumbers::take(PeCoord pe, std::uint16_t count, const QueueShape& queue, const RingMemory& memory) {
  check(pe, count, queue, memory);
  std::uint16_t& used = used_[pe];
  const std::uint16_t first = used;
  used = static_cast<std::uint16_t>(used + count);
  most_ = std::max(most_, used);
  return first;
}

std::uint16_t RingNumbers::used(PeCoord pe) const {
  const auto found = used_.find(pe);
  return found == used_.end() ? std::uint16_t{0} : found->second;
}

std::vector<PeCoord> rank_pes(const MachineMap& map, int world_size) {
  std::vector<PeCoord> all;
  all.reserve(std::size_t{map.sips} * map.pes_per_sip());
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    const std::vector<PeCoord> here = map.pes(sip);
    all.insert(all.end(), here.begin(), here.end());
  }
  if (world_size < 1 || static_cast<std::size_t>(world_size) > all.size()) {
    throw Error(fmt::format("world_size is {}; give 1 to {}, the PEs of the machine", world_size, all.size()));
  }
  all.resize(static_cast<std::size_t>(world_size));
  return all;
}

}  // namespace kernbench::ccl
