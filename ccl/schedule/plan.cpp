#include "ccl/schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "ccl/contract/error.h"
#include "ccl/contract/grid.h"
#include "ccl/schedule/check.h"
#include "ccl/schedule/estimate.h"

namespace kernbench::ccl {
namespace {

/// Messages below this are not worth cutting further: their fixed costs outweigh what the pipeline gains.
constexpr double kLeastPiece = 1024;

/// Pieces of each rank's part that a list is to have where they are at least kShortPiece.   assumed: with two of
/// 16 KiB, links of an 8 x 8 torus are idle for a third of the time, with eight for a tenth
constexpr double kEnoughPieces = 8;
constexpr std::int64_t kShortPiece = 4096;  ///< with 4 slots; fewer slots need longer ones to have as much under way

/// Rounds of full slots from which on a periodic list leaves half of the slots free: messages of other lanes come in
/// between, and who waits for a slot holds up the trees of all other directions: 64 MiB on mesh4x4 0.847 to 0.964 of
/// the bound.
constexpr double kManyRounds = 8;

/// Of lanes that carry one tree each, messages are halved only for a gain by more than this: estimates do not know what
/// a message adds to its bytes on the links.   assumed: 16 MiB on 4 x 4 SIPs of 128 lanes gain 4% with 2 KiB instead of
/// 4 KiB, as in the run, and less than 1% with 1 KiB, which lose 2% there
constexpr double kWorthHalving = 0.98;
/// Lanes carry one tree each up to so much more by estimate, for what a tree held up by another costs, and short
/// messages.   assumed: as for kWorthHalving; 7% less time in runs where the estimate is 1% longer
constexpr double kOneTree = 1.05;

/// Trees times nodes up to which lanes may carry one tree each.   assumed: more (12 x 12 SIPs have 3,456) take many
/// seconds to estimate, and leave a tree few lanes
constexpr int kMostTreesOfNodes = 2048;

/// Random orders of ties that are tried for a periodic list.
constexpr int kOrders = 10;

/// Blocks of one plain list. More only lengthen the list; further data goes into further rounds.
constexpr int kMostBlocks = 4096;

double lane_bytes(const PlanRequest& request) {
  return static_cast<double>(request.bytes) / std::max(request.lanes, 1);
}

/// Limit of the pieces of a part for each rank: full slots, or shorter ones, but not below `shortest` with 4 slots,
/// where those were too few to keep the links busy from the first to the last.
std::int64_t piece_limit(const PlanRequest& request, double part, std::int64_t shortest = kShortPiece) {
  // The second half of an all_reduce keeps the links busy while the first ends: few long pieces are enough.
  if (request.op == CollectiveOp::all_reduce) return message_limit(request, request.slot_bytes);
  const auto even = static_cast<std::int64_t>(part / kEnoughPieces);
  const auto least = std::max<std::int64_t>(shortest, 4 * shortest / std::max(request.slots, 1));
  return message_limit(request, std::clamp(even, std::min(least, request.slot_bytes), request.slot_bytes));
}

[[noreturn]] void refuse(const char* algorithm, const PlanRequest& request) {
  throw std::invalid_argument(fmt::format("algorithm '{}' does not serve {}{}", algorithm, to_string(request.op),
                                          request.cubes() > 1 ? " of cubes" : ""));
}

/// Diagonals of roots that go one after the other on a large torus: as many as leave each of them a root for every
/// lane, since regions of that many ranks lie in the memories of all PEs. Every other of its roots of a line takes the
/// other way round to an even ring's opposite node.
int diagonals_of(const PlanRequest& request, const Lattice& grid) {
  if (request.op == CollectiveOp::all_reduce || grid.line() || !grid.ring_x() || !grid.ring_y()) return 1;
  const auto even = [](int n, int k) { return n % 2 != 0 || n / k % 2 == 0; };
  int most = 1;
  for (int k = 2; grid.nodes() / k >= request.lanes; ++k) {
    if (grid.w % k == 0 && grid.h % k == 0 && even(grid.w, k) && even(grid.h, k)) most = k;
  }
  return most;
}

Plan plan_combs(const char* algorithm, const PlanRequest& request, const Lattice& grid) {
  const Split split = gather_split(grid);
  const double share = static_cast<double>(std::max(split.x, split.y)) / (split.x + split.y);
  const double part = lane_bytes(request) / grid.nodes() * share;
  const int kinds = (split.x > 0) + (split.y > 0);
  int diagonals = diagonals_of(request, grid);
  // The longer messages are, the less it counts how far a lane is from the IO chiplet; diagonals spread their stores.
  const bool longer = diagonals > 1 && request.op == CollectiveOp::all_gather;
  Cut cut = cut_pieces(part, piece_limit(request, part, longer ? 2 * kShortPiece : kShortPiece),
                       kMostBlocks / (grid.nodes() * kinds));
  // An even number of pieces goes both ways round to the opposite node of an even ring.
  if (cut.pieces % 2 != 0 && part / cut.pieces > kLeastPiece) ++cut.pieces;
  const double piece = part / (cut.pieces * static_cast<double>(cut.rounds));
  if (piece <= kLeastPiece) diagonals = 1;
  const int lambda = choose_lambda(request, request.sip, piece);
  return plan_with(algorithm, request, lambda, cut.rounds,
                   [&](int l) { return comb_gather_schedule({request.op}, grid, cut.pieces, l, diagonals); });
}

}  // namespace

std::int64_t message_limit(const Parameters& parameters, std::int64_t slot_bytes, std::int64_t preset) {
  const auto found = parameters.find("chunk_bytes");
  const std::int64_t chunk = found == parameters.end() ? 0 : found->second;
  return std::max<std::int64_t>(std::min(chunk > 0 ? chunk : preset, slot_bytes), 1);
}

std::int64_t message_limit(const PlanRequest& request, std::int64_t preset) {
  return message_limit(request.parameters, request.slot_bytes, preset);
}

int choose_lambda(const PlanRequest& request, const LevelCost& level, double bytes) {
  const double chunk =
      std::max(bytes, 1.0) * std::max(request.lanes, 1) / level.bytes_per_second + level.message_seconds;
  const double l = level.hop_seconds / chunk, credit = l / 2, slots = request.slots;
  const int most = request.slots > 3 ? request.slots - 2 : std::min(request.slots - 1, 1);
  int best = std::min(most, 1);
  double best_rate = 0;
  for (int lambda = best; lambda <= most; ++lambda) {
    const double rate = std::min({1.0, (1 + lambda) / (1 + l), slots / (1 + l + credit), (slots - lambda) / credit});
    // Of equal ones the largest: it also hides what engines take.
    if (rate > best_rate * 0.999) {
      best = lambda;
      best_rate = std::max(rate, best_rate);
    }
  }
  return best;
}

Cut cut_pieces(double part_bytes, std::int64_t limit, int most) {
  const auto needed =
      std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(part_bytes / static_cast<double>(limit))), 1);
  const std::int64_t in_list = std::max(most, 2);
  if (needed <= in_list) return {static_cast<int>(needed), 1};
  const std::int64_t rounds = (needed + in_list - 1) / in_list;
  return {static_cast<int>((needed + rounds - 1) / rounds), rounds};
}

