#pragma once
#include <set>
#include <vector>

#include "runtime/runtime.h"

/// What launches cannot beat: times that follow from the machine's parameters and from where tensors lie.
namespace kernbench::tp {

PeCoord owner_of(const ShardSpec& shard);
/// PEs whose memory holds a part of one of the tensors, copies included. Empty handles hold nothing.
std::set<PeCoord> holders(const std::vector<Tensor>& tensors);

Ps cycles_at(std::uint64_t cycles, std::uint64_t hertz);
Ps time_of(double bytes, Rate rate);
/// Of the array: operands enter skewed, results leave row by row (docs/pe.md).
Ps fill_and_drain(const PeEngines& engines);

/// Bytes of the largest packet.   spec: packets of at most 256 B
inline constexpr std::uint32_t kPacketBytes = 256;

/// One read of an open row of `owner`'s slice by `pe`, there and back: of a whole packet.
Ps access_of(const MachineMap& map, PeCoord pe, PeCoord owner);
/// The least read of its own slice: what it brings may be an element.
Ps least_access(const MachineMap& map, PeCoord pe);
/// An open row of `owner`'s slice read, and the least packet from there to `pe`: what no program can beat, asked for or
/// sent.
Ps one_way(const MachineMap& map, PeCoord owner, PeCoord pe);
/// The least packet from one PE to another.
Ps least_message(const MachineMap& map, PeCoord from, PeCoord to);
/// Of the least packet to the own slice and its answer: a store's end.
Ps way_there_and_back(const MachineMap& map, PeCoord pe);

/// What a launch moves of a tensor.
struct Moved {
  Tensor tensor;
  double share = 1;    ///< of its elements
  double written = 0;  ///< of its elements, those in `share` that are written
};
/// All of it, each byte once, at the rate of the slices that hold copies, but for what may still wait to be written
/// when the launch has ended: writes are posted. `bytes`, unless null, gets how much, that too.
Ps least_memory_time(const MachineMap& map, const std::vector<Moved>& moved, double* bytes = nullptr);

/// Of a launch whose arithmetic is little: what it moves, and a dispatch, an access if it reads, and the way of the
/// result.
LaunchBound stream_bound(const MachineMap& map, const char* kind, const std::vector<Moved>& moved, bool reads = true);

}  // namespace kernbench::tp
