#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernbench {

/// Vertices of one cycle of a graph, in order; empty if it has none. next[v] lists the vertices that edges lead to from
/// v: the search is depth first, in the order of the vertices and of these lists.
template <class List>
std::vector<std::size_t> find_cycle(const std::vector<List>& next) {
  enum class Mark : std::uint8_t { fresh, open, done };
  struct Step {
    std::size_t at;
    typename List::const_iterator edge;  // to look at next
  };
  std::vector<Mark> marks(next.size(), Mark::fresh);
  std::vector<Step> path;
  const auto enter = [&](std::size_t vertex) {
    marks[vertex] = Mark::open;
    path.push_back({vertex, next[vertex].begin()});
  };
  for (std::size_t root = 0; root < next.size(); ++root) {
    if (marks[root] == Mark::fresh) enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.edge == next[step.at].end()) {
        marks[step.at] = Mark::done;
        path.pop_back();
        continue;
      }
      const std::size_t to = *step.edge++;
      if (marks[to] == Mark::fresh) {
        enter(to);
      } else if (marks[to] == Mark::open) {
        std::vector<std::size_t> cycle;
        auto first = std::find_if(path.begin(), path.end(), [&](const Step& other) { return other.at == to; });
        for (; first != path.end(); ++first) cycle.push_back(first->at);
        return cycle;
      }
    }
  }
  return {};
}

}  // namespace kernbench
