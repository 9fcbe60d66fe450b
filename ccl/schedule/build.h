#pragma once
#include <cstdint>

#include "ccl/schedule/lattice.h"
#include "ccl/schedule/schedule.h"

/// Operations as schedules, one function per construction of reference/collectives/methods.md. Every result passes
/// check(). `lambda`: assumed latency in chunk times of a link.
namespace kernbench::ccl {

/// What an operation is asked for besides where.
struct Operation {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::int32_t root = 0, peer = 0;  ///< as in Schedule
};

/// Everybody to everybody directly: all operations on any number of nodes. In step d node i sends to i + d. `pieces`:
/// messages of each node's part. `ports`: a node's messages leave and arrive one after the other (a switch); otherwise
/// every pair has a link of its own. Reductions: to the part's owner and back.
Schedule direct_schedule(Operation operation, int nodes, int pieces, int lambda, bool ports);

/// all_gather, reduce_scatter, and all_reduce as both, on row- and column-combs from every node (section 2).
Schedule comb_gather_schedule(Operation operation, const Lattice& grid, int pieces, int lambda);

/// all_reduce on the comb-tree packing, periodic (section 3).
Schedule packing_schedule(const Lattice& grid, int lambda, int tries);

/// all_to_all along rows and columns in two colours, farthest first (section 9).
Schedule exchange_schedule(const Lattice& grid, int pieces, int lambda);

/// broadcast, reduce: `trees` trees that share the links, periodic; one tree: shortest paths. gather, scatter and
/// send_recv: along shortest paths, farthest first.
Schedule rooted_schedule(Operation operation, const Graph& graph, int trees, int lambda);

/// all_reduce in as many steps as the grid has hops: every node's whole vector floods one dimension after the other and
/// is added in the order of the nodes (section 7). `colours` 2: half of the data columns first.
Schedule flood_schedule(const Lattice& grid, int colours, int lambda);

}  // namespace kernbench::ccl
