#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ccl/contract/contract.h"
#include "ccl/contract/plan_request.h"
#include "ccl/schedule/build.h"
#include "ccl/schedule/machine.h"

/// From a request to a plan: how large the messages, how many rounds, which assumed latency. What algorithm modules
/// are written with. All throw std::invalid_argument where the operation is not served.
namespace kernbench::ccl {

/// Largest message of a lane: the parameter chunk_bytes if set, else the algorithm's `preset`; at most a slot.
std::int64_t message_limit(const Parameters& parameters, std::int64_t slot_bytes, std::int64_t preset);
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

/// What is planned for `request` with a given schedule. Throws Error if it is for another operation or number of nodes,
/// or needs more slots. `whose`: "algorithm 'ring' (ring.xml)"; empty: the schedule's name.
Plan plan_with(std::shared_ptr<const Schedule> schedule, const PlanRequest& request, const std::string& whose = {});
/// Throws Error if queues of `slots` are too few for it.
void require_slots(const Schedule& schedule, std::int64_t slots, const std::string& whose);

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

}  // namespace kernbench::ccl
