#include "ccl/schedule/estimate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ccl/contract/grid.h"
#include "ccl/schedule/earliest.h"
#include "ccl/schedule/index.h"
#include "ccl/schedule/machine.h"
#include "ccl/schedule/numbered.h"
#include "ccl/schedule/under_way.h"

namespace kernbench::ccl {
namespace {

/// Runs lists against clocks. Slots are those the machine has.
class DataFlow {
 public:
  DataFlow(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds, std::int64_t all_rounds)
      : s_(schedule),
        r_(request),
        variants_(separate_variants(schedule)),
        count_(schedule.nodes * variants_),
        lanes_(std::max(request.lanes / variants_, 1)),
        rounds_(rounds) {
    const std::int64_t regions = std::max(regions_in(s_.op, s_.nodes), regions_out(s_.op, s_.nodes));
    unit_bytes_ = static_cast<double>(r_.bytes) / static_cast<double>(regions * all_rounds * s_.units * variants_);
    cubes_ = std::max(s_.nodes / std::max(r_.ranks, 1), 1);
    for (std::int32_t first = 0; first < count_; first += s_.nodes) {
      for (const ScheduleLink& link : s_.links) {
        for (const auto& [a, b] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) add_queue(first, a, b);
      }
    }
    nodes_.resize(index(count_));
    for (std::int32_t node = 0; node < count_; ++node) link_steps(node);
  }

  /// Lanes that limit what is outstanding have lists alike, of which the first stands for all.
  static std::int32_t separate_variants(const Schedule& schedule) {
    return schedule.outstanding > 0 ? 1 : static_cast<std::int32_t>(1 + schedule.variants.size());
  }

  /// Of all rounds: what the busiest link takes for its messages.
  double least(std::int64_t rounds) const {
    std::vector<double> loads(links_.size(), 0);
    for (const Node& node : nodes_) {
      for (const Work& work : node.steps) {
        if (!work.sends) continue;
        const Queue& queue = queues_[index(work.queue)];
        for (const std::int32_t id : queue.resources) {
          const Link& link = links_[index(id)];
          if (link.bytes_per_second == queue.cost->bytes_per_second)  // not columns
            loads[index(id)] += work.bytes / link.bytes_per_second + link.message_seconds;
        }
      }
    }
    const auto most = std::max_element(loads.begin(), loads.end());
    return most == loads.end() ? 0 : *most * static_cast<double>(rounds);
  }

  double run() {
    for (std::int32_t node = 0; node < count_; ++node) issue(node);
    while (!events_.empty()) {
      const auto [time, what] = events_.pop();
      if (what < 0) {
        pass(flights_[-what - 1], -what - 1, time);
      } else {
        execute(what);
      }
    }
    for (std::int32_t node = 0; node < count_; ++node) {
      if (nodes_[index(node)].left > 0)
        throw std::invalid_argument("the lists deadlock with the queue slots there are");
    }
    return end_;
  }

