#include "sc_main/workloads/chakra/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "tlm/config/nearest.h"
#include "tlm/kernel/operations.h"
#include "tlm/observe/find_cycle.h"

namespace kernbench::chakra {
namespace {

using Edges = std::vector<std::vector<std::size_t>>;  // by vertex: those that wait for it

/// Vertices in an order that respects the edges, those of small `rank_of` first. Shorter than the graph: it has a
/// cycle.
template <class Key>
std::vector<std::size_t> order_of(const Edges& followers, std::vector<std::size_t> waits, const Key& key) {
  using Entry = std::pair<decltype(key(std::size_t{})), std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (std::size_t v = 0; v < waits.size(); ++v) {
    if (waits[v] == 0) ready.emplace(key(v), v);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t v = ready.top().second;
    ready.pop();
    order.push_back(v);
    for (const std::size_t next : followers[v]) {
      if (--waits[next] == 0) ready.emplace(key(next), next);
    }
  }
  return order;
}

/// One cycle, each vertex waiting for the next; the smallest begins.
std::vector<std::size_t> cycle_of(const Edges& followers) {
  std::vector<std::size_t> cycle = find_cycle(followers);
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

std::string kind_text(const Node& node) {
  if (node.op == CollectiveOp::barrier) return "barrier";
  return fmt::format("{} of {} B{}", to_string(node.op), node.bytes,
                     node.root ? fmt::format(", root {}", *node.root) : std::string());
}

std::string group_text(const std::string& name) {
  return name.empty() ? "the group of all ranks" : "group " + quote(name);
}

class Maker {
 public:
  Maker(std::vector<RankTrace> traces, const ProgramOptions& options, Problems& problems)
      : options_(options), problems_(problems) {
    program_.traces = std::move(traces);
    program_.groups.emplace_back(static_cast<std::size_t>(options.ranks));
    std::iota(program_.groups.front().begin(), program_.groups.front().end(), 0);
  }

  Program make() {
    const bool whole = problems_.empty();  // otherwise nodes are missing, and comparing would only repeat it
    const int ranks = static_cast<int>(program_.traces.size());
    if (ranks != options_.ranks) {
      problems_.add(program_.traces.back().where(),
                    fmt::format("the trace is of {} ranks, the machine has {} SIPs", ranks, options_.ranks),
                    fmt::format("try --set system.sips.count={}", ranks));
      return std::move(program_);
    }
    for (int rank = 0; rank < ranks; ++rank) depend(rank);
    if (!whole || !graphs_are_right_) return std::move(program_);
    collectives();
    transfers();
    if (problems_.empty()) put_in_order();
    return std::move(program_);
  }

 private:
  const RankTrace& trace(int rank) const { return program_.traces[static_cast<std::size_t>(rank)]; }
  const Node& node(int rank, std::size_t place) const { return trace(rank).nodes[place]; }
  void complain(int rank, const Node& node, const std::string& what, const std::string& hint = {}) {
    problems_.add(trace(rank).where(), fmt::format("{} {}", in_words(node), what), hint);
  }
  std::string elsewhere(int rank, std::size_t place) const {
    return fmt::format("{} of {}", in_words(node(rank, place)), trace(rank).file);
  }

  /// The graph of one rank: edges, and its nodes in order, ids of those that could go at once ascending.
  void depend(int rank) {
    const std::vector<Node>& nodes = trace(rank).nodes;
    std::map<std::uint64_t, std::size_t> places;
    for (std::size_t i = 0; i < nodes.size(); ++i) places.emplace(nodes[i].id, i);
    Edges& followers = program_.followers.emplace_back(nodes.size());
    std::vector<std::size_t>& waits = program_.waits.emplace_back(nodes.size(), 0);
    program_.communication_of.emplace_back(nodes.size(), Program::kNone);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const std::uint64_t id : nodes[i].after) {
        const auto found = places.find(id);
        const std::vector<std::uint64_t>& refused = trace(rank).refused;
        if (found == places.end() && std::find(refused.begin(), refused.end(), id) != refused.end()) continue;
        if (found == places.end()) {
          complain(rank, nodes[i], fmt::format("depends on node {}, which there is not", id));
          graphs_are_right_ = false;
        } else {
          followers[found->second].push_back(i);
          ++waits[i];
        }
      }
    }
    orders_.push_back(order_of(followers, waits, [&](std::size_t v) { return nodes[v].id; }));
    if (orders_.back().size() == nodes.size() || !graphs_are_right_) return;
    graphs_are_right_ = false;
    const std::vector<std::size_t> cycle = cycle_of(followers);
    std::vector<std::string> words;
    words.reserve(cycle.size() + 1);
    for (const std::size_t v : cycle) words.push_back(std::to_string(nodes[v].id));
    words.push_back(words.front());
    complain(rank, nodes[cycle.front()], fmt::format("waits for itself: {}", join(words, " after ")));
  }

