#include "ccl/schedule/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>

namespace kernbench::ccl {
namespace {

/// At equal times receives come first, then local steps, then sends.
int rank_of(StepKind kind) {
  if (kind == StepKind::send) return 2;
  return kind == StepKind::copy || kind == StepKind::reduce ? 1 : 0;
}

std::int64_t arrival(const TaskGraph& graph, const Times& times, std::int32_t task) {
  const Task& t = graph.tasks()[index(task)];
  const std::int64_t start = times.start[index(task)];
  return t.arc < 0 ? start : start + graph.ticks(task) + graph.fabric().link(t.arc).lambda;
}

/// Messages in flight at once on each arc: the slots of its queue. A send at the time of a receive comes after it.
std::vector<std::int32_t> slots_of(const TaskGraph& graph, const Times& times) {
  std::vector<std::vector<std::pair<std::int64_t, int>>> events(graph.fabric().links().size() * 2);  // time, +-1
  std::vector<std::int32_t> slots(events.size(), 0);
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    const auto task = static_cast<std::int32_t>(i);
    const std::int32_t arc = graph.tasks()[i].arc;
    if (arc < 0) continue;
    const std::int64_t from = times.start[i], to = arrival(graph, times, task);
    if (times.period == 0) {
      events[index(arc)].emplace_back(from, 1);
      events[index(arc)].emplace_back(to, -1);
    } else {
      // In the steady state: whole periods in flight, and the rest of one that may lie across the border.
      slots[index(arc)] += static_cast<std::int32_t>((to - from) / times.period);
      const std::int64_t a = from % times.period, b = to % times.period;
      if (a == b) continue;
      events[index(arc)].emplace_back(a, 1);
      events[index(arc)].emplace_back(b, -1);
      if (b < a) ++slots[index(arc)];
    }
  }
  for (std::size_t arc = 0; arc < events.size(); ++arc) {
    std::sort(events[arc].begin(), events[arc].end());
    std::int32_t in_flight = slots[arc], most = std::max(in_flight, 1);
    for (const auto& event : events[arc]) most = std::max(most, in_flight += event.second);
    slots[arc] = most;
  }
  return slots;
}

/// Sets Step::completes by replaying all lists in the order of time, counting contributions.
void mark_completions(const TaskGraph& graph, const Times& times, Schedule& schedule,
                      const std::vector<std::pair<std::int32_t, std::int32_t>>& step_of_task) {
  bool reduces = false;
  for (const Task& task : graph.tasks()) reduces = reduces || task.reduce;
  if (!reduces) return;
  const std::size_t blocks = graph.blocks().size();
  std::vector<std::int32_t> count(index(schedule.nodes) * blocks, 0);
  const auto at = [&](std::int32_t node, std::int32_t block) -> std::int32_t& {
    return count[index(node) * blocks + index(block)];
  };
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::int32_t from = graph.blocks()[b].contributor;
    for (std::int32_t node = 0; node < schedule.nodes; ++node) {
      if (from == kEveryNode || from == node) at(node, static_cast<std::int32_t>(b)) = 1;
    }
  }
  // (time, rank, task, is the send): sends take what the node has then.
  std::vector<std::tuple<std::int64_t, int, std::int32_t, bool>> events;
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    const auto task = static_cast<std::int32_t>(i);
    const bool local = graph.tasks()[i].arc < 0;
    if (!local) events.emplace_back(times.start[i], 2, task, true);
    events.emplace_back(arrival(graph, times, task), local ? 1 : 0, task, false);
  }
  std::sort(events.begin(), events.end());
  std::vector<std::int32_t> carried(graph.tasks().size(), 0);
  for (const auto& [time, rank, task, sends] : events) {
    const Task& t = graph.tasks()[index(task)];
    if (sends) {
      carried[index(task)] = at(t.from, t.block);
      continue;
    }
    const std::int32_t brought = t.arc < 0 ? at(t.to, t.source) : carried[index(task)];
    std::int32_t& now = at(t.to, t.block);
    now = t.reduce ? now + brought : brought;
    const auto& [node, step] = step_of_task[index(task)];
    schedule.steps[index(node)][index(step)].completes = t.reduce && now == schedule.nodes;
  }
}

}  // namespace