 private:
  enum Kind : std::int64_t { kCubeLink, kSipLink, kPortOut, kPortIn, kColumnsOut, kColumnsIn };
  /// A step of a round.
  struct Op {
    std::int32_t step = 0, round = 0;
    double issued = 0;
  };
  /// Ops of one end of a queue, in order.
  struct Line {
    std::int32_t node = 0;
    Ring<Op> ops;
    bool due = false;  ///< the first is among the events
    Span start;        ///< of the first, if it is due
  };
  struct Queue {
    const LevelCost* cost = nullptr;
    double hop_seconds = 0, pass_seconds = 0;
    std::vector<std::int32_t> resources;  ///< links on the way, and ports
    std::size_t links = 1;                ///< of the way
    std::size_t slots = 1;                ///< that have never been used
    Ring<Span> arrivals, freed;           ///< messages that have not been received, slots that have not been used since
    Line ends[2];                         ///< sends, receives
    double way() const { return hop_seconds + pass_seconds * static_cast<double>(links - 1); }
  };
  struct Link {
    double bytes_per_second = 0, message_seconds = 0;
    bool between = false;  ///< one of several of a way, which take time from one to the next
    double free = 0;
  };
  /// A step of a node's list.
  struct Work {
    std::int32_t queue = -1;               ///< -1: local
    std::int32_t before = -1, other = -1;  ///< the steps whose values it needs
    std::int32_t ops = 1;                  ///< what PE_CPU issues for it
    bool sends = false, adds = false;
    std::int64_t stage = 0;
    double bytes = 0;                 ///< of its block
    double engine_seconds = 0;        ///< that a lane's port takes
    std::vector<std::int32_t> after;  ///< those that need its value
  };
  /// Of a step in a round; below 0: not yet.
  struct Value {
    Span got{-1, -1}, ready{-1, -1};
  };
  struct Node {
    std::vector<Work> steps;
    std::size_t at = 0;  ///< what is issued next
    std::int64_t pass = 0;
    double issued = 0;
    const Line* blocked = nullptr;
    Rounds<Value> values;
    Value& value(std::int32_t step, std::int32_t round) { return values.at(index(round), index(step)); }
    void done(std::int32_t round) {
      --left;
      values.done(index(round));
    }
    Ring<Op> sums;           ///< of the math engine, in order
    Span math;               ///< when it is free
    bool sums_full = false;  ///< what keeps the node from issuing
    std::int64_t left = 0;   ///< ops that have not been done
    Span ports[2];           ///< of a lane: when it is free to send, to receive
  };

  /// A message on its way over several links.
  struct Flight {
    std::int32_t queue = 0;
    std::size_t link = 0;
    double bytes = 0;
    double takes = 0;  ///< on a link
    double last = 0;   ///< when the last lane has handed it over
  };

  /// The list of a node: of all nodes those of the first variant come first, then those of the second, and so on.
  const std::vector<Step>& list(std::int32_t node) const {
    return s_.lists(index(node / s_.nodes))[index(node % s_.nodes)];
  }

  /// `first`: node 0 of the variant.
  void add_queue(std::int32_t first, std::int32_t from, std::int32_t to) {
    Queue queue;
    const std::int32_t sip = from / cubes_, other = to / cubes_;
    queue.cost = sip == other ? &r_.cube : &r_.sip;
    queue.slots = index(std::max(r_.slots, 1));
    const auto resource = [&](std::int64_t kind, std::int64_t a, std::int64_t b, double rate, double fixed) {
      const auto [found, fresh] = resources_.try_emplace({kind, a, b}, static_cast<std::int32_t>(resources_.size()));
      if (fresh) links_.push_back({rate, fixed, kind == kCubeLink || kind == kSipLink, 0});
      queue.resources.push_back(found->second);
    };
    const double rate = queue.cost->bytes_per_second, fixed = queue.cost->message_seconds;
    queue.hop_seconds = queue.cost->hop_seconds;
    queue.pass_seconds = queue.cost->pass_seconds;
    if (sip == other) {
      const std::vector<std::int32_t> way = cube_way(r_, from, to);
      for (std::size_t i = 0; i + 1 < way.size(); ++i) resource(kCubeLink, way[i], way[i + 1], rate, fixed);
      queue.links = queue.resources.size();
    } else {
      // Columns of cubes have each their way to the IO chiplet; a SIP as a whole has them all.
      const auto columns = [&](std::int64_t kind, std::int32_t node) {
        if (r_.column_bytes_per_second <= 0) return;
        if (cubes_ > 1) return resource(kind, node / cubes_, node % cubes_ % r_.cube_w, r_.column_bytes_per_second, 0);
        resource(kind, node, 0, r_.column_bytes_per_second * std::max(r_.columns, 1), 0);
      };
      columns(kColumnsOut, from);
      if (r_.kind == kSwitch) {
        resource(kPortOut, sip, 0, rate, fixed);
        resource(kPortIn, other, 0, rate, fixed);
        queue.links = 1;
        queue.pass_seconds = 0;
      } else {
        const std::vector<std::int32_t> way = sip_way(r_, sip, other);
        for (std::size_t i = 0; i + 1 < way.size(); ++i) resource(kSipLink, way[i], way[i + 1], rate, fixed);
        queue.links = way.size() - 1;
      }
      columns(kColumnsIn, to);
    }
    if (sip != other && r_.cube_h > 1) {  // up to the top row of cubes, and down again
      const int rows = from % cubes_ / r_.cube_w + to % cubes_ / r_.cube_w;
      queue.hop_seconds += r_.row_skew_seconds * rows / (2 * (r_.cube_h - 1));
    }
    queue.ends[0].node = first + from;
    queue.ends[1].node = first + to;
    for (Line& end : queue.ends) end.ops.reserve(index(std::max(r_.queue_ops, 0)));
    queue.arrivals.reserve(queue.slots);
    queue.freed.reserve(queue.slots);
    numbers_[(std::int64_t{first} + from) * s_.nodes + to] = static_cast<std::int32_t>(queues_.size());
    queues_.push_back(std::move(queue));
  }