  /// Ranks that a collective, or the other end of a transfer, is of; nothing if it cannot be.
  std::optional<std::vector<int>> members(int rank, const Node& node) {
    const std::vector<int>& all = program_.groups.front();
    std::vector<int> ranks = all;
    if (!node.group.empty()) {
      const auto& own = trace(rank).groups;
      const auto known = options_.groups.find(node.group);
      const auto named = own.find(node.group);
      if (known != options_.groups.end()) {
        ranks = known->second;
      } else if (named != own.end()) {
        ranks = named->second.empty() ? all : named->second;
      } else if (node.group != "0") {  // ASTRA-sim's name for all
        std::vector<std::string> names;
        for (const auto& [name, list] : options_.groups) names.push_back(name);
        for (const auto& [name, list] : own) names.push_back(name);
        complain(rank, node, fmt::format("is of group {}, which nobody defines", quote(node.group)),
                 names.empty() ? "--comm-group-configuration FILE defines groups, as {\"1\": [0, 1]}"
                               : "groups: " + join(names));
        return {};
      }
      for (const int each : ranks) {
        if (each >= 0 && each < options_.ranks) continue;
        complain(rank, node, fmt::format("is of group {}, which holds rank {}", quote(node.group), each),
                 fmt::format("there are ranks 0 to {}", options_.ranks - 1));
        return {};
      }
      if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size()) {
        complain(rank, node, fmt::format("is of group {}, which holds a rank twice", quote(node.group)));
        return {};
      }
    }
    if (std::find(node.dimensions.begin(), node.dimensions.end(), false) != node.dimensions.end()) {
      if (!node.group.empty() && ranks != all) {
        complain(rank, node, "has a group and an involved_dim that leaves dimensions out", "give one of them");
        return {};
      }
      return plane(rank, node);
    }
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return ranks;
    complain(rank, node, fmt::format("is of group {}, which does not hold rank {}", quote(node.group), rank));
    return {};
  }

