#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

std::int32_t hops(const Dimension& d, std::int32_t from, std::int32_t to) {
  const std::int32_t apart = std::abs(to - from);
  if (d.kind == Dimension::Kind::all_pairs) return from == to ? 0 : 1;
  return d.kind == Dimension::Kind::ring ? std::min(apart, d.size - apart) : apart;
}

/// The SIPs' dimensions, columns first: the nodes of a row are numbered one after the other, and with them what is to
/// go there. Throws std::invalid_argument where a line is too long for queues between all of it.
std::vector<Dimension> lines_of_sips(const PlanRequest& request) {
  auto dims = dimensions(request);
  dims.erase(std::remove_if(dims.begin(), dims.end(), [&](const Dimension& d) { return d.stride < request.cubes(); }),
             dims.end());
  std::reverse(dims.begin(), dims.end());
  for (const Dimension& d : dims) {
    if (d.size > kMostStraight) {
      throw std::invalid_argument(fmt::format(
          "a line of {} SIPs is too long for queues between all of them; at most {}", d.size, kMostStraight));
    }
  }
  return dims;
}

/// Assumed latency of a hop, in messages: what comes from near is worked on before what comes from far.
constexpr std::int32_t kHop = 64;

/// Calls f(a, b, hops) for every pair of nodes that exchange messages.
template <class F>
void each_pair(const PlanRequest& request, F&& f) {
  const std::int32_t n = request.cubes(), w = request.cube_w;
  const auto lines = lines_of_sips(request);
  for (std::int32_t node = 0; node < request.nodes(); ++node) {
    const std::int32_t cube = node % n;
    if (cube >= w) continue;
    for (std::int32_t other = cube + 1; other < n; ++other) {
      f(node, node - cube + other, std::abs(other % w - cube) + other / w);
    }
    for (const Dimension& d : lines) {
      for (std::int32_t to = d.place(node) + 1; to < d.size; ++to) {
        const std::int32_t there = d.at_place(node, to), way = hops(d, d.place(node), to);
        // Along the last line to all columns of cubes: the IO chiplet's crossbar leads there as fast.
        for (std::int32_t x = 0; x < w; ++x) {
          if (x == cube || &d == &lines.back()) f(node, there - cube + x, way);
        }
      }
    }
  }
}

/// Makes the messages of funnel_schedule.
class Funnel {
 public:
  Funnel(const PlanRequest& request, TaskGraph& graph)
      : request_(request), n_(request.cubes()), w_(request.cube_w), lines_(lines_of_sips(request)), graph_(graph) {}

  void make(bool to_columns) {
    const std::int32_t p = request_.nodes();
    State all{graph_.add_block({kEveryNode, kNobody, 0, kNoRegion, 0, 1, p}), 0, p, {}};
    up_column(all);
    std::vector<State> bundles{std::move(all)};
    for (const Dimension& d : lines_) {
      if (to_columns && &d == &lines_.back()) break;
      std::vector<State> parts;
      for (State& bundle : bundles) across(bundle, d, parts);
      bundles = std::move(parts);
    }
    for (State& bundle : bundles) to_columns ? leave(bundle) : hand_over(bundle);
  }

 private:
  /// What is to go to nodes [first, first + count), and which tasks bring it to a node.
  struct State {
    std::int32_t block = 0, first = 0, count = 1;
    std::map<std::int32_t, std::vector<std::int32_t>> ready;  ///< by node; of its own part first
  };

  bool at_top(std::int32_t node) const { return node % n_ < w_; }

  std::int32_t send(State& state, std::int32_t from, std::int32_t to, bool reduce) {
    const std::int32_t task = graph_.add(from, to, state.block, reduce, state.first);
    for (const std::int32_t before : state.ready[from]) graph_.order(before, task);
    return task;
  }

  /// Cubes hand over to the top one of their column.
  void up_column(State& all) {
    for (std::int32_t node = 0; node < request_.nodes(); ++node) {
      const std::int32_t top = node - node % n_ + node % w_;
      if (node != top) all.ready[top].push_back(send(all, node, top, true));
    }
  }

  /// A part of a bundle.
  State part(std::int32_t first, std::int32_t count, std::int32_t holder) {
    const Block block{kNobody, holder, first, holder == kNobody ? kNoRegion : 0, 0, 1, count};
    return {graph_.add_block(block), first, count, {}};
  }
  void cut(State& bundle, State& part, std::int32_t node) {
    const std::int32_t task = graph_.add_local(node, part.block, bundle.block, false);
    for (const std::int32_t before : bundle.ready[node]) graph_.order(before, task);
    part.ready[node] = {task};
  }

  /// What goes from a node to a part's next one.
  struct Message {
    std::int32_t distance = 0, from = 0, to = 0;
    State* part = nullptr;
  };
  /// What has the longest way goes first.
  void exchange(std::vector<Message> messages) {
    std::stable_sort(messages.begin(), messages.end(),
                     [](const Message& a, const Message& b) { return a.distance > b.distance; });
    for (const Message& message : messages) arrive(*message.part, message.from, message.to);
  }

