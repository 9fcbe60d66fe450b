#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ccl/contract/schedule.h"
#include "ccl/data/region_map.h"

namespace kernbench::ccl {

/// A PE as a node of the schedule sees it: (cube, PE) of a rank, (0, PE) of a cube, (0, 0) of a PE.
using LaneId = std::pair<int, int>;

LaneId lane_of(const CallMaps& maps, int cube, int pe);

/// What a lane works on: of each region some intervals, which it sees as one row of elements.
struct Lane {
  struct Interval {
    std::int64_t begin = 0, count = 0;  ///< elements of the region
    std::int64_t at = 0;                ///< place in the lane's row
  };
  /// Elements [begin, end) of the row have addresses without a gap in `in` (of little data, on one PE) and belong to
  /// one interval, whatever the region. They are cut into `rounds` rounds, the first of which is `first`.
  struct Segment {
    std::int64_t begin = 0, end = 0;
    std::int64_t first = 0, rounds = 1;
  };
  std::map<std::int32_t, std::vector<Interval>> regions;  ///< only those of which it has a part
  std::vector<Interval> bundle;  ///< Schedule::bundles: of all regions of `in`, one after the other; segments cut it
  /// Of little data, what the elements of a row from `at` on take: their load, and the rest, a message and a store.
  struct Way {
    std::int32_t region = 0;
    std::int64_t at = 0;
    Ps load = 0, rest = 0;
  };
  std::vector<Segment> segments;  ///< in the order in which they are worked on
  std::vector<Way> ways;
  std::vector<std::uint32_t> segment_of;  ///< by round
  std::int64_t rounds() const { return static_cast<std::int64_t>(segment_of.size()); }
};

/// By which of its two regions a block is dealt to lanes.
enum class LaneKey : std::uint8_t {
  in,     ///< its region of `in`
  out,    ///< its region of `out`
  lesser  ///< the one of the two that has the lower number: an all_to_all in place swaps two regions, by the same lanes
};

/// Deals the elements of all regions to the PEs near which they lie.
///
/// PEs are those that hold the elements in `out` for all_reduce, broadcast, reduce_scatter, scatter and send_recv, and
/// wherever `out` has copies, since what spreads copies (spread.h) starts from the PEs that hold them; otherwise those
/// that hold them in `in`. Elements that several PEs hold are split between them: those of the middle cube, if `out`
/// has copies in several. Every rank and every cube gets the same lanes.
///
/// Where different regions lie on different PEs, few lanes would serve each link: large regions are then dealt evenly
/// to all lanes, which load and store at other PEs.
///
/// Little data (at most 256 B for a PE, of all_gather, reduce_scatter, scatter, or an all_to_all of two ranks) without
/// copies go to the PEs that hold them in `in`; between ranks, what has a long way from there goes to those that hold
/// it in `out`, where that is shorter. An all_to_all's region, which one PE of a cube holds, is shared by two PEs of
/// that cube if those that get it store it in many places. Reasons and figures: docs/collective_algorithms.md, Lanes.
class Lanes {
 public:
  /// `item`: bytes of an element. Throws Error where the cubes' tiles lie differently.
  Lanes(const MachineMap& map, const CallMaps& maps, CollectiveOp op, bool in_place, std::size_t item);

  /// For a schedule of bundles: makes Lane::bundle; without copies, of what lies on the lane's PE. Before cut(). Throws
  /// Error like the constructor.
  void bundle(const MachineMap& map, const CallMaps& maps);
  /// Cuts each lane's row for a schedule: messages of at most `message_bytes`, about `rounds` rounds over a row, one at
  /// least for each segment. May deal the elements evenly to all lanes first. To be called once. Throws Error where
  /// blocks without a region would need tiles that lie alike.
  void cut(const CallMaps& maps, const Schedule& schedule, std::int64_t message_bytes, std::int64_t rounds);

  const std::map<LaneId, Lane>& all() const { return lanes_; }
  /// Every lane has a part of all regions, wherever they lie, and takes turns at the PEs that hold them: several
  /// regions without copies, of each at least 1 KiB for a lane.
  bool in_turns() const { return in_turns_; }
  /// The region of in or out whose deal counts for a block.
  std::int32_t key_of(const Block& block) const;
  /// Indices into CallMaps::in and out: where a block starts from, and where it ends. In place, the smaller of the two
  /// tensors is one region of the larger, another one on each rank, and has the larger one's map: a block's region
  /// there is that of the rank that contributes, or holds, it. If no single rank does, the block's region of the larger
  /// tensor stands for it.
  std::int32_t in_region(const Block& block) const {
    if (!own_in_) return block.in_region;
    return block.contributor >= 0 ? block.contributor : block.out_region;
  }
  std::int32_t out_region(const Block& block) const {
    if (!own_out_) return block.out_region;
    return block.holder >= 0 ? block.holder : block.in_region;
  }

 private:
  void deal(const MachineMap& map, const CallMaps& maps);
  bool can_deal_evenly(const CallMaps& maps) const;
  void deal_evenly(const CallMaps& maps);
  struct Piece {
    std::size_t region = 0;
    std::int64_t begin = 0, count = 0;
    Place in, out;
    Ps by_in = 0, by_out = 0;  ///< time of its way if the PE there sends it
    Ps load_by_out = 0;        ///< of that, the load
  };
  static std::size_t deal_pieces(const CallMaps& maps, const std::vector<Piece>& pieces, Ps limit,
                                 std::map<LaneId, Lane>& lanes);
  std::vector<Piece> pieces_of(const MachineMap& map, const CallMaps& maps, std::size_t node) const;
  std::map<LaneId, Lane> deal_to_holders(const MachineMap& map, const CallMaps& maps, std::size_t node) const;
  std::map<LaneId, Lane> deal_near(const MachineMap& map, const CallMaps& maps, std::size_t node) const;
  bool dealt_alike() const;  // every lane has the same part of all regions
  void find_segments(const CallMaps& maps, const Schedule& schedule);
  void find_segments_of_bundles(const CallMaps& maps);
  static void order_segments(Lane& lane);
  void count_rounds(const Schedule& schedule, std::int64_t message_elements, std::int64_t rounds);

  bool own_in_, own_out_;
  bool in_turns_ = false;
  bool bundled_ = false;
  bool near_ = false;    ///< little data: dealt to the PEs nearest to its way
  bool by_two_ = false;  ///< little data of many contributors: the PE that holds it shares it with another
  std::size_t item_, regions_ = 0;
  LaneKey key_ = LaneKey::in;
  std::map<LaneId, Lane> lanes_;
};

/// Copies of the same elements in more than one place behind one address.
bool has_copies(const Run& run);
/// Part `i` of `n` of `count` elements, on borders of 64 B where they are that long: [first, second).
std::pair<std::int64_t, std::int64_t> even_part(std::int64_t count, std::int64_t i, std::int64_t n, std::size_t item);

}  // namespace kernbench::ccl