  static bool adds(const Step& step) { return step.kind == StepKind::receive_reduce || step.kind == StepKind::reduce; }
  static bool is_local(const Step& step) { return step.kind == StepKind::copy || step.kind == StepKind::reduce; }

  /// Which steps need which, in the order in which a round goes through them.
  void link_steps(std::int32_t number) {
    const auto& steps = list(number);
    Node& node = nodes_[index(number)];
    const std::int32_t first = number - number % s_.nodes;
    const std::size_t count = steps.size();
    node.steps.resize(count);
    node.sums.reserve(index(std::max(r_.queue_ops, 0)));
    std::vector<std::int32_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return stage(steps[index(a)]) < stage(steps[index(b)]); });
    std::unordered_map<std::int32_t, std::int32_t> writer;  // of a block
    const auto written = [&](std::int32_t block, std::int32_t by) {
      const auto found = writer.find(block);
      if (found == writer.end()) return -1;
      node.steps[index(found->second)].after.push_back(by);
      return found->second;
    };
    for (const std::int32_t i : order) {
      const Step& step = steps[index(i)];
      Work& work = node.steps[index(i)];
      work.sends = step.kind == StepKind::send;
      work.adds = adds(step);
      work.stage = stage(step);
      work.bytes = bytes_of(step.block);
      work.engine_seconds = engine_seconds(step.block, work.sends ? r_.send_seconds : r_.receive_seconds);
      if (!is_local(step)) {
        work.queue = numbers_.at(work.sends ? std::int64_t{number} * s_.nodes + step.peer
                                            : (std::int64_t{first} + step.peer) * s_.nodes + number - first);
      }
      if (is_local(step)) work.other = written(step.peer, i);
      if (work.adds || work.sends) work.before = written(step.block, i);
      // Its own part is loaded, the sum is formed; a value from elsewhere is stored.
      if (work.adds) ++work.ops;
      if (work.before < 0 || !work.sends) ++work.ops;
      if (step.kind != StepKind::send) writer[step.block] = i;
    }
    node.values.reserve(count, index(rounds_));
    node.left = static_cast<std::int64_t>(count) * rounds_;
  }

  std::int64_t stage(const Step& step) const { return s_.period > 0 ? step.time / s_.period : 0; }
  std::int64_t passes() const { return s_.period > 0 ? rounds_ + s_.last_round() : rounds_; }

  /// Goes to the node's next step that is due in this pass. False at the end of its list.
  bool next(std::int32_t number) {
    Node& node = nodes_[index(number)];
    for (; node.pass < passes(); ++node.pass, node.at = 0) {
      for (; node.at < node.steps.size(); ++node.at) {
        const std::int64_t round = node.pass - node.steps[node.at].stage;
        if (round >= 0 && round < rounds_) return true;
      }
    }
    return false;
  }

  /// Issues steps in the order of the list until a queue of the PE is full.
  void issue(std::int32_t number) {
    Node& node = nodes_[index(number)];
    node.blocked = nullptr;
    node.sums_full = false;
    while (next(number)) {
      const auto i = static_cast<std::int32_t>(node.at);
      const Work& work = node.steps[node.at];
      const auto round = static_cast<std::int32_t>(node.pass - work.stage);
      Line* line = work.queue < 0 ? nullptr : &queues_[index(work.queue)].ends[work.sends ? 0 : 1];
      if (line != nullptr && line->ops.size() >= index(r_.queue_ops)) {
        node.blocked = line;
        return;
      }
      if (work.adds && node.sums.size() >= index(r_.queue_ops)) {
        node.sums_full = true;
        return;
      }
      if (work.adds) node.sums.push({i, round, 0});
      node.values.begin(index(round));
      node.issued += r_.issue_seconds * work.ops;
      ++node.at;
      if (line == nullptr) {
        node.value(i, round).got = {node.issued, node.issued};
        finish(number, i, round);
      } else {
        line->ops.push({i, round, node.issued});
        if (line->ops.size() == 1) consider(2 * work.queue + (work.sends ? 0 : 1));
      }
    }
  }

