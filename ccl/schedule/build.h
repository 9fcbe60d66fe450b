#pragma once
#include <cstdint>

#include "ccl/contract/plan_request.h"
#include "ccl/schedule/lattice.h"
#include "ccl/schedule/machine.h"
#include "tlm/kernel/operations.h"

/// Operations as schedules, one function per construction of docs/constructions.md. Every result passes
/// check(). `lambda`: assumed latency in chunk times of a link.
namespace kernbench::ccl {

/// What an operation is asked for besides where.
struct Operation {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::int32_t root = 0, peer = 0;  ///< as in Schedule

  /// Of what is neither combined nor copied: calls f(from, to) for what belongs to node v of `nodes`.
  template <class F>
  void for_each_pair(std::int32_t v, std::int32_t nodes, const F& f) const {
    const Parties parties = facts_of(op).parties;
    if (parties == Parties::to_root) f(v, root);
    if (parties == Parties::from_root) f(root, v);
    if (parties == Parties::pairs && (root < 0 || root == v)) f(v, root < 0 ? (v + peer) % nodes : peer);
    for (std::int32_t d = 0; parties == Parties::all && d < nodes; ++d) f(v, (v + d) % nodes);
  }
};

/// Everybody to everybody directly: all operations on any number of nodes. In step d node i sends to i + d. `pieces`:
/// messages of each node's part. `ports`: a node's messages leave and arrive one after the other (a switch); otherwise
/// every pair has a link of its own. Reductions: to the part's owner and back. `variants`: lists that begin with
/// different distances d, for lanes to take in turn.
Schedule direct_schedule(Operation operation, int nodes, int pieces, int lambda, bool ports, int variants = 1);

/// all_gather, reduce_scatter, and all_reduce as both, on row- and column-combs from every node (Combs).
/// `diagonals`: of each piece, roots (x, y) with (x + y) mod diagonals = 0 go first, then those with 1, and so on; the
/// last quarter of a reduce_scatter's pieces goes as a whole. A diagonal has as many roots in every row and column, so
/// that it loads all links alike; with rows one after the other in memory it is spread over all of it (decision 0340).
Schedule comb_gather_schedule(Operation operation, const Lattice& grid, int pieces, int lambda, int diagonals = 1);

/// all_reduce on the comb-tree packing, periodic (Packings). `variants`: lists, each with its share of the trees, for
/// lanes to take in turn (decision 0370); it divides packing_trees().
Schedule packing_schedule(const Lattice& grid, int lambda, int tries, int variants = 1);
/// Trees of the packing, each with its unit of the data.
int packing_trees(const Lattice& grid);

/// all_to_all along rows and columns in two colours, farthest first (all_to_all).
Schedule exchange_schedule(const Lattice& grid, int pieces, int lambda);
/// Parts of a region that one piece of it consists of: colours, and ways round to the opposite node of an even ring.
int exchange_parts(const Lattice& grid);

/// broadcast, reduce: `trees` trees that share the links, periodic; one tree: shortest paths; two on a ring: both ways
/// round. gather, scatter and send_recv: in `pieces` along shortest paths, farthest first.
Schedule rooted_schedule(Operation operation, const Graph& graph, int trees, int pieces, int lambda);

/// How flood_schedule goes about it.
struct FloodShape {
  std::int32_t units = 1;       ///< parts of the data that take different ways
  bool at_top = false;          ///< only sums of SIPs flood: cubes hand over to the row next to the IO chiplet first
  bool straight_sips = false;   ///< between SIPs of a line one message straight to each; one cube or at_top
  bool straight_cubes = false;  ///< at_top: cubes send straight to the end of their column or row
};
/// Longest line of nodes that have queues straight to each other.
inline constexpr std::int32_t kMostStraight = 16;

/// all_reduce in as many steps as there are hops, or in fewer longer ones (Little data). Every node's whole vector
/// floods one dimension after the other and is added in the order of the nodes; of two units one takes the dimensions
/// the other way round. at_top: cubes of a SIP add along columns, then along the top row to the cube of the unit, those
/// flood between the SIPs, and the sum goes back.
Schedule flood_schedule(const PlanRequest& request, const FloodShape& shape, int lambda);
NodePairs flood_links(const PlanRequest& request);

/// reduce_scatter of small data in few steps and few messages, each of which has what a node has for many owners
/// (decision 0146): up the columns of cubes to the row next to the IO chiplet, straight along the columns of SIPs to
/// the owners' row, along the row to the owners' SIP, there to the owners. `to_columns`: along the row a message for
/// each owner, to the top of its column of cubes, and down. Lines of SIPs of at most kMostStraight.
Schedule funnel_schedule(const PlanRequest& request, bool to_columns);
NodePairs funnel_links(const PlanRequest& request);

/// all_reduce, reduce, broadcast over SIPs and cubes: a tree of the SIPs' packing united with one of the cubes' in
/// every SIP, for each pair in turn; periodic (Two levels). Columns of cubes take turns to reach the other SIPs, so
/// that the latency assumed there may be `columns` times `lambda`.
Schedule product_schedule(const PlanRequest& request, int lambda, int columns, int tries);

/// all_gather, reduce_scatter, and all_reduce as both, over SIPs and cubes: inside the SIPs on combs to the owner's
/// place, between the SIPs at that place.
Schedule product_gather_schedule(const PlanRequest& request, int pieces, int lambda);

/// all_reduce, reduce, broadcast on one tree of shortest paths over SIPs and cubes, periodic.
Schedule one_tree_schedule(const PlanRequest& request, int lambda);

/// all_reduce by recursive halving, then doubling; ranks beyond a power of two hand over first and get the result last.
Schedule halving_doubling_schedule(int nodes, int lambda);

/// all_reduce on two binary trees, half of the data each; inner nodes of one are leaves of the other. Periodic.
Schedule double_tree_schedule(int nodes, int lambda);

/// all_reduce, all_gather, reduce_scatter around a ring in one direction: rank r sends to r + 1 only.
Schedule one_direction_schedule(Operation operation, int nodes, int pieces, int lambda);

}  // namespace kernbench::ccl
