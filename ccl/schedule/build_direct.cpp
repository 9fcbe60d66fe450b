#include <algorithm>
#include <map>
#include <utility>

#include "ccl/schedule/build.h"
#include "ccl/schedule/tasks.h"

namespace kernbench::ccl {
namespace {

/// Makes the messages of direct_schedule. A node sends to the next one first; `shift`: first to the one so many
/// places further.
class Direct {
 public:
  Direct(Operation operation, int nodes, int pieces, int shift, TaskGraph& graph)
      : operation_(operation), facts_(graph.facts()), nodes_(nodes), pieces_(pieces), shift_(shift), graph_(graph) {}

  std::int32_t make() {
    const bool whole = facts_.sums_for_all();
    for (int m = 0; m < pieces_; ++m) {
      for (std::int32_t j = 0; j < nodes_; ++j) part(j, whole ? m * nodes_ + j : m);
      send(m);
    }
    return whole ? pieces_ * nodes_ : pieces_;
  }

 private:
  /// What belongs to node j.
  void part(std::int32_t j, std::int32_t unit) {
    if (!facts_.combines() && !facts_.alike) {
      operation_.for_each_pair(j, nodes_, [&](std::int32_t from, std::int32_t to) {
        const std::int32_t b = graph_.add_block_between(from, to, unit, unit + 1);
        if (from != to) messages_.push_back({from, to, b, false, false});
      });
    } else if (!facts_.rooted() || j == operation_.root) {
      const std::int32_t b = graph_.add_block_of(j, unit, unit + 1);
      if (facts_.combines()) collect(j, b);
      if (facts_.alike) spread(j, b);
    }
  }

  struct Message {
    std::int32_t from, to, block;
    bool adds, after;  ///< `after`: once the block is complete where it comes from
  };

  void collect(std::int32_t at, std::int32_t block) {
    for (std::int32_t from = 0; from < nodes_; ++from) {
      if (from != at) messages_.push_back({from, at, block, true, false});
    }
  }
  void spread(std::int32_t from, std::int32_t block) {
    for (std::int32_t to = 0; to < nodes_; ++to) {
      if (to != from) messages_.push_back({from, to, block, false, facts_.combines()});
    }
  }

  /// Messages with links of their own start at one time: a node sends them in the order in which they are made here.
  void send(int m) {
    const auto place = [&](const Message& message) {
      const std::int32_t distance = (message.to - message.from + nodes_) % nodes_;
      return (distance - 1 + nodes_ - 1 - shift_) % (nodes_ - 1);
    };
    std::stable_sort(messages_.begin(), messages_.end(), [&](const Message& a, const Message& b) {
      return std::make_pair(a.after, place(a)) < std::make_pair(b.after, place(b));
    });
    std::map<std::int32_t, std::vector<std::int32_t>> adding;  // by block
    for (const Message& message : messages_) {
      const std::int64_t priority = std::int64_t{m} * nodes_ + place(message);
      const std::int32_t task = graph_.add(message.from, message.to, message.block, message.adds,
                                           message.after || !message.adds ? TaskGraph::kLevel + priority : priority);
      if (message.adds) adding[message.block].push_back(task);
      if (!message.after) continue;
      for (const std::int32_t before : adding[message.block]) graph_.order(before, task);
    }
    messages_.clear();
  }

  const Operation operation_;
  const OperationFacts& facts_;
  const int nodes_, pieces_, shift_;
  TaskGraph& graph_;
  std::vector<Message> messages_;  ///< of the piece that is being made
};

}  // namespace

Schedule direct_schedule(Operation operation, int nodes, int pieces, int lambda, bool ports, int variants) {
  Fabric fabric = Fabric::of(Graph::complete(nodes));
  fabric.assume(lambda, 1);
  Schedule schedule;
  for (int variant = 0; variant < variants; ++variant) {
    TaskGraph graph(fabric, operation.op);
    const std::int32_t units = Direct(operation, nodes, pieces, variant * (nodes - 1) / variants, graph).make();
    Schedule lists = assemble(graph, list_schedule(graph, ports), units);
    if (variant == 0) {
      schedule = std::move(lists);
      continue;
    }
    for (std::size_t i = 0; i < schedule.links.size(); ++i) {
      schedule.links[i].slots = std::max(schedule.links[i].slots, lists.links[i].slots);
    }
    schedule.variants.push_back(std::move(lists.steps));
  }
  schedule.root = operation.root;
  schedule.peer = operation.peer;
  return schedule;
}

}  // namespace kernbench::ccl