std::int32_t Fabric::add(std::int32_t a, std::int32_t b, std::int32_t width, bool between_sips, std::int32_t resource) {
  const auto number = static_cast<std::int32_t>(links_.size());
  if (a > b) std::swap(a, b);
  links_.push_back({a, b, width, resource < 0 ? resources_++ : resource, 0, between_sips});
  adjacency_[index(a)].emplace_back(b, 2 * number);
  adjacency_[index(b)].emplace_back(a, 2 * number + 1);
  return number;
}

std::int32_t Fabric::arc(std::int32_t from, std::int32_t to) const {
  for (const auto& [other, arc] : adjacency_[index(from)]) {
    if (other == to) return arc;
  }
  throw std::invalid_argument(fmt::format("no link between nodes {} and {}", from, to));
}

void Fabric::assume(std::int32_t chunks, std::int32_t units) {
  for (Link& link : links_) link.lambda = chunks * units * link.width;
}

void Fabric::assume_way(std::int32_t arc, std::int32_t ticks) { links_[index(arc / 2)].lambda = ticks; }

void Fabric::assume_ticks(std::int32_t sip, std::int32_t cube) {
  for (Link& link : links_) link.lambda = link.between_sips ? sip : cube;
}

Fabric Fabric::of(const Graph& graph) {
  Fabric fabric(graph.nodes);
  for (const Graph::Edge& edge : graph.edges) fabric.add(edge.a, edge.b);
  return fabric;
}

std::int32_t TaskGraph::add_block(const Block& block) {
  blocks_.push_back(block);
  return static_cast<std::int32_t>(blocks_.size() - 1);
}

std::int32_t TaskGraph::add_block_of(std::int32_t owner, std::int32_t begin, std::int32_t end) {
  return add_block({facts().combines() ? kEveryNode : owner, facts().alike ? kEveryNode : owner,
                    facts().in == Blocks::each ? owner : 0, facts().out == Blocks::each ? owner : 0, begin, end});
}

std::int32_t TaskGraph::add_block_between(std::int32_t from, std::int32_t to, std::int32_t begin, std::int32_t end) {
  return add_block({from, to, facts().in == Blocks::each ? to : 0, facts().out == Blocks::each ? from : 0, begin, end});
}

std::int32_t TaskGraph::add(std::int32_t from, std::int32_t to, std::int32_t block, bool reduce,
                            std::int64_t priority) {
  tasks_.push_back({fabric_.arc(from, to), from, to, block, 0, reduce, priority, 0});
  return static_cast<std::int32_t>(tasks_.size() - 1);
}

std::int32_t TaskGraph::add_local(std::int32_t node, std::int32_t block, std::int32_t source, bool reduce) {
  tasks_.push_back({-1, node, node, block, source, reduce, 0, 0});
  return static_cast<std::int32_t>(tasks_.size() - 1);
}

std::vector<std::int32_t> TaskGraph::reduce_up(const Tree& tree, std::int32_t block, std::int64_t base) {
  const auto order = tree.top_down();
  const auto depth = tree.depths();
  std::vector<std::vector<std::int32_t>> arriving(tree.parent.size());
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    if (*v == tree.root) continue;
    const int parent = tree.parent[index(*v)];
    const std::int32_t task = add(*v, parent, block, true, base - depth[index(*v)] * kLevel);
    for (const std::int32_t below : arriving[index(*v)]) this->order(below, task);
    arriving[index(parent)].push_back(task);
  }
  return arriving[index(tree.root)];
}

void TaskGraph::up_and_down(const Tree& tree, std::int32_t block, std::int64_t up, std::int64_t down) {
  std::vector<std::int32_t> complete;
  if (facts().combines()) complete = reduce_up(tree, block, up);
  if (facts().alike) copy_down(tree, block, down, complete);
}

void TaskGraph::copy_down(const Tree& tree, std::int32_t block, std::int64_t base,
                          const std::vector<std::int32_t>& before) {
  const auto order = tree.top_down();
  const auto height = tree.heights(order);
  std::vector<std::int32_t> arriving(tree.parent.size(), -1);
  for (const int v : order) {
    if (v == tree.root) continue;
    const int parent = tree.parent[index(v)];
    const std::int32_t task = add(parent, v, block, false, base - height[index(v)] * kLevel);
    arriving[index(v)] = task;
    if (parent != tree.root) {
      this->order(arriving[index(parent)], task);
    } else {
      for (const std::int32_t up : before) this->order(up, task);
    }
  }
}

void TaskGraph::along(const std::vector<std::int32_t>& path, std::int32_t block, std::int64_t base) {
  std::int32_t previous = -1;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const auto left = static_cast<std::int64_t>(path.size() - 1 - i);
    const std::int32_t task = add(path[i], path[i + 1], block, false, base - left * kLevel);
    if (previous >= 0) order(previous, task);
    previous = task;
  }
}

