#include "ccl/run/group_algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ccl/contract/error.h"
#include "ccl/data/layout.h"
#include "ccl/run/pe_to_pe.h"
#include "ccl/schedule/check.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

constexpr int kScopes = 3;

/// The names of the first `count` values whose bits are set.
template <class Enum>
std::string served(std::uint32_t bits, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    if (bits >> i & 1) list += (list.empty() ? "" : ", ") + std::string(to_string(static_cast<Enum>(i)));
  }
  return list;
}

AlgorithmEntry serving(AlgorithmEntry entry, Scope scope) {
  if (entry.algorithm->scopes & bit(scope)) return entry;
  throw Error(fmt::format("algorithm '{}' does not serve scope {}; it serves {}", entry.name, to_string(scope),
                          served<Scope>(entry.algorithm->scopes, kScopes)));
}

/// Throws Error if a schedule of a module sends where there are no queues.
void check_declared(const Schedule& schedule, const std::vector<std::pair<std::int32_t, std::int32_t>>& declared) {
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (const auto& [a, b] : declared) pairs.emplace(std::minmax(a, b));
  for (const ScheduleLink& link : schedule.links) {
    if (pairs.count(std::minmax(link.a, link.b)) != 0) continue;
    throw Error(fmt::format(
        "it links nodes {} and {}, which `links` does not: that is asked once for all operations, roots and sizes",
        link.a, link.b));
  }
}

}  // namespace

GroupAlgorithm::GroupAlgorithm(AlgorithmEntry entry, const CallBinder& calls)
    : entry_(serving(std::move(entry), calls.scope())),
      calls_(calls),
      sips_(sip_shape(entry_, calls.map(), calls.group())),
      needs_(find_needs()),
      as_shipped_(entry_.is_as_shipped()) {}

QueueNeeds GroupAlgorithm::find_needs() const {
  const MachineMap& map = calls_.map();
  QueueNeeds needs;
  needs.directions = entry_.algorithm->directions;
  if (!calls_.group().ranks_are_pes()) {
    if (map.cubes_per_sip() > 1) needs.directions |= kCubeGrid;                               // copies over cubes
    if (map.pes_per_cube > 1) needs.directions |= lacks_pes(map) ? kLocalPeers : kLocalLine;  // and over PEs
  }
  if (entry_.algorithm->links == nullptr) return needs;
  needs.links.ranks = links(1, 1);
  if (kind() == AlgorithmKind::kernel) return needs;
  const Scope tiles = calls_.scope();
  if (tiles != Scope::sip) needs.links.cubes = links(map.cube_w, map.cube_h);
  if (tiles == Scope::pe && map.pes_per_cube > 1) needs.links.pes = links(map.cube_w * map.pes_per_cube, map.cube_h);
  return needs;
}

std::vector<std::pair<std::int32_t, std::int32_t>> GroupAlgorithm::links(std::int32_t node_w,
                                                                         std::int32_t node_h) const {
  PlanRequest request = seen(calls_.machine());
  request.cube_w = node_w;
  request.cube_h = node_h;
  return entry_.links(std::move(request));
}

QueueNeeds GroupAlgorithm::needs_pe_to_pe(BoundCall& call) const {
  QueueNeeds needs = needs_;
  needs.links.pes = pe_links(call);
  needs.sparing = true;
  return needs;
}

const std::vector<std::pair<std::int32_t, std::int32_t>>& GroupAlgorithm::pe_links(BoundCall& call) const {
  try {
    return pe_messages(calls_.map(), calls_.group(), call)->links();
  } catch (const Error& error) {
    throw Error(fmt::format("algorithm '{}' {}", name(), error.what()));
  }
}

void GroupAlgorithm::check_schedule(const Schedule& schedule, const PlanRequest& request) const {
  if (schedule.nodes != request.nodes() || schedule.op != request.op) {
    throw Error(fmt::format("algorithm '{}': its schedule is {} on {} nodes, not {} on {}", entry_.name,
                            to_string(schedule.op), schedule.nodes, to_string(request.op), request.nodes()));
  }
  if (!entry_.is_built_in() && !entry_.schedule) {  // files are proved as they are read
    try {
      check(schedule);
      check_declared(schedule, links(request.cube_w, request.cube_h));
    } catch (const Error& error) {
      throw Error(fmt::format("algorithm '{}': its schedule is wrong: {}", entry_.name, error.what()));
    }
  }
}

Plan GroupAlgorithm::plan(const PlanRequest& request) const {
  Plan plan = entry_.plan(seen(request));
  check_schedule(*plan.schedule, request);
  if (request.op != CollectiveOp::send_recv || request.root < 0) return plan;
  for (std::int32_t node = 0; node < plan.schedule->nodes; ++node) {
    const bool idle = plan.schedule->lists(0)[static_cast<std::size_t>(node)].empty();
    if (node != request.root && node != request.peer && !idle)
      throw Error(fmt::format("algorithm '{}' passes ranks that make no call", name()));
  }
  return plan;
}

void check_serves(const AlgorithmEntry& entry, CollectiveOp op) {
  if (entry.algorithm->operations & bit(op)) return;
  throw Error(fmt::format("algorithm '{}' does not serve {}; it serves {}", entry.name, to_string(op),
                          served<CollectiveOp>(entry.algorithm->operations, kCollectiveOps)));
}

}  // namespace kernbench::ccl
