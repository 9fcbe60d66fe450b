#pragma once
#include <cstdint>
#include <vector>

#include "ccl/contract/contract.h"
#include "tlm/ext/message.h"
#include "tlm/machine/machine_map.h"

namespace kernbench::ccl {

/// One copy of some elements: on a PE of the SIP, `offset` bytes from the tensor's base.
struct Place {
  std::uint16_t cube = 0, pe = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const Place& a, const Place& b) {
    return a.cube == b.cube && a.pe == b.pe && a.offset == b.offset;
  }
};

/// Elements of a region that are contiguous wherever they lie. Places of equal offset are copies behind one virtual
/// address, of which a PE sees its own. Different offsets: on the way in, terms that are all contributions; on the way
/// out, all of them are written.
struct Run {
  std::int64_t begin = 0, count = 0;  ///< elements of the region
  std::vector<Place> places;
  std::int64_t end() const { return begin + count; }
};

/// Where the elements of one region lie: runs in order, without gaps.
using RegionMap = std::vector<Run>;

const Run& run_at(const RegionMap& map, std::int64_t element);
/// Elements [begin, begin + count) as a map of their own; `item`: bytes of an element.
RegionMap part_of(const RegionMap& map, std::int64_t begin, std::int64_t count, std::size_t item);

/// What a node of the schedule is.
enum class NodeLevel : std::uint8_t { rank, cube, pe };

/// A collective call's data on one rank, alike on all ranks: its nodes and the regions of in and out.
///
/// Reductions and broadcasts of scope cube and pe run between cubes: the PEs of a cube are then terms of its node. All
/// else runs between ranks, since inside a SIP every PE reaches every address. Only where contributors of one SIP hide
/// their data from each other behind one address (copies that are contributions of their own) each is a node. Regions
/// are those of schedule.h.
struct CallMaps {
  NodeLevel level = NodeLevel::rank;
  int node_w = 1, node_h = 1;  ///< nodes of a rank: cubes; with level pe the PEs of a cube stand in a row
  int pes = 1;                 ///< level pe: in a cube
  int contributions = 0;       ///< of the group: p
  std::int64_t elements = 0;   ///< of a region
  /// In place, all_gather and gather read, reduce_scatter and scatter write, the own region of the larger tensor.
  bool own_region_in = false, own_region_out = false;
  /// What the schedule is made for: a gather to many nodes of a rank is an all_gather that the others do not store.
  CollectiveOp op = CollectiveOp::all_reduce;
  std::vector<std::vector<RegionMap>> in, out;  ///< by node within the rank, region

  int nodes_per_rank() const { return node_w * node_h; }
  /// Cube of a node within its rank; 0 for the whole rank.
  int cube_of(int node) const { return level == NodeLevel::rank ? 0 : node / pes; }
};

/// Throws Error where shapes, counts or placement do not suit the operation; says which.
CallMaps make_call_maps(const MachineMap& map, CollectiveOp op, Scope scope, int ranks,
                        const LaunchMessage::TensorArg& in, const LaunchMessage::TensorArg& out, std::size_t item);

/// Two tensors of one data type lie alike in their SIPs, but for their bases. `anywhere`: whatever the PEs.
bool same_geometry(const LaunchMessage::TensorArg& a, const LaunchMessage::TensorArg& b, bool anywhere = false);

}  // namespace kernbench::ccl
