#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tlm/kernel/call.h"

/// Collective operations as static lists: who sends which block to whom, in which order. Pure data; algorithms make
/// schedules, check.h proves them, an executor kernel runs one node's list on every lane.
///
/// A node is whoever has a list: a rank, a cube or a PE, by the scope. A lane is one of the PEs that share a node's
/// work, each a part of every block (ccl/data/lanes.h). A tick is the time of one unit on the fastest link.
namespace kernbench::ccl {

inline constexpr std::int32_t kEveryNode = -1;  ///< for Block::contributor and holder
inline constexpr std::int32_t kNobody = -2;     ///< the same
inline constexpr std::int32_t kNoRegion = -1;   ///< for Block::out_region of a block that nobody stores

/// A range of the data that steps send, add and store as a whole, the same on all nodes.
///
/// `in` and `out` of a call consist of regions of equal size (regions_in, regions_out below), each of which is cut into
/// `Schedule::units` equal units; a block is units [begin, end) of a region. On a node a block has a *value*. At the
/// start that is the block's part of `in` on contributors, and nothing on the others. On holders the value that the
/// block has in the end is stored to its part of `out`; for other nodes it is passing through.
struct Block {
  std::int32_t contributor = kEveryNode;  ///< whose `in` it starts from: a node, kEveryNode, kNobody
  std::int32_t holder = kEveryNode;       ///< who stores it: a node, kEveryNode, kNobody
  /// Of `in` on contributors, of `out` on holders. Nodes that a block only passes use the same numbers: by them lanes
  /// know which part of the block is theirs, alike on all nodes.
  std::int32_t in_region = 0, out_region = 0;
  std::int32_t begin = 0, end = 1;  ///< units
  std::int32_t regions = 1;         ///< of `in`, from in_region on; more than one: Schedule::bundles
};

/// What a node does in a step.
enum class StepKind : std::uint8_t {
  send,            ///< the block's value goes to node `peer`
  receive_copy,    ///< the next message of node `peer` becomes the block's value
  receive_reduce,  ///< value = value (+) the next message of node `peer`. REQUIRES: the block has a value
  copy,            ///< local: value = value of block `peer` of this node, or the part of it that this block is
  reduce           ///< local: value = value (+) value of block `peer` of this node
};
const char* to_string(StepKind kind);

/// One entry of a node's list.
struct Step {
  std::int64_t time = 0;  ///< ticks of the assumed time; sends at their start, receives at their arrival
  std::int32_t peer = 0;  ///< node; for copy and reduce: block
  std::int32_t block = 0;
  StepKind kind = StepKind::send;
  bool completes = false;  ///< this reduction was the last: the value now has all contributions (`avg` divides here)
};

/// Two nodes with queues between them, one each way.
struct ScheduleLink {
  std::int32_t a = 0, b = 0;  ///< nodes, a < b
  std::int32_t width = 1;     ///< time of a unit chunk here over its time on the fastest link: 1, or more if slower
  std::int32_t lambda = 0;    ///< assumed latency, ticks
  std::int32_t slots = 1;     ///< queue slots that the schedule needs in each direction: no fewer can be granted
};

/// Lists for all nodes of one operation.
///
/// Order of a node's list: by time, at equal times receives, then local steps, then sends. Messages from one node to
/// another are received in the order in which they were sent. A message has the lane's part of its block in the round;
/// an empty one is not sent (both ends know). Executed in this order with at least `slots` slots per queue, no list
/// deadlocks, whatever the real times are.
///
/// Rounds. Large data is cut into M rounds: each region into M parts, of which round m handles the m-th just as the
/// list says, blocks being units of that part. M may differ from lane to lane.
/// - period = 0, a plain list: the whole list for round 0, then for round 1, ...
/// - period > 0: the list is sorted by (time mod period, kind as above). For R = 0 .. M - 1 + last_round: for each
///   entry, m = R - entry.time / period; if 0 <= m < M, do it for round m.
///
/// Bundles. Where `bundles` is set, blocks may span several regions of `in`, which stand one after the other: a message
/// has what its sender has of all of them. units = 1, and rounds cut the row of all regions, not each region: a round
/// has the whole of some blocks and nothing of others.
struct Schedule {
  std::string algorithm;  ///< who made it, for reports
  CollectiveOp op = CollectiveOp::all_reduce;
  std::int32_t nodes = 1;
  std::int32_t root = 0;   ///< node; send_recv: the sender, or -1: every node sends
  std::int32_t peer = 0;   ///< send_recv: the receiving node; with root -1: node k sends to (k + peer) mod nodes
  std::int32_t units = 1;  ///< of a region
  bool bundles = false;
  /// The file that the lists come from does not say what the outputs are; `op` says only which tensors there are. So
  /// check() proves that no list stands still and no message is left over, and nothing about contents. Outputs that no
  /// step writes stay as they are.
  bool custom = false;
  std::int64_t period = 0;
  std::int64_t length = 0;  ///< ticks from the first start to the last arrival of one round
  std::vector<Block> blocks;
  std::vector<ScheduleLink> links;       ///< every pair that exchanges messages, sorted by (a, b)
  std::vector<std::vector<Step>> steps;  ///< by node
  /// Further lists for the same blocks, links and slots, by node: lanes take `steps` and these in turn, so that not all
  /// of them send to the same node at a time.
  std::vector<std::vector<std::vector<Step>>> variants;
  /// A lane sends when no more than so many of the messages that it is to receive before have still to come. 0:
  /// whenever there is a slot.
  std::int32_t outstanding = 0;

  std::int64_t last_round() const { return period > 0 ? length / period : 0; }
  int slots() const;  ///< the largest of the links'
  /// The lists of lanes whose number is `variant` modulo 1 + variants.size().
  const std::vector<std::vector<Step>>& lists(std::size_t variant) const {
    return variant == 0 ? steps : variants[variant - 1];
  }
};

/// Equal regions of `in` and `out` on one node: all_gather 1 and p, reduce_scatter p and 1, all_to_all p and p; gather
/// 1 and p (out on the root only), scatter p (in on the root only) and 1; all others 1 and 1.
std::int32_t regions_in(CollectiveOp op, std::int32_t nodes);
std::int32_t regions_out(CollectiveOp op, std::int32_t nodes);

/// First element of unit `unit` of round `round` in a region of `elements`. Borders are multiples of one element; both
/// ends of a queue and all nodes compute the same.
inline std::int64_t unit_border(std::int64_t elements, std::int64_t rounds, std::int64_t round, std::int64_t units,
                                std::int64_t unit) {
  const std::int64_t begin = elements * round / rounds, end = elements * (round + 1) / rounds;
  return begin + (end - begin) * unit / units;
}

}  // namespace kernbench::ccl