namespace {

std::shared_ptr<const Schedule> fitting_schedule(const char* algorithm, const PlanRequest& request, int lambda,
                                                 const std::function<Schedule(int lambda)>& build) {
  auto schedule = std::make_shared<Schedule>(build(lambda));
  while (schedule->slots() > request.slots && lambda > 0) *schedule = build(--lambda);
  if (schedule->slots() > request.slots) {
    throw std::invalid_argument(
        fmt::format("algorithm '{}' needs queues of {} slots, not {}", algorithm, schedule->slots(), request.slots));
  }
  schedule->algorithm = algorithm;
  return schedule;
}

Plan estimated(std::shared_ptr<const Schedule> schedule, const PlanRequest& request, std::int64_t rounds) {
  const Estimate takes = estimate(*schedule, request, rounds);
  return {std::move(schedule), rounds, takes.seconds, takes.at_least};
}

}  // namespace

Plan plan_with(const char* algorithm, const PlanRequest& request, int lambda, std::int64_t rounds,
               const std::function<Schedule(int lambda)>& build) {
  return estimated(fitting_schedule(algorithm, request, lambda, build), request, rounds);
}

void require_slots(const Schedule& schedule, std::int64_t slots, const std::string& whose) {
  if (schedule.slots() <= slots) return;
  throw Error(fmt::format("{}: its schedule needs queues of {} slots, they have {}; raise pe.ipcq.slots", whose,
                          schedule.slots(), slots));
}