  /// Puts the first op of an end of a queue among the events, if nothing but time keeps it from being done.
  void consider(std::int32_t what) {
    Queue& queue = queues_[index(what / 2)];
    Line& line = queue.ends[what % 2];
    if (line.due || line.ops.empty()) return;
    const Op& op = line.ops.front();
    Span time{op.issued, op.issued};
    if (what % 2 == 0) {
      Node& node = nodes_[index(line.node)];
      if (const std::int32_t before = node.steps[index(op.step)].before; before >= 0) {
        const Span& value = node.value(before, op.round).ready;
        if (value.first < 0) return;
        time = latest(time, value);
      }
      if (queue.slots == 0) {
        if (queue.freed.empty()) return;
        time = latest(time, queue.freed.front());
      }
    } else {
      if (queue.arrivals.empty()) return;
      time = latest(time, queue.arrivals.front());
    }
    line.due = true;
    line.start = time;
    events_.push({time.first, what});
  }

  /// The first in time of all ops that can be done. A lane's port hands over and takes one message at a time.
  void execute(std::int32_t what) {
    Queue& queue = queues_[index(what / 2)];
    Line& line = queue.ends[what % 2];
    Node& node = nodes_[index(line.node)];
    const Op op = line.ops.front();
    const Work& work = node.steps[index(op.step)];
    Span& port = node.ports[what % 2];
    const Span end = latest(line.start, port) + work.engine_seconds;
    port = end;
    end_ = std::max(end_, end.last);
    line.ops.pop();
    line.due = false;
    const std::int32_t number = line.node;
    if (work.sends) {
      node.done(op.round);
      send(what / 2, work.bytes, end);
    } else {
      queue.freed.push(end + queue.way());
      queue.arrivals.pop();
      node.value(op.step, op.round).got = end;
      finish(number, op.step, op.round);
      consider(what - 1);
    }
    consider(what);
    if (node.blocked == &line) {
      node.issued = std::max(node.issued, end.first);
      issue(number);
    }
  }

  /// The step's value is there if all that it needs is; a sum's when those before it are done.
  void finish(std::int32_t number, std::int32_t i, std::int32_t round) {
    Node& node = nodes_[index(number)];
    if (!node.steps[index(i)].adds) {
      if (const auto value = inputs(node, i, round)) value_ready(number, i, round, *value);
      return;
    }
    while (!node.sums.empty()) {
      const Op sum = node.sums.front();
      const auto value = inputs(node, sum.step, sum.round);
      if (!value) return;
      const double bytes = node.steps[index(sum.step)].bytes;
      node.math = latest(*value, node.math) + bytes / lanes_ / r_.sum_bytes_per_second;
      node.sums.pop();
      value_ready(number, sum.step, sum.round, node.math + r_.sum_seconds);
      if (node.sums_full) {
        node.issued = std::max(node.issued, node.math.first);
        issue(number);
      }
    }
  }

  std::optional<Span> inputs(Node& node, std::int32_t i, std::int32_t round) const {
    Span value = node.value(i, round).got;
    if (value.first < 0) return {};
    const Work& work = node.steps[index(i)];
    for (const std::int32_t needed : {work.before, work.other}) {
      if (needed < 0) continue;
      const Span& part = node.value(needed, round).ready;
      if (part.first < 0) return {};
      value = latest(value, part);
    }
    return value;
  }

  void value_ready(std::int32_t number, std::int32_t i, std::int32_t round, const Span& value) {
    Node& node = nodes_[index(number)];
    node.value(i, round).ready = value;
    node.done(round);
    end_ = std::max(end_, value.last);
    for (const std::int32_t after : node.steps[index(i)].after) {
      if (node.steps[index(after)].sends) {
        consider(2 * node.steps[index(after)].queue);
      } else {
        finish(number, after, round);
      }
    }
  }

