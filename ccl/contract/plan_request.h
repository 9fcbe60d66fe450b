#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ccl/contract/schedule.h"

/// What algorithms of schedules are asked, and what they answer.
namespace kernbench::ccl {

/// What one link of a level can do.
struct LevelCost {
  double bytes_per_second = 128e9;  ///< payload of a link, each way
  double hop_seconds = 1e-6;        ///< send to received, of a minimal message
  double message_seconds = 0;       ///< o: fixed cost of a message on the link
  double pass_seconds = 0;          ///< of a routed message, for every further link
};

/// Nodes that a message passes, both ends included, by (from, to).
using Ways = std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>>;

/// What a schedule is made for. Nodes are numbered rank * cubes + cube, cubes = cube_w * cube_h row by row.
struct PlanRequest {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::int32_t root = 0, peer = 0;  ///< as in Schedule
  std::int32_t kind = 0;            ///< of the SIPs: kRing1d, ...
  std::int32_t sip_w = 0, sip_h = 0, ranks = 1;
  std::int32_t cube_w = 1, cube_h = 1;  ///< contributors inside a SIP; 1 x 1 with scope sip
  std::int64_t bytes = 0;               ///< of the larger of in and out of one node, over all lanes
  std::int32_t lanes = 1;               ///< that run the same lists on their slice
  std::int32_t slots = 4;               ///< of a queue
  std::int64_t slot_bytes = 4096;       ///< of a slot
  LevelCost sip, cube;                  ///< links between SIPs and between cubes; all lanes share one link
  double send_seconds = 2e-9, receive_seconds = 4e-9;  ///< engine time of one message on one lane
  double issue_seconds = 2e-9;                         ///< that PE_CPU is busy with an op
  std::int32_t queue_ops = 16;  ///< that a queue of the PE holds; behind a full one nothing is issued
  double sum_seconds = 6e-9, sum_bytes_per_second = 819e9;  ///< of two tiles
  double lane_bytes_per_second = 0;    ///< at which a lane hands bytes over and takes them; 0: at once
  double column_bytes_per_second = 0;  ///< of a column of cubes to the IO chiplet, each way; 0: never limits
  std::int32_t columns = 1;            ///< of a SIP
  double row_skew_seconds = 0;         ///< between SIPs: what the bottom row of cubes takes longer than the top row
  double load_seconds = 0, store_seconds = 0;  ///< the first load, the last store
  /// Where links are broken, the ways that packets take: SIPs of the machine, by ranks; nodes, by nodes of one rank. A
  /// way that is not there is the one of the whole machine.
  std::shared_ptr<const Ways> sip_ways, cube_ways;
  Parameters parameters;  ///< declared by the algorithm
  /// A limit, above which the plan will not be used; 0: none. A plan that surely takes longer than this is neither
  /// estimated nor cut with care: its `seconds` are any time between the limit and what it takes (Plan::at_least).
  double most_seconds = 0;

  std::int32_t cubes() const { return cube_w * cube_h; }
  std::int32_t nodes() const { return ranks * cubes(); }
};

/// A schedule and how to cut the data for it.
struct Plan {
  std::shared_ptr<const Schedule> schedule;
  std::int64_t rounds = 1;  ///< M
  double seconds = 0;       ///< what it should take: estimate.h; 0 where nodes send something: it is not known
  bool at_least = false;    ///< it takes `seconds` or longer, which is above PlanRequest::most_seconds
};

}  // namespace kernbench::ccl
