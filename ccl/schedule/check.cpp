#include "ccl/schedule/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "ccl/contract/error.h"
#include "ccl/schedule/index.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

/// Contributions of one range of one input region: bit n is node n's.
using Set = std::vector<std::uint64_t>;

/// What a block holds on a node: empty, or a set of contributions of the same data.
struct Value {
  std::shared_ptr<const Set> set;  ///< null: nothing
  std::int32_t region = 0, begin = 0, end = 0, regions = 1;
  std::int64_t round = 0;
};

std::shared_ptr<const Set> only(std::int32_t node, std::int32_t nodes) {
  auto set = std::make_shared<Set>(index((nodes + 63) / 64), 0);
  (*set)[index(node / 64)] |= std::uint64_t{1} << (node % 64);
  return set;
}

/// What the operation wants in one region of `out` on one node.
struct Wanted {
  bool any = false;  ///< the region exists
  std::int32_t region = 0;
  Contributors from;
};

Wanted wanted(const Schedule& s, std::int32_t node, std::int32_t region) {
  const OperationFacts& op = facts_of(s.op);
  const bool elsewhere = (op.parties == Parties::to_root && node != s.root) ||
                         (op.parties == Parties::pairs && s.root >= 0 && node != s.peer);
  return {op.has_data && !elsewhere, op.in == Blocks::each ? node : 0,
          op.from({node, region, s.nodes, s.root, s.peer})};
}

class Checker {
 public:
  Checker(const Schedule& schedule, int slots) : s_(schedule), rounds_(schedule.last_round() + 2) {
    for (const ScheduleLink& link : s_.links) {
      for (const auto& [from, to] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
        queues_[{from, to}].slots = slots > 0 ? slots : link.slots;
      }
    }
  }

  void run() {
    check_structure();
    check_queues();
    start();
    while (advance()) {
    }
    check_end();
  }