Plan plan_with(std::shared_ptr<const Schedule> schedule, const PlanRequest& request, const std::string& whose) {
  if (schedule->op != request.op || schedule->nodes != request.nodes() || schedule->root != request.root) {
    throw Error(fmt::format("schedule '{}' is {} on {} ranks with root {}; asked for is {} on {} with root {}",
                            schedule->algorithm, to_string(schedule->op), schedule->nodes, schedule->root,
                            to_string(request.op), request.nodes(), request.root));
  }
  require_slots(
      *schedule, request.slots,
      whose.empty() ? fmt::format("algorithm '{}'", schedule->algorithm) : whose);  // its estimate might wait for ever
  return estimated(std::move(schedule), request, 1);
}

Plan plan_rounds(const char* algorithm, const PlanRequest& request, int columns,
                 const std::function<Schedule(int lambda)>& build) {
  const std::int64_t limit = message_limit(request, request.slot_bytes);
  const int lambda = choose_lambda(request, request.sip, static_cast<double>(limit) * columns);
  std::shared_ptr<const Schedule> schedule = fitting_schedule(algorithm, request, lambda, build);
  const double unit = lane_bytes(request) / schedule->units;
  const int half = std::max(request.slots / 2 - 1, 1);
  if (request.cubes() == 1 && lambda > half && unit >= kManyRounds * static_cast<double>(limit)) {
    schedule = fitting_schedule(algorithm, request, half, build);
  }
  const auto least = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(unit / static_cast<double>(limit))), 1);
  Plan plan = estimated(schedule, request, least);
  if (request.parameters.count("chunk_bytes") && request.parameters.at("chunk_bytes") > 0) return plan;
  for (std::int64_t rounds = least * 2; unit / static_cast<double>(rounds) >= kLeastPiece / 4; rounds *= 2) {
    Plan halved = estimated(schedule, request, rounds);
    if (halved.seconds >= plan.seconds * (schedule->variants.empty() ? 1 : kWorthHalving)) break;
    plan = std::move(halved);
  }
  return plan;
}

Plan shorter(Plan a, Plan b) { return b.seconds < a.seconds ? std::move(b) : std::move(a); }

namespace {

/// Lanes that carry one tree each have enough under way with half of their slots: those on a link cover its latency,
/// and the credits' way back.
bool covers_links(const PlanRequest& request, const Plan& plan) {
  const double message = lane_bytes(request) / static_cast<double>(plan.rounds * plan.schedule->units);
  const double lanes = link_load(*plan.schedule).most * request.lanes;
  return lanes * message * request.slots / 2 >= 2 * request.sip.hop_seconds * request.sip.bytes_per_second;
}

/// Every lane on all trees, or each on one of them: then a lane's messages are as many times longer, and no tree waits
/// for another (decision 0370).
Plan plan_packing(const char* algorithm, const PlanRequest& request, const Lattice& grid) {
  const auto plan = [&](int variants) {
    return plan_rounds(algorithm, request, 1,
                       [&](int lambda) { return packing_schedule(grid, lambda, kOrders, variants); });
  };
  Plan all = plan(1);
  const int trees = packing_trees(grid);
  if (trees == 1 || request.lanes < trees || trees * grid.nodes() > kMostTreesOfNodes) return all;
  Plan one = plan(trees);
  // Where lanes do not divide, some trees have one more.
  const int most = (request.lanes + trees - 1) / trees;
  one.seconds *= static_cast<double>(most) * trees / request.lanes;
  return covers_links(request, one) && one.seconds <= all.seconds * kOneTree ? one : all;
}

}  // namespace