  /// The ranks that differ from this one in the involved dimensions only.
  std::optional<std::vector<int>> plane(int rank, const Node& node) {
    const std::vector<int>& sizes = options_.dimensions;
    if (node.dimensions.size() != sizes.size()) {
      complain(rank, node,
               fmt::format("has an involved_dim of {} dimensions, and the machine's SIPs have {}",
                           node.dimensions.size(), sizes.size()));
      return {};
    }
    std::vector<int> ranks;
    for (int other = 0; other < options_.ranks; ++other) {
      int a = rank, b = other;
      bool same = true;
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (!node.dimensions[d] && a % sizes[d] != b % sizes[d]) same = false;
        a /= sizes[d];
        b /= sizes[d];
      }
      if (same) ranks.push_back(other);
    }
    return ranks;
  }

  std::size_t group_number(const std::vector<int>& ranks) {
    auto& groups = program_.groups;
    const auto found = std::find(groups.begin(), groups.end(), ranks);
    if (found != groups.end()) return static_cast<std::size_t>(found - groups.begin());
    groups.push_back(ranks);
    return groups.size() - 1;
  }

  /// The k-th collective of a group on one member is the k-th on all.
  void collectives() {
    struct Calls {
      std::string name;                             // of the group
      std::vector<std::vector<std::size_t>> nodes;  // by member
    };
    std::map<std::size_t, Calls> calls;  // by group
    for (int rank = 0; rank < options_.ranks; ++rank) {
      for (const std::size_t place : orders_[static_cast<std::size_t>(rank)]) {
        const Node& own = node(rank, place);
        if (own.kind != NodeKind::collective) continue;
        const auto ranks = members(rank, own);
        if (!ranks) {
          unknown_ = true;
          continue;
        }
        const std::size_t group = group_number(*ranks);
        Calls& entry = calls[group];
        entry.nodes.resize(ranks->size());
        if (entry.name.empty()) entry.name = own.group;
        const auto member = static_cast<std::size_t>(std::find(ranks->begin(), ranks->end(), rank) - ranks->begin());
        entry.nodes[member].push_back(place);
      }
    }
    if (unknown_) return;  // who calls what is not known: comparing would only repeat it
    for (const auto& [group, entry] : calls) match(group, entry.name, entry.nodes);
  }

  void match(std::size_t group, const std::string& name, const std::vector<std::vector<std::size_t>>& nodes) {
    const std::vector<int> ranks = program_.groups[group];
    std::size_t most = 0;  // the member with the most calls
    for (std::size_t m = 1; m < nodes.size(); ++m) {
      if (nodes[m].size() > nodes[most].size()) most = m;
    }
    const std::string of = group_text(group == 0 ? std::string() : name);
    for (std::size_t k = 0; k < nodes[most].size(); ++k) {
      const int first = ranks[0];
      for (std::size_t m = 0; m < nodes.size(); ++m) {
        if (k < nodes[m].size()) {
          if (m == 0 || k >= nodes[0].size()) continue;
          const Node &here = node(ranks[m], nodes[m][k]), &there = node(first, nodes[0][k]);
          if (kind_text(here) == kind_text(there)) continue;
          complain(ranks[m], here,
                   fmt::format("is {}, and {} is {}", kind_text(here), elsewhere(first, nodes[0][k]), kind_text(there)),
                   fmt::format("both are collective {} of {}", k, of));
          return;  // what follows would only repeat it
        }
        complain(ranks[most], node(ranks[most], nodes[most][k]),
                 fmt::format("is collective {} of {}, of which rank {} has {}", k, of, ranks[m], nodes[m].size()));
        return;
      }
      Communication communication;
      const Node& sample = node(first, nodes[0][k]);
      communication.op = sample.op;
      communication.group = group;
      communication.ranks = ranks;
      communication.bytes = sample.bytes;
      for (const auto& list : nodes) communication.nodes.push_back(list[k]);
      if (sample.root) {
        const auto root = std::find(ranks.begin(), ranks.end(), static_cast<int>(*sample.root));
        if (root == ranks.end()) {
          complain(first, sample, fmt::format("has root_rank {}, which {} does not hold", *sample.root, of));
          return;
        }
        communication.root = static_cast<int>(root - ranks.begin());
      }
      add(std::move(communication));
    }
  }

  void transfers() {
    using Key = std::tuple<int, int, std::uint64_t>;  // from, to, tag
    std::map<Key, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> pairs;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      for (const std::size_t place : orders_[static_cast<std::size_t>(rank)]) {
        const Node& own = node(rank, place);
        if (own.kind != NodeKind::send && own.kind != NodeKind::receive) continue;
        const bool sends = own.kind == NodeKind::send;
        std::int64_t other = own.peer;
        if (own.peer_is_member) {
          const auto ranks = members(rank, own);
          if (!ranks) continue;
          if (other >= static_cast<std::int64_t>(ranks->size())) {
            complain(rank, own, fmt::format("{} member {}", sends ? "sends to" : "receives from", other),
                     fmt::format("{} has members 0 to {}", group_text(own.group), ranks->size() - 1));
            continue;
          }
          other = (*ranks)[static_cast<std::size_t>(other)];
        }
        if (other >= options_.ranks || other == rank) {
          complain(rank, own, fmt::format("{} rank {}", sends ? "sends to" : "receives from", other),
                   fmt::format("give another rank, 0 to {}", options_.ranks - 1));
          continue;
        }
        const int peer = static_cast<int>(other);
        auto& [sent, received] = pairs[sends ? Key{rank, peer, own.tag} : Key{peer, rank, own.tag}];
        (sends ? sent : received).push_back(place);
      }
    }
    for (const auto& [key, lists] : pairs) {
      const auto& [from, to, tag] = key;
      const auto& [sent, received] = lists;
      for (std::size_t k = 0; k < std::max(sent.size(), received.size()); ++k) {
        if (k >= received.size()) {
          complain(from, node(from, sent[k]), fmt::format("has no receive on rank {} (tag {})", to, tag));
        } else if (k >= sent.size()) {
          complain(to, node(to, received[k]), fmt::format("has no send on rank {} (tag {})", from, tag));
        } else if (node(from, sent[k]).bytes != node(to, received[k]).bytes) {
          complain(to, node(to, received[k]),
                   fmt::format("receives {} B, and {} sends {} B", node(to, received[k]).bytes,
                               elsewhere(from, sent[k]), node(from, sent[k]).bytes));
        } else {
          Communication communication;
          communication.op = CollectiveOp::send_recv;
          communication.ranks = {from, to};
          communication.nodes = {sent[k], received[k]};
          communication.bytes = node(from, sent[k]).bytes;
          communication.eager = communication.bytes <= options_.eager_bytes;
          add(std::move(communication));
        }
      }
    }
  }

  /// Elements of a block: comm_size is what a rank puts in, which some operations cut into a block for each.
  void add(Communication communication) {
    const CollectiveOp op = communication.op;
    const bool cut = facts_of(op).in == Blocks::each;
    const std::size_t item = size_of(options_.dtype), blocks = cut ? communication.ranks.size() : 1;
    if (communication.bytes % (item * blocks) != 0) {
      const Node& own = node(communication.ranks[0], communication.nodes[0]);
      complain(communication.ranks[0], own,
               fmt::format("moves {} B, which are no whole number of {}{}", communication.bytes,
                           to_string(options_.dtype), cut ? fmt::format(" for each of {} ranks", blocks) : ""),
               "--dtype says what is moved");
      return;
    }
    communication.elements =
        !facts_of(op).has_data ? 1 : static_cast<std::int64_t>(communication.bytes / (item * blocks));
    program_.communications.push_back(std::move(communication));
  }

  /// All ranks' graphs as one, in which a communication is one vertex; of an eager transfer the receive is another.
  void put_in_order() {
    std::vector<Communication>& list = program_.communications;
    for (std::size_t c = 0; c < list.size(); ++c) {
      for (std::size_t m = 0; m < list[c].ranks.size(); ++m) communication_of(list[c], m) = c;
    }
    std::vector<std::pair<int, std::size_t>> alone;  // a vertex' rank and node; of communications a member's
    alone.reserve(list.size());
    for (const Communication& each : list) alone.emplace_back(each.ranks[0], each.nodes[0]);
    std::vector<std::vector<std::size_t>> vertices;
    std::vector<std::pair<std::size_t, std::size_t>> arrivals;  // an eager transfer and its receive
    for (int rank = 0; rank < options_.ranks; ++rank) {
      auto& own = vertices.emplace_back(program_.communication_of[static_cast<std::size_t>(rank)]);
      for (std::size_t place = 0; place < own.size(); ++place) {
        const bool apart =
            own[place] == Program::kNone || (list[own[place]].eager && node(rank, place).kind == NodeKind::receive);
        if (!apart) continue;
        if (own[place] != Program::kNone) arrivals.emplace_back(own[place], alone.size());
        own[place] = alone.size();
        alone.emplace_back(rank, place);
      }
    }
    Edges followers(alone.size());
    std::vector<std::size_t> waits(alone.size(), 0);
    for (std::size_t rank = 0; rank < vertices.size(); ++rank) {
      for (std::size_t place = 0; place < vertices[rank].size(); ++place) {
        for (const std::size_t next : program_.followers[rank][place]) {
          followers[vertices[rank][place]].push_back(vertices[rank][next]);
          ++waits[vertices[rank][next]];
        }
      }
    }
    for (const auto& [transfer, receive] : arrivals) {
      followers[transfer].push_back(receive);
      ++waits[receive];
    }
    const auto order = order_of(followers, waits, [&](std::size_t v) {
      return std::pair(node(alone[v].first, alone[v].second).id, alone[v].first);
    });
    if (order.size() < alone.size()) return refuse_cycle(cycle_of(followers), alone, list.size());
    std::vector<Communication> sorted;
    for (const std::size_t v : order) {
      if (v < list.size()) sorted.push_back(std::move(list[v]));
    }
    list = std::move(sorted);
    for (std::size_t c = 0; c < list.size(); ++c) {
      for (std::size_t m = 0; m < list[c].ranks.size(); ++m) communication_of(list[c], m) = c;
    }
  }

  void refuse_cycle(const std::vector<std::size_t>& cycle, const std::vector<std::pair<int, std::size_t>>& alone,
                    std::size_t communications) {
    std::vector<std::string> words;
    for (const std::size_t v : cycle) {
      if (v < communications) {
        const Communication& each = program_.communications[v];
        std::vector<std::string> parts;
        for (std::size_t m = 0; m < each.ranks.size(); ++m) {
          parts.push_back(fmt::format("{} of rank {}", node(each.ranks[m], each.nodes[m]).id, each.ranks[m]));
        }
        words.push_back(fmt::format("{} (nodes {})", each.transfer() ? "transfer" : to_string(each.op), join(parts)));
      } else {
        words.push_back(fmt::format("node {} of rank {}", node(alone[v].first, alone[v].second).id, alone[v].first));
      }
    }
    words.push_back("the first");
    const auto& [rank, place] = alone[cycle.front()];
    complain(rank, node(rank, place), fmt::format("can never begin: {}", join(words, " after ")),
             "a collective, and a send above --eager, begins when all that take part are ready");
  }

  std::size_t& communication_of(const Communication& each, std::size_t member) {
    return program_.communication_of[static_cast<std::size_t>(each.ranks[member])][each.nodes[member]];
  }

  const ProgramOptions& options_;
  Problems& problems_;
  Program program_;
  std::vector<std::vector<std::size_t>> orders_;  // by rank
  bool graphs_are_right_ = true, unknown_ = false;
};

}  // namespace

Program make_program(std::vector<RankTrace> traces, const ProgramOptions& options, Problems& problems) {
  return Maker(std::move(traces), options, problems).make();
}

}  // namespace kernbench::chakra
