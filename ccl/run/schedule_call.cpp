#include "ccl/run/schedule_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ccl/contract/call_keys.h"
#include "ccl/run/call_program.h"
#include "ccl/schedule/plan.h"

namespace kernbench::ccl {
namespace {

bool holds(const Block& block, std::int32_t node) { return block.holder == kEveryNode || block.holder == node; }

}  // namespace

/// Goes on from what has been planned to choose this algorithm, if it has been.
void ScheduleBinder::plan(BoundCall& call) const {
  if (!call.refusal.empty()) throw Error(call.refusal);
  if (call.ready) return;
  auto ready = std::make_shared<ExecutionPlan>(ExecutionPlan{call.maps, nullptr, call.lanes});
  if (call.lanes) {
    if (!call.plan.schedule) call.plan = algorithm_.plan(call.request);
    const Schedule& schedule = *call.plan.schedule;
    ready->schedule = call.plan.schedule;
    if (schedule.bundles) ready->lanes->bundle(queues_.map(), *call.maps);
    const std::int64_t slot = queues_.group().queue.slot_bytes;
    ready->lanes->cut(*call.maps, schedule, message_limit(algorithm_.entry().parameters, slot, slot), call.plan.rounds);
  }
  call.ready = std::move(ready);
}

std::vector<NodeProgram> ScheduleBinder::programs(const ExecutionPlan& plan, std::int32_t node) const {
  const CallMaps& maps = *plan.maps;
  std::vector<NodeProgram> made;
  for (std::size_t variant = 0; variant <= plan.schedule->variants.size(); ++variant) {
    made.push_back(make_program(*plan.schedule, node, variant, [&](std::int32_t peer) {
      return queues_.direction(maps.level, maps.nodes_per_rank(), node, peer);
    }));
  }
  return made;
}

/// Bytes that reach a node from other ranks after its launch, at least: all but what its receive rings can hold before.
/// A whole ring of each lane and sender, however little that one sends: safe, not tight. Where rounds take turns at
/// several lists, a block counts as often as every one of them receives it.
std::int64_t ScheduleBinder::to_come(const ExecutionPlan& plan, std::int32_t node, std::size_t item) const {
  const Schedule& schedule = *plan.schedule;
  const std::int32_t mine = plan.maps->nodes_per_rank();
  std::map<std::int32_t, std::int64_t> messages;  // by block: so often each lane receives its part
  std::set<std::int32_t> senders;
  for (std::size_t variant = 0; variant <= schedule.variants.size(); ++variant) {
    std::map<std::int32_t, std::int64_t> list;
    for (const Step& step : schedule.lists(variant)[static_cast<std::size_t>(node)]) {
      const bool received = step.kind == StepKind::receive_copy || step.kind == StepKind::receive_reduce;
      if (!received || step.peer / mine == node / mine) continue;
      ++list[step.block];
      senders.insert(step.peer);
    }
    if (variant == 0) messages = list;
    for (auto& [block, count] : messages) count = std::min(count, list[block]);
  }
  std::int64_t rounds = 0, elements = 0;
  for (const auto& [id, lane] : plan.lanes->all()) rounds += lane.rounds();
  for (const auto& [number, count] : messages) {
    const Block& block = schedule.blocks[static_cast<std::size_t>(number)];
    const std::int64_t part = plan.maps->elements * (block.end - block.begin) / schedule.units * block.regions;
    elements += count * std::max<std::int64_t>(0, part - rounds);  // a round's borders are whole elements
  }
  const std::size_t rings = senders.size() * plan.lanes->all().size();
  return std::max<std::int64_t>(0, elements * static_cast<std::int64_t>(item) -
                                       static_cast<std::int64_t>(rings * queues_.group().queue.ring_bytes()));
}

RankCall ScheduleBinder::bind(const CallTensors& tensors, BoundCall& bound) const {
  plan(bound);
  const CollectiveCall& call = tensors.call;
  const int rank = tensors.rank;
  RankCall mine;
  mine.plan = bound.ready;
  mine.in_place = tensors.in_place;
  const CallMaps& maps = *mine.plan->maps;
  if (maps.elements == 0) return mine;
  mine.first_node = rank * maps.nodes_per_rank();
  for (std::int32_t n = 0; n < maps.nodes_per_rank(); ++n) {
    const std::int32_t node = mine.first_node + n;
    mine.programs.push_back(programs(*mine.plan, node));
    mine.to_come += to_come(*mine.plan, node, size_of(call.dtype));
    if (call.op == CollectiveOp::gather && rank != call.root) {
      for (NodeProgram& program : mine.programs.back()) {
        for (NodeProgram::LocalBlock& block : program.blocks) block.holds = false;
      }
      mine.spreads.emplace_back();
      continue;
    }
    std::set<std::int32_t> written;
    for (const Block& block : mine.plan->schedule->blocks) {
      if (holds(block, node)) written.insert(mine.plan->lanes->out_region(block));
    }
    const bool idle = mine.in_place && mine.plan->schedule->nodes == 1;
    mine.spreads.push_back(idle || maps.level == NodeLevel::pe
                               ? Spread{}
                               : make_spread(queues_.map(), maps, *mine.plan->lanes, n,
                                             {written.begin(), written.end()}, size_of(call.dtype)));
  }
  return mine;
}

std::vector<std::pair<int, int>> RankCall::targets() const {
  std::set<std::pair<int, int>> found;
  for (std::size_t n = 0; n < programs.size(); ++n) {
    if (!programs[n].front().empty()) {
      const CallMaps& maps = *plan->maps;
      const int node = static_cast<int>(n), cube = maps.cube_of(node);
      for (const auto& [id, lane] : plan->lanes->all()) {
        found.emplace(maps.level == NodeLevel::rank ? id.first : cube,
                      maps.level == NodeLevel::pe ? node % maps.pes : id.second);
      }
    }
    for (const auto& [pe, role] : spreads[n].roles) found.insert(pe);
  }
  return {found.begin(), found.end()};
}

RankCall::Part RankCall::part_of(int cube, int pe) const {
  const CallMaps& maps = *plan->maps;
  const int node = maps.level == NodeLevel::rank ? 0 : maps.level == NodeLevel::cube ? cube : cube * maps.pes + pe;
  Part part;
  part.node = static_cast<std::size_t>(node);
  const std::vector<NodeProgram>& lists = programs[part.node];
  const std::map<LaneId, Lane>& lanes = plan->lanes->all();
  const auto lane = lanes.find(lane_of(maps, cube, pe));
  if (lane == lanes.end() || lists.front().empty()) return part;
  const auto number = static_cast<std::size_t>(std::distance(lanes.begin(), lane));
  part.lane = &lane->second;
  part.program = &lists[number % lists.size()];
  return part;
}

void RankCall::run(Tl& tl) const {
  const int cube = static_cast<int>(tl.program_id(1)), pe = static_cast<int>(tl.program_id(0));
  const Part part = part_of(cube, pe);
  Verbs verbs(tl, plan->maps->contributions);
  if (part.lane != nullptr) {
    Executor(*plan, *part.program, *part.lane, first_node + static_cast<std::int32_t>(part.node), in_place, verbs)
        .run();
  }
  spread(spreads[part.node], verbs, cube, pe);
}

namespace {

/// Runs of a region that lie in [begin, begin + count).
std::uint64_t runs_in(const RegionMap& map, std::int64_t begin, std::int64_t count) {
  if (count <= 0 || map.empty()) return 0;
  const auto ends_after = [](std::int64_t element, const Run& run) { return element < run.end(); };
  const auto first = std::upper_bound(map.begin(), map.end(), begin, ends_after);
  const auto last = std::upper_bound(first, map.end(), begin + count - 1, ends_after);
  return static_cast<std::uint64_t>(last - first) + (last == map.end() ? 0 : 1);
}

/// Of the regions of a side: one that a lane works on may be of the other side only.
std::uint64_t runs_of(const std::vector<RegionMap>& regions, std::int32_t region, const Lane::Interval& interval) {
  const std::size_t number = regions.size() == 1 ? 0 : static_cast<std::size_t>(region);
  return number < regions.size() ? runs_in(regions[number], interval.begin, interval.count) : 0;
}

}  // namespace

/// 16 B for a step: kind and flags, queue, block, other block, stage, as a 128 bit instruction has room for (such as
/// those of NVIDIA's GPUs from Volta on). 32 B for a block (regions, units, who has it), 24 B for an interval of a
/// lane, 32 B for a segment, 16 B for each run of elements with one address (address and count), on either side.
std::uint64_t RankCall::bytes(int cube, int pe) const {
  constexpr std::uint64_t kStep = 16, kBlock = 32, kInterval = 24, kSegment = 32, kRun = 16;
  const Part part = part_of(cube, pe);
  std::uint64_t bytes = kProgramHeaderBytes;
  if (part.lane != nullptr) {
    const CallMaps& maps = *plan->maps;
    bytes += kStep * part.program->entries.size() + kBlock * part.program->blocks.size() +
             kSegment * part.lane->segments.size() + kInterval * part.lane->bundle.size();
    for (const auto& [region, intervals] : part.lane->regions) {
      bytes += kInterval * intervals.size();
      for (const Lane::Interval& interval : intervals) {
        bytes +=
            kRun * (runs_of(maps.in[part.node], region, interval) + runs_of(maps.out[part.node], region, interval));
      }
    }
  }
  const auto role = spreads[part.node].roles.find({cube, pe});
  if (role == spreads[part.node].roles.end()) return bytes;
  bytes += kBlock;
  for (const auto& parts : role->second.parts) bytes += kRun * parts.size();
  return bytes;
}

}  // namespace kernbench::ccl