Plan plan_grid(const char* algorithm, const PlanRequest& request) {
  if (request.cubes() > 1) return plan_hierarchical(algorithm, request);
  const Lattice grid = sip_lattice(request);
  switch (request.op) {
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
      return plan_combs(algorithm, request, grid);
    case CollectiveOp::all_reduce:
      if (grid.regular()) return plan_combs(algorithm, request, grid);
      return shorter(plan_combs(algorithm, request, grid), plan_packing(algorithm, request, grid));
    case CollectiveOp::all_to_all: {
      const double part = lane_bytes(request) / grid.nodes() / exchange_parts(grid);
      const Cut cut = cut_pieces(part, piece_limit(request, part), 4 * kMostBlocks / (grid.nodes() * grid.nodes()));
      const int lambda = choose_lambda(request, request.sip, part / (cut.pieces * static_cast<double>(cut.rounds)));
      return plan_with(algorithm, request, lambda, cut.rounds,
                       [&](int l) { return exchange_schedule(grid, cut.pieces, l); });
    }
    default:
      return plan_rooted(algorithm, request, false);
  }
}

namespace {

/// Lists of a schedule that lanes take in turn: more only cost time to make.
constexpr int kMostVariants = 8;

/// Messages of all lanes for each link, in those that cover its latency. What waits at the link is what makes lanes
/// equal: with so much of it a message takes nearly as long from PEs near the IO chiplet as from far ones. assumed:
/// once on the way, and five times that in front of the link (decision 0170)
constexpr double kCovered = 6;

/// Messages of `message` bytes that a lane may wait for at once, so that all lanes together fill the links of a fully
/// connected network but not its buffers; 0: they cannot crowd it, with `part` bytes for each rank.
///
/// What does not fit the links waits in the networks of the SIP, where it is in the way of messages to other links, and
/// where lanes near the IO chiplet pass those that are far from it.
int most_outstanding(const PlanRequest& request, double part, double message) {
  if (request.kind != kFullyConnected || request.ranks < 3) return 0;
  const double cover = kCovered * request.sip.bytes_per_second * request.sip.hop_seconds;
  if (request.lanes * std::min(part, request.slots * message) <= cover) return 0;
  return std::max(static_cast<int>(std::ceil(cover * (request.ranks - 1) / (request.lanes * message))), 1);
}

}  // namespace

Plan plan_direct(const char* algorithm, const PlanRequest& request) {
  if (request.cubes() > 1) return plan_hierarchical(algorithm, request);
  const bool parts = request.op != CollectiveOp::reduce && request.op != CollectiveOp::broadcast &&
                     request.op != CollectiveOp::send_recv;
  const double part = lane_bytes(request) / (parts ? request.ranks : 1);
  const int blocks = request.op == CollectiveOp::all_to_all ? request.ranks * request.ranks : request.ranks;
  const bool ports = request.kind == kSwitch;
  // Behind a switch the halves of an operation overlap only from piece to piece. No fifth piece for the rest of a
  // division: it would wait for the first one's slot.
  const auto quarter = static_cast<std::int64_t>(std::ceil(part / 4));
  const std::int64_t limit =
      message_limit(request, std::max(std::min(request.slot_bytes, quarter), static_cast<std::int64_t>(kLeastPiece)));
  const Cut cut = cut_pieces(part, limit, kMostBlocks / std::max(blocks, 1));
  const double message = part / (cut.pieces * static_cast<double>(cut.rounds));
  const int outstanding = parts ? most_outstanding(request, part, message) : 0;
  // Where it is limited, the lanes together hide the latency, by sending at different times.
  const int lambda = outstanding > 0 ? 0 : choose_lambda(request, request.sip, message);
  const int variants = outstanding > 0 ? std::min(request.ranks - 1, kMostVariants) : 1;
  return plan_with(algorithm, request, lambda, cut.rounds, [&](int l) {
    Schedule schedule =
        direct_schedule({request.op, request.root, request.peer}, request.ranks, cut.pieces, l, ports, variants);
    schedule.outstanding = outstanding;
    return schedule;
  });
}