 private:
  struct Message {
    Value value;
    std::int32_t units = 0;
  };
  struct Queue {
    std::int32_t slots = 1;
    std::deque<Message> messages;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("schedule '{}' ({}, {} nodes): {}", s_.algorithm, to_string(s_.op), s_.nodes, what));
  }
  std::string name(std::int32_t node, std::size_t step) const {
    const Step& at = s_.steps[index(node)][step];
    const bool local = at.kind == StepKind::copy || at.kind == StepKind::reduce;
    return fmt::format("step {} of node {} ({} of block {}, {} {})", step, node, to_string(at.kind), at.block,
                       local ? "block" : "node", at.peer);
  }
  std::int32_t units(std::int32_t block) const { return s_.blocks[index(block)].end - s_.blocks[index(block)].begin; }
  bool local(const Step& step) const { return step.kind == StepKind::copy || step.kind == StepKind::reduce; }

  void check_structure() const {
    const auto bad_node = [&](std::int32_t node) {
      return node != kEveryNode && node != kNobody && (node < 0 || node >= s_.nodes);
    };
    if (s_.period < 0) fail(fmt::format("its period is {}", s_.period));
    if (s_.outstanding < 0) fail(fmt::format("its outstanding is {}", s_.outstanding));
    for (const ScheduleLink& link : s_.links) {
      if (link.a < 0 || link.a >= link.b || link.b >= s_.nodes)
        fail(fmt::format("a link between nodes {} and {}; give two of its nodes, the lower one first", link.a, link.b));
      if (link.slots < 1)
        fail(fmt::format("the link between nodes {} and {} has {} slots; give at least 1", link.a, link.b, link.slots));
    }
    if (s_.steps.size() != index(s_.nodes)) fail(fmt::format("lists for {} nodes", s_.steps.size()));
    for (std::size_t b = 0; b < s_.blocks.size(); ++b) {
      const Block& block = s_.blocks[b];
      if (bad_node(block.contributor) || bad_node(block.holder)) fail(fmt::format("block {} names an unknown node", b));
      if (block.begin < 0 || block.begin >= block.end || block.end > s_.units) {
        fail(fmt::format("block {} is units {} to {} of {}", b, block.begin, block.end, s_.units));
      }
      if (block.regions != 1 && (!s_.bundles || s_.units != 1 || block.regions < 1 || block.holder != kNobody)) {
        fail(fmt::format("block {} is {} regions, which is for bundles that nobody stores", b, block.regions));
      }
      if ((block.contributor != kNobody &&
           (block.in_region < 0 || block.in_region + block.regions > regions_in(s_.op, s_.nodes))) ||
          (block.holder != kNobody && (block.out_region < 0 || block.out_region >= regions_out(s_.op, s_.nodes)))) {
        fail(fmt::format("block {} lies in an unknown region", b));
      }
    }
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      const auto& steps = s_.steps[index(node)];
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kind > StepKind::reduce)
          fail(fmt::format("step {} of node {} is of unknown kind {}", i, node, static_cast<int>(steps[i].kind)));
        const std::int32_t peers = local(steps[i]) ? static_cast<std::int32_t>(s_.blocks.size()) : s_.nodes;
        if (steps[i].block < 0 || index(steps[i].block) >= s_.blocks.size() || steps[i].peer < 0 ||
            steps[i].peer >= peers || (!local(steps[i]) && steps[i].peer == node)) {
          fail(fmt::format("{} names an unknown block or peer", name(node, i)));
        }
        if (steps[i].time < 0) fail(fmt::format("{} is at time {}", name(node, i), steps[i].time));
        const auto key = [&](const Step& at) { return s_.period > 0 ? at.time % s_.period : at.time; };
        if (i > 0 && key(steps[i]) < key(steps[i - 1])) fail(fmt::format("{} is out of order", name(node, i)));
      }
    }
  }

  void check_queues() const {
    for (const ScheduleLink& link : s_.links) {
      const std::int32_t granted = queues_.at({link.a, link.b}).slots;
      if (granted < link.slots) {
        fail(fmt::format(
            "the queues between nodes {} and {} need {} slots and have {}: with fewer, lists that count on a "
            "latency of {} ticks may deadlock; raise pe.ipcq.slots",
            link.a, link.b, link.slots, granted, link.lambda));
      }
    }
  }

  void start() {
    const std::size_t blocks = s_.blocks.size();
    values_.resize(index(s_.nodes) * blocks * index(rounds_));
    at_.assign(index(s_.nodes), 0);
    pass_.assign(index(s_.nodes), 0);
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      const auto mine = only(node, s_.nodes);
      for (std::size_t b = 0; b < blocks; ++b) {
        const Block& block = s_.blocks[b];
        if (block.contributor != kEveryNode && block.contributor != node) continue;
        for (std::int64_t m = 0; m < rounds_; ++m) {
          value(node, static_cast<std::int32_t>(b), m) = {mine,      block.in_region, block.begin,
                                                          block.end, block.regions,   m};
        }
      }
    }
  }

  Value& value(std::int32_t node, std::int32_t block, std::int64_t round) {
    return values_[(index(node) * s_.blocks.size() + index(block)) * index(rounds_) + index(round)];
  }

  std::int64_t passes() const { return s_.period > 0 ? rounds_ + s_.last_round() : rounds_; }

  /// Every node goes on until it must wait. False when nobody moved.
  bool advance() {
    bool moved = false;
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      const auto& steps = s_.steps[index(node)];
      while (pass_[index(node)] < passes()) {
        if (at_[index(node)] == steps.size()) {
          at_[index(node)] = 0;
          ++pass_[index(node)];
          moved = moved || !steps.empty();
          continue;
        }
        const Step& step = steps[at_[index(node)]];
        const std::int64_t round = round_of(node);
        if (round >= 0 && round < rounds_ && !execute(node, step, round)) break;
        ++at_[index(node)];
        moved = true;
      }
    }
    return moved;
  }

  bool execute(std::int32_t node, const Step& step, std::int64_t round) {
    Value& mine = value(node, step.block, round);
    if (local(step)) {
      const Value& other = value(node, step.peer, round);
      step.kind == StepKind::copy&& s_.bundles ? cut(node, step, mine, other)
                                               : take(node, step, mine, other, units(step.peer));
      return true;
    }
    const bool sends = step.kind == StepKind::send;
    const auto found = queues_.find(sends ? std::pair{node, step.peer} : std::pair{step.peer, node});
    if (found == queues_.end()) fail(fmt::format("{} uses a link that is not listed", where(node)));
    Queue& queue = found->second;
    if (sends) {
      if (!mine.set) fail(fmt::format("{} sends a block that it does not have", where(node)));
      if (queue.messages.size() >= index(queue.slots)) return false;
      queue.messages.push_back({mine, units(step.block)});
      return true;
    }
    if (queue.messages.empty()) return false;
    const Message message = queue.messages.front();
    queue.messages.pop_front();
    take(node, step, mine, message.value, message.units);
    return true;
  }

  bool ended(std::int32_t node) const { return pass_[index(node)] == passes(); }
  const Step& next(std::int32_t node) const { return s_.steps[index(node)][at_[index(node)]]; }
  /// Of the next step.
  std::int64_t round_of(std::int32_t node) const {
    return pass_[index(node)] - (s_.period > 0 ? next(node).time / s_.period : 0);
  }
  std::string where(std::int32_t node) const { return name(node, at_[index(node)]); }

  /// Who waits for whom, from the one that is least far: a message, or room for one, that never comes.
  [[noreturn]] void fail_stuck() const {
    std::int32_t node = kNobody;
    for (std::int32_t n = 0; n < s_.nodes; ++n) {
      if (!ended(n) && (node == kNobody || round_of(n) < round_of(node))) node = n;
    }
    constexpr std::size_t kMost = 5;
    std::vector<std::string> chain;
    std::set<std::int32_t> seen;
    for (; !ended(node) && seen.insert(node).second && chain.size() < kMost; node = next(node).peer)
      chain.push_back(fmt::format("{} waits in round {}", where(node), round_of(node)));
    if (ended(node)) chain.push_back(fmt::format("node {} has come to its end", node));
    fail(fmt::format("deadlock: {}", fmt::join(chain, ", ")));
  }

  /// The part of another block's value that this block is.
  void cut(std::int32_t node, const Step& step, Value& mine, const Value& other) const {
    const Block& block = s_.blocks[index(step.block)];
    if (!other.set) fail(fmt::format("{} takes a block that has no value", where(node)));
    if (block.in_region < other.region || block.in_region + block.regions > other.region + other.regions) {
      fail(fmt::format("{} is no part of the other block", where(node)));
    }
    mine = {other.set, block.in_region, block.begin, block.end, block.regions, other.round};
  }

  void take(std::int32_t node, const Step& step, Value& mine, const Value& other, std::int32_t other_units) const {
    if (!other.set) fail(fmt::format("{} takes a block that has no value", where(node)));
    if (other.regions != s_.blocks[index(step.block)].regions) {
      fail(fmt::format("{} gets {} regions", where(node), other.regions));
    }
    if (other_units != units(step.block)) {
      fail(fmt::format("{} expects {} units and gets {}", where(node), units(step.block), other_units));
    }
    const bool adds = step.kind == StepKind::receive_reduce || step.kind == StepKind::reduce;
    if (!adds) {
      mine = other;
      return;
    }
    if (!mine.set) fail(fmt::format("{} adds to a block that has no value", where(node)));
    if (mine.region != other.region || mine.begin != other.begin || mine.end != other.end ||
        mine.round != other.round) {
      fail(fmt::format("{} adds other data: units {} to {} of region {} to units {} to {} of region {}", where(node),
                       other.begin, other.end, other.region, mine.begin, mine.end, mine.region));
    }
    auto sum = std::make_shared<Set>(*mine.set);
    std::int32_t contributions = 0;
    for (std::size_t i = 0; i < sum->size(); ++i) {
      if (((*sum)[i] & (*other.set)[i]) && !s_.custom) fail(fmt::format("{} adds a contribution twice", where(node)));
      (*sum)[i] |= (*other.set)[i];
      contributions += __builtin_popcountll((*sum)[i]);
    }
    mine.set = std::move(sum);
    if (step.completes != (contributions == s_.nodes && !s_.custom)) {
      fail(fmt::format("{} has {} of {} contributions and is {}marked as complete", where(node), contributions,
                       s_.nodes, step.completes ? "" : "not "));
    }
  }

  void check_end() {
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      if (!ended(node)) fail_stuck();
    }
    for (const auto& [ends, queue] : queues_) {
      if (!queue.messages.empty()) {
        fail(fmt::format("{} messages from node {} to node {} are never received", queue.messages.size(), ends.first,
                         ends.second));
      }
    }
    if (s_.custom) return;
    std::vector<std::vector<std::int32_t>> by_region(index(regions_out(s_.op, s_.nodes)));
    for (std::size_t b = 0; b < s_.blocks.size(); ++b) {
      if (s_.blocks[b].holder != kNobody) {
        by_region[index(s_.blocks[b].out_region)].push_back(static_cast<std::int32_t>(b));
      }
    }
    for (std::size_t r = 0; r < by_region.size(); ++r) {
      std::stable_sort(by_region[r].begin(), by_region[r].end(), [&](std::int32_t a, std::int32_t b) {
        return s_.blocks[index(a)].begin < s_.blocks[index(b)].begin;
      });
      for (std::int32_t node = 0; node < s_.nodes; ++node)
        check_region(node, static_cast<std::int32_t>(r), by_region[r]);
    }
  }

  void check_region(std::int32_t node, std::int32_t region, const std::vector<std::int32_t>& blocks) {
    const Wanted want = wanted(s_, node, region);
    std::int32_t stored = 0;
    for (const std::int32_t b : blocks) {
      const Block& block = s_.blocks[index(b)];
      if (block.holder != kEveryNode && block.holder != node) continue;
      if (!want.any) fail(fmt::format("node {} stores block {}, but has no region {} of the output", node, b, region));
      if (block.begin != stored) {
        fail(fmt::format("region {} of the output of node {}: units from {} are {}", region, node,
                         std::min(stored, block.begin), block.begin > stored ? "missing" : "stored twice"));
      }
      stored = block.end;
      for (std::int64_t m = 0; m < rounds_; ++m) check_value(node, b, want, m);
    }
    if (want.any && stored != s_.units) {
      fail(fmt::format("region {} of the output of node {}: units from {} are missing", region, node, stored));
    }
  }

  void check_value(std::int32_t node, std::int32_t b, const Wanted& want, std::int64_t round) {
    const Block& block = s_.blocks[index(b)];
    const Value& got = value(node, b, round);
    const auto text = fmt::format("block {} on node {}", b, node);
    if (!got.set) fail(text + " never gets a value");
    if (got.region != want.region || got.begin != block.begin || got.end != block.end || got.round != round) {
      fail(fmt::format("{} is units {} to {} of region {} of the input, wanted units {} to {} of region {}", text,
                       got.begin, got.end, got.region, block.begin, block.end, want.region));
    }
    for (std::int32_t n = 0; n < s_.nodes; ++n) {
      const bool has = ((*got.set)[index(n / 64)] >> (n % 64)) & 1;
      if (has != want.from.has(n)) fail(fmt::format("{} {} node {}'s contribution", text, has ? "has" : "lacks", n));
    }
  }

  const Schedule& s_;
  const std::int64_t rounds_;
  std::map<std::pair<std::int32_t, std::int32_t>, Queue> queues_;
  std::vector<Value> values_;       ///< by node, block, round
  std::vector<std::size_t> at_;     ///< next step, by node
  std::vector<std::int64_t> pass_;  ///< over the list, by node
};

}  // namespace

void check(const Schedule& schedule, int slots) {
  Checker(schedule, slots).run();
  for (const auto& steps : schedule.variants) {
    Schedule variant = schedule;
    variant.variants.clear();
    variant.steps = steps;
    Checker(variant, slots).run();
  }
}

LinkLoad link_load(const Schedule& schedule) {
  std::map<std::pair<std::int32_t, std::int32_t>, double> load;
  LinkLoad result;
  const std::size_t variants = 1 + schedule.variants.size();
  for (std::size_t variant = 0; variant < variants; ++variant) {
    for (std::int32_t node = 0; node < schedule.nodes; ++node) {
      for (const Step& step : schedule.lists(variant)[index(node)]) {
        if (step.kind != StepKind::send) continue;
        const Block& block = schedule.blocks[index(step.block)];
        const double share = static_cast<double>(block.end - block.begin) * block.regions / schedule.units;
        result.total += share / static_cast<double>(variants);
        result.most = std::max(result.most, load[{node, step.peer}] += share / static_cast<double>(variants));
      }
    }
  }
  return result;
}

}  // namespace kernbench::ccl