  /// Parts of a bundle, one for each place of a line: there they are added up.
  void across(State& bundle, const Dimension& d, std::vector<State>& parts) {
    for (std::int32_t to = 0; to < d.size; ++to) {
      const std::int32_t first = bundle.first + to * d.stride;
      parts.push_back(part(first, d.stride, d.stride == 1 ? first : kNobody));
    }
    State* const made = &parts[parts.size() - static_cast<std::size_t>(d.size)];
    std::vector<Message> messages;
    for (const std::int32_t node : nodes_with(bundle, d)) {
      for (std::int32_t to = 0; to < d.size; ++to) cut(bundle, made[to], node);
      const std::int32_t own = d.place(node);
      for (std::int32_t i = 1; i < d.size; ++i) {
        const std::int32_t to = (own + i) % d.size;
        messages.push_back({hops(d, own, to), node, d.at_place(node, to), &made[to]});
      }
    }
    exchange(std::move(messages));
  }
  /// Nodes of top rows to which the lines before this one have brought the bundle.
  std::vector<std::int32_t> nodes_with(const State& bundle, const Dimension& d) const {
    const std::int32_t all = d.stride * d.size;
    std::vector<std::int32_t> nodes;
    for (std::int32_t node = 0; node < request_.nodes(); ++node) {
      const bool has = bundle.count == request_.nodes() || node / all == bundle.first / all;
      if (has && at_top(node)) nodes.push_back(node);
    }
    return nodes;
  }

  /// Adds what comes to a node's own part.
  void arrive(State& part, std::int32_t from, std::int32_t to) {
    const std::int32_t task = send(part, from, to, true);
    auto& ready = part.ready[to];
    graph_.order(ready.front(), task);
    ready.push_back(task);
  }

  /// Parts of a bundle, one for each owner: along the last line, or in the only SIP, to the top of the owner's column,
  /// where they are added up, and down.
  void leave(State& bundle) {
    const Dimension d = lines_.empty() ? Dimension{1, n_, Dimension::Kind::line} : lines_.back();
    const auto nodes = nodes_with(bundle, d);
    std::vector<State> parts;
    for (std::int32_t i = 0; i < bundle.count; ++i) parts.push_back(part(bundle.first + i, 1, bundle.first + i));
    std::vector<Message> messages;
    for (const std::int32_t node : nodes) {
      const std::int32_t own = d.place(node);
      for (State& part : parts) cut(bundle, part, node);
      for (std::int32_t i = 0; i < bundle.count; ++i) {
        const std::int32_t to = (own + 1 + i / n_) % d.size, cube = i % n_;
        const std::int32_t head = d.at_place(node, to) - node % n_ + cube % w_;
        State& part = parts[static_cast<std::size_t>(to * n_ + cube)];
        if (head != node) messages.push_back({hops(d, own, to), node, head, &part});
      }
    }
    exchange(std::move(messages));
    for (State& part : parts) {
      const std::int32_t owner = part.first, head = owner - owner % n_ + owner % w_;
      if (owner != head) send(part, head, owner, false);
    }
  }

  /// From the top row of a SIP to its cubes.
  void hand_over(State& bundle) {
    if (n_ == 1) return;
    const std::int32_t sip = bundle.first;
    for (std::int32_t cube = 0; cube < n_; ++cube) {
      State own = part(sip + cube, 1, sip + cube);
      for (std::int32_t x = 0; x < w_; ++x) cut(bundle, own, sip + x);
      const std::int32_t owner = sip + cube, above = sip + cube % w_;
      std::vector<std::int32_t> before = own.ready[owner];
      if (owner != above) before = {send(own, above, owner, false)};
      for (std::int32_t x = 0; x < w_; ++x) {
        if (sip + x == above) continue;
        const std::int32_t task = send(own, sip + x, owner, true);
        for (const std::int32_t first : before) graph_.order(first, task);
      }
    }
  }

  const PlanRequest& request_;
  const std::int32_t n_, w_;
  const std::vector<Dimension> lines_;
  TaskGraph& graph_;
};

}  // namespace

NodePairs funnel_links(const PlanRequest& request) {
  NodePairs pairs;
  each_pair(request, [&](std::int32_t a, std::int32_t b, std::int32_t) { pairs.emplace_back(a, b); });
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

Schedule funnel_schedule(const PlanRequest& request, bool to_columns) {
  Fabric fabric(request.nodes());
  each_pair(request, [&](std::int32_t a, std::int32_t b, std::int32_t way) {
    fabric.add(a, b, 1, a / request.cubes() != b / request.cubes());
    fabric.assume_way(fabric.arc(a, b), way * kHop);
  });
  TaskGraph graph(fabric, CollectiveOp::reduce_scatter);
  if (request.nodes() == 1) {
    graph.add_block({kEveryNode, 0, 0, 0, 0, 1});
  } else {
    Funnel(request, graph).make(to_columns);
  }
  return assemble(graph, list_schedule(graph), 1);
}

}  // namespace kernbench::ccl