  double bytes_of(std::int32_t b) const {
    const Block& block = s_.blocks[index(b)];
    return (block.end - block.begin) * block.regions * unit_bytes_;
  }
  /// That an engine of a lane is busy with its share of a block.
  double engine_seconds(std::int32_t b, double fixed) const {
    if (r_.lane_bytes_per_second <= 0) return fixed;
    return fixed + bytes_of(b) / lanes_ / r_.lane_bytes_per_second;
  }

  void send(std::int32_t number, double bytes, const Span& at) {
    Queue& queue = queues_[index(number)];
    if (queue.slots > 0) {
      --queue.slots;
    } else {
      queue.freed.pop();
    }
    const double takes = bytes / queue.cost->bytes_per_second + queue.cost->message_seconds;
    const std::int32_t id = flights_.add({number, 0, bytes, takes, at.last});
    events_.push({at.first, -id - 1});
  }

  /// The head of a message is at its next link, which is then busy for as long as the bytes take.
  void pass(Flight& flight, std::int32_t id, double time) {
    const Queue& queue = queues_[index(flight.queue)];
    Link& link = links_[index(queue.resources[flight.link])];
    const double head = std::max(time, link.free);
    link.free = head + flight.bytes / link.bytes_per_second + link.message_seconds;
    if (++flight.link < queue.resources.size()) {
      const bool between = link.between && links_[index(queue.resources[flight.link])].between;
      events_.push({head + (between ? queue.pass_seconds : 0), -id - 1});
      return;
    }
    arrive(flight, head);
    flights_.remove(id);
  }

  /// `head`: when it got the last link. A lane's part cannot be there before its own time on the link.
  void arrive(const Flight& flight, double head) {
    Queue& queue = queues_[index(flight.queue)];
    const double passed = queue.way() - queue.hop_seconds, part = flight.takes / lanes_;
    const Span there{head + part, std::max(head + flight.takes, flight.last + passed + part)};
    queue.arrivals.push(there + queue.hop_seconds);
    consider(2 * flight.queue + 1);
  }

  const Schedule& s_;
  const PlanRequest& r_;
  const std::int32_t variants_;  ///< whose lanes stand here apart
  const std::int32_t count_;     ///< of nodes, each as often as there are variants
  const std::int32_t lanes_;     ///< of a variant
  const std::int64_t rounds_;
  double unit_bytes_ = 0, end_ = 0;
  std::int32_t cubes_ = 1;
  std::vector<Node> nodes_;
  std::vector<Queue> queues_;
  std::unordered_map<std::int64_t, std::int32_t> numbers_;  ///< of queues, by from * nodes + to within the variant
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int32_t> resources_;
  std::vector<Link> links_;
  Earliest<Timed> events_;  ///< of 2 * queue + end; -1 - flight
  Numbered<Flight> flights_;
};

}  // namespace

Estimate estimate(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds) {
  rounds = std::max<std::int64_t>(rounds, 1);
  std::int64_t steps = 1;
  for (std::int32_t variant = 0; variant < DataFlow::separate_variants(schedule); ++variant) {
    for (const auto& list : schedule.lists(index(variant))) steps += static_cast<std::int64_t>(list.size());
  }
  const std::int64_t least = 2 * (schedule.last_round() + 2);
  const std::int64_t enough = std::max(least, std::int64_t{400000} / steps);
  const double memory = request.load_seconds + request.store_seconds;
  DataFlow run(schedule, request, std::min(rounds, enough), rounds);
  if (request.most_seconds > 0) {
    if (const double least = run.least(rounds); least > request.most_seconds) return {least, true};
  }
  const double whole = run.run();
  if (whole <= 0) return {};  // one node, which has all
  if (rounds <= enough) return {memory + whole};
  const double half = DataFlow(schedule, request, enough / 2, rounds).run();
  const double round = (whole - half) / static_cast<double>(enough - enough / 2);
  return {memory + whole + round * static_cast<double>(rounds - enough)};
}

}  // namespace kernbench::ccl