namespace {

/// Messages of a lane to each rank from which on pairs that take turns, with a limit of outstanding messages, are as
/// fast as lists that load ahead. Measured on 2 to 8 SIPs of fc8 (decision 0180): with fewer, up to 6 % slower.
constexpr double kWorthTurns = 4;

/// How much latency the columns of cubes together hide depends on how evenly the period takes them in turn: tried.
Plan plan_product(const char* algorithm, const PlanRequest& request) {
  const int tries = request.nodes() > 64 ? 2 : 10;
  Plan best;
  for (int columns = request.cube_w; columns > 0; columns = columns > 1 ? 1 : 0) {
    Plan plan =
        plan_rounds(algorithm, request, columns, [&](int l) { return product_schedule(request, l, columns, tries); });
    best = best.schedule ? shorter(std::move(best), std::move(plan)) : std::move(plan);
  }
  return best;
}

}  // namespace

Plan plan_hierarchical(const char* algorithm, const PlanRequest& request) {
  switch (request.op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::reduce:
    case CollectiveOp::broadcast:
      // Of ranks alone the product is the packing of the SIPs.
      if (request.op == CollectiveOp::all_reduce && request.cubes() == 1 && !all_pairs(request) &&
          !sip_lattice(request).regular()) {
        return plan_packing(algorithm, request, sip_lattice(request));
      }
      return plan_product(algorithm, request);
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter: {
      const double part = lane_bytes(request) / request.nodes();
      // Of ranks that all have a link to each other the product is their pairs, which take turns.
      if (request.cubes() == 1 && request.kind == kFullyConnected && part >= kWorthTurns * request.slot_bytes) {
        return plan_direct(algorithm, request);
      }
      const Cut cut = cut_pieces(part, message_limit(request, request.slot_bytes), kMostBlocks / request.nodes());
      const int lambda = choose_lambda(request, request.sip, part / (cut.pieces * static_cast<double>(cut.rounds)));
      return plan_with(algorithm, request, lambda, cut.rounds,
                       [&](int l) { return product_gather_schedule(request, cut.pieces, l); });
    }
    case CollectiveOp::all_to_all: {
      const double part = lane_bytes(request) / request.nodes();
      const Cut cut = cut_pieces(part, message_limit(request, request.slot_bytes),
                                 kMostBlocks / (request.nodes() * request.nodes()));
      const int lambda = choose_lambda(request, request.sip, part / (cut.pieces * static_cast<double>(cut.rounds)));
      return plan_with(algorithm, request, lambda, cut.rounds,
                       [&](int l) { return rooted_schedule({request.op}, machine_graph(request), 1, cut.pieces, l); });
    }
    default:
      refuse(algorithm, request);
  }
}

Plan plan_rooted(const char* algorithm, const PlanRequest& request, bool one_tree) {
  const bool spreads = request.op == CollectiveOp::reduce || request.op == CollectiveOp::broadcast;
  if (spreads || request.op == CollectiveOp::all_reduce) {
    Plan plan = plan_rounds(algorithm, request, 1, [&](int l) { return one_tree_schedule(request, l); });
    if (one_tree || request.cubes() > 1 || !spreads) return plan;
    for (const int trees : {2, 8, 16}) {
      plan = shorter(std::move(plan), plan_rounds(algorithm, request, 1, [&](int l) {
                       return rooted_schedule({request.op, request.root, 0}, sip_graph(request), trees, 1, l);
                     }));
    }
    return plan;
  }
  if (request.op != CollectiveOp::gather && request.op != CollectiveOp::scatter &&
      request.op != CollectiveOp::send_recv) {
    refuse(algorithm, request);
  }
  if (request.cubes() > 1) refuse(algorithm, request);
  const double part = lane_bytes(request) / (request.op == CollectiveOp::send_recv ? 1 : request.ranks);
  const Cut cut = cut_pieces(part, message_limit(request, request.slot_bytes), kMostBlocks / request.ranks);
  const int lambda = choose_lambda(request, request.sip, part / (cut.pieces * static_cast<double>(cut.rounds)));
  return plan_with(algorithm, request, lambda, cut.rounds, [&](int l) {
    return rooted_schedule({request.op, request.root, request.peer}, sip_graph(request), 1, cut.pieces, l);
  });
}

}  // namespace kernbench::ccl
