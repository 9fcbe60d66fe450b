#include <fmt/format.h>

#include <functional>
#include <queue>

#include "runtime/pipeline/checker.h"
#include "tlm/config/nearest.h"
#include "tlm/observe/find_cycle.h"

namespace kernbench::pipeline {

/// Data flow alone.
bool Checker::check_cycles() {
  std::vector<std::set<std::size_t>> after(pipeline_.supertasks.size());
  const SuperTask* base = pipeline_.supertasks.data();
  for (const auto& [name, origin] : result_.origins) {
    if (origin.producer == nullptr) continue;
    for (const Task* consumer : consumers_[name])
      after[static_cast<std::size_t>(origin.producer - base)].insert(static_cast<std::size_t>(consumer - base));
  }
  const std::vector<std::size_t> cycle = find_cycle(after);
  if (cycle.empty()) return true;
  std::string text;
  for (const std::size_t task : cycle) text += name_of(base[task]) + " -> ";
  const Task& first = base[cycle.front()];
  add(first.where, fmt::format("{}: the data flow goes around: {}{}", first.path, text, name_of(first)),
      "no supertask may need what it makes");
  return false;
}

/// Members of an exchange wait for each other, so an exchange is one node. What goes around then waits for ever, in
/// whatever order the slots work.
void Checker::check_deadlocks() {
  const std::vector<SuperTask>& tasks = pipeline_.supertasks;
  std::vector<std::size_t> node_of(tasks.size());
  std::vector<std::vector<std::size_t>> members;
  std::map<std::string, std::size_t> node_of_group;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    std::size_t node = members.size();
    if (communicates(tasks[i]) && tasks[i].group.given)
      node = node_of_group.emplace(tasks[i].group.value, node).first->second;
    if (node == members.size()) members.emplace_back();
    members[node].push_back(i);
    node_of[i] = node;
  }
  std::vector<std::set<std::size_t>> after(members.size());
  std::vector<std::size_t> before(members.size(), 0);
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>> edges;  // by nodes: by tasks
  for (const auto& [name, origin] : result_.origins) {
    if (origin.producer == nullptr) continue;
    const auto from = static_cast<std::size_t>(origin.producer - tasks.data());
    for (const Task* consumer : consumers_[name]) {
      const auto to = static_cast<std::size_t>(consumer - tasks.data());
      if (!after[node_of[from]].insert(node_of[to]).second) continue;
      ++before[node_of[to]];
      edges[{node_of[from], node_of[to]}] = {from, to};
    }
  }
  const std::vector<std::size_t> cycle = find_cycle(after);
  if (!cycle.empty()) {
    const auto shown = [&](std::size_t node) {
      const Task& task = tasks[members[node].front()];
      return communicates(task) ? "group " + quote(task.group.value) : name_of(task);
    };
    std::string text;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto [from, to] = edges[{cycle[i], cycle[(i + 1) % cycle.size()]}];
      const std::string& slot = tasks[to].device.given ? tasks[to].device.value : tasks[from].device.value;
      text += fmt::format("{}{} waits for {} ({} needs {} on slot {})", i == 0 ? "" : ", ",
                          shown(cycle[(i + 1) % cycle.size()]), shown(cycle[i]), name_of(tasks[to]),
                          name_of(tasks[from]), quote(slot));
    }
    const Task& first = tasks[members[cycle.front()].front()];
    add(first.group.given ? first.group.where : first.where,
        fmt::format("{}: this order of communication must deadlock: {}", first.path, text),
        "let all slots take part in these exchanges in one order");
    return;
  }
  // The first that is ready, in the order of the document.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t node = 0; node < members.size(); ++node) {
    if (before[node] == 0) ready.push(node);
  }
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    result_.order.insert(result_.order.end(), members[node].begin(), members[node].end());
    for (const std::size_t next : after[node]) {
      if (--before[next] == 0) ready.push(next);
    }
  }
}

}  // namespace kernbench::pipeline
