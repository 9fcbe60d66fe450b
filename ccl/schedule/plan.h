#pragma once
#include <cstdint>
#include <functional>

#include "ccl/contract/contract.h"
#include "ccl/schedule/build.h"
#include "ccl/schedule/machine.h"
#include "ccl/schedule/schedule.h"

/// From a request to a plan: how large the messages, how many rounds, which assumed latency. What algorithm modules
/// are written with. All throw std::invalid_argument where the operation is not served.
namespace kernbench::ccl {

/// Largest message of a lane: the parameter chunk_bytes if set, else the algorithm's `preset`; at most a slot.
std::int64_t message_limit(const PlanRequest& request, std::int64_t preset);

/// The assumed latency in 0 .. slots - 1 chunk times that lets messages of `bytes` per lane flow fastest, one slot kept
/// spare where there are enough (docs/constructions.md, Queues).
int choose_lambda(const PlanRequest& request, const LevelCost& level, double bytes);

/// Pieces of a plain list and rounds of it, so that no message exceeds `limit`. `part_bytes`: of what is cut, per lane;
/// `most`: pieces of one list.
struct Cut {
  int pieces = 1;
  std::int64_t rounds = 1;
};
Cut cut_pieces(double part_bytes, std::int64_t limit, int most);

/// Builds with `lambda`, less if the queues have too few slots for it. Names the schedule and estimates its time.
Plan plan_with(const char* algorithm, const PlanRequest& request, int lambda, std::int64_t rounds,
               const std::function<Schedule(int lambda)>& build);

/// As plan_with, for a periodic schedule: with the number of rounds for which the estimate is shortest. `columns`:
/// queues that share a link between SIPs in turn.
Plan plan_rounds(const char* algorithm, const PlanRequest& request, int columns,
                 const std::function<Schedule(int lambda)>& build);

/// The shorter one by estimate.
Plan shorter(Plan a, Plan b);

/// Any operation on the request's ring, torus or mesh of SIPs by the construction that reaches its bound; with cubes,
/// plan_hierarchical.
Plan plan_grid(const char* algorithm, const PlanRequest& request);
/// Any operation straight from rank to rank; with cubes, plan_hierarchical.
Plan plan_direct(const char* algorithm, const PlanRequest& request);
/// all_reduce, reduce, broadcast, reduce_scatter, all_gather over SIPs and cubes.
Plan plan_hierarchical(const char* algorithm, const PlanRequest& request);
/// Operations with a root on one tree or several.
Plan plan_rooted(const char* algorithm, const PlanRequest& request, bool one_tree);

/// Descriptor of a schedule module; the module adds its name, operations and so on.
struct ModuleTraits {
  const char* name = nullptr;
  std::uint32_t operations = 0, scopes = 0, topologies = 0;
  Plan (*plan)(const PlanRequest& request) = nullptr;
  NodePairs (*links)(const PlanRequest& request) = nullptr;
};
Algorithm schedule_algorithm(const ModuleTraits& traits);

inline constexpr std::uint32_t kAllTopologies =
    topology_bit(kTopologyKinds.ring_1d) | topology_bit(kTopologyKinds.torus_2d) |
    topology_bit(kTopologyKinds.mesh_2d_no_wrap) | topology_bit(kTopologyKinds.switch_star) |
    topology_bit(kTopologyKinds.fully_connected);
inline constexpr std::uint32_t kAllScopes = bit(Scope::sip) | bit(Scope::cube) | bit(Scope::pe);
inline constexpr std::uint32_t kAllOperations =
    bit(CollectiveOp::all_reduce) | bit(CollectiveOp::all_gather) | bit(CollectiveOp::reduce_scatter) |
    bit(CollectiveOp::reduce) | bit(CollectiveOp::broadcast) | bit(CollectiveOp::all_to_all) |
    bit(CollectiveOp::gather) | bit(CollectiveOp::scatter) | bit(CollectiveOp::send_recv);
/// What may go straight from PE to PE: every element as it is, from one place.
inline constexpr std::uint32_t kPeToPeOperations = bit(CollectiveOp::all_gather) | bit(CollectiveOp::reduce_scatter) |
                                                   bit(CollectiveOp::all_to_all) | bit(CollectiveOp::gather) |
                                                   bit(CollectiveOp::scatter);

}  // namespace kernbench::ccl