void TaskGraph::hold_back_groups() {
  // Priorities of a group lie less than kSecond below its base: a hop of a tree counts kLevel.
  const auto group_of = [](const Task& task) { return (task.priority + kSecond) / kGroup; };
  std::map<std::int64_t, std::vector<std::int64_t>> loads;  // by group, then by arc
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].arc < 0) continue;
    auto& load = loads[group_of(tasks_[i])];
    load.resize(2 * fabric_.links().size());
    load[index(tasks_[i].arc)] += ticks(static_cast<std::int32_t>(i));
  }
  std::map<std::int64_t, std::int64_t> releases;
  std::vector<std::int64_t> before(2 * fabric_.links().size(), 0);
  std::int64_t last_begin = 0;  // when the busiest link comes to the group before
  for (const auto& [group, load] : loads) {
    releases[group] = last_begin;
    last_begin = *std::max_element(before.begin(), before.end());
    std::transform(load.begin(), load.end(), before.begin(), before.begin(), std::plus<>());
  }
  for (Task& task : tasks_) task.release = releases[group_of(task)];
}

std::int64_t TaskGraph::ticks(std::int32_t task) const {
  const Task& t = tasks_[index(task)];
  if (t.arc < 0) return 0;
  const Block& block = blocks_[index(t.block)];
  return std::int64_t{block.end - block.begin} * fabric_.link(t.arc).width;
}

Schedule assemble(const TaskGraph& graph, const Times& times, std::int32_t units) {
  const Fabric& fabric = graph.fabric();
  Schedule schedule;
  schedule.op = graph.op();
  schedule.nodes = fabric.nodes();
  schedule.units = units;
  schedule.period = times.period;
  schedule.length = times.length;
  schedule.blocks = graph.blocks();
  schedule.bundles =
      std::any_of(schedule.blocks.begin(), schedule.blocks.end(), [](const Block& block) { return block.regions > 1; });
  schedule.steps.resize(index(schedule.nodes));

  // Entries by node, each with the task whose effect on a value it is (sends: -1).
  std::vector<std::vector<std::pair<Step, std::int32_t>>> lists(index(schedule.nodes));
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    const Task& task = graph.tasks()[i];
    const auto number = static_cast<std::int32_t>(i);
    const std::int64_t there = arrival(graph, times, number);
    if (task.arc < 0) {
      lists[index(task.to)].push_back(
          {{there, task.source, task.block, task.reduce ? StepKind::reduce : StepKind::copy, false}, number});
    } else {
      lists[index(task.from)].push_back({{times.start[i], task.to, task.block, StepKind::send, false}, -1});
      lists[index(task.to)].push_back(
          {{there, task.from, task.block, task.reduce ? StepKind::receive_reduce : StepKind::receive_copy, false},
           number});
    }
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> step_of_task(graph.tasks().size());
  for (std::int32_t node = 0; node < schedule.nodes; ++node) {
    auto& list = lists[index(node)];
    const auto key = [&](const Step& step) {
      return std::make_pair(times.period > 0 ? step.time % times.period : step.time, rank_of(step.kind));
    };
    std::stable_sort(list.begin(), list.end(),
                     [&](const auto& a, const auto& b) { return key(a.first) < key(b.first); });
    auto& steps = schedule.steps[index(node)];
    steps.reserve(list.size());
    for (const auto& [step, task] : list) {
      if (task >= 0) step_of_task[index(task)] = {node, static_cast<std::int32_t>(steps.size())};
      steps.push_back(step);
    }
  }
  mark_completions(graph, times, schedule, step_of_task);

  const auto slots = slots_of(graph, times);
  std::vector<bool> used(fabric.links().size(), false);
  for (const Task& task : graph.tasks()) {
    if (task.arc >= 0) used[index(task.arc / 2)] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const Fabric::Link& link = fabric.links()[i];
    schedule.links.push_back({link.a, link.b, link.width, link.lambda, std::max(slots[2 * i], slots[2 * i + 1])});
  }
  std::sort(schedule.links.begin(), schedule.links.end(), [](const ScheduleLink& x, const ScheduleLink& y) {
    return std::make_pair(x.a, x.b) < std::make_pair(y.a, y.b);
  });
  return schedule;
}

}  // namespace kernbench::ccl
