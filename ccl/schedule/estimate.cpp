#include "ccl/schedule/estimate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ccl/grid.h"
#include "ccl/schedule/machine.h"

namespace kernbench::ccl {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Runs lists against clocks. Slots are those the machine has.
class Run {
 public:
  Run(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds, std::int64_t all_rounds)
      : s_(schedule), r_(request), rounds_(rounds), blocks_(schedule.blocks.size()) {
    const std::int64_t regions = std::max(regions_in(s_.op, s_.nodes), regions_out(s_.op, s_.nodes));
    unit_bytes_ = static_cast<double>(r_.bytes) / static_cast<double>(regions * all_rounds * s_.units);
    cubes_ = std::max(s_.nodes / std::max(r_.ranks, 1), 1);
    for (const ScheduleLink& link : s_.links) {
      for (const auto& [a, b] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) add_queue(a, b);
    }
    clock_.assign(index(s_.nodes), 0);
    at_.assign(index(s_.nodes), 0);
    pass_.assign(index(s_.nodes), 0);
    ready_.assign(index(s_.nodes) * blocks_ * index(rounds_), 0);
    link_steps();
  }

  double run() {
    for (std::int32_t node = 0; node < s_.nodes; ++node) consider(node);
    while (!events_.empty()) {
      const auto [time, node] = events_.top();
      events_.pop();
      execute(node, time);
      consider(node);
    }
    double end = 0;
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      if (pass_[index(node)] < passes())
        throw std::invalid_argument("the lists deadlock with the queue slots there are");
      end = std::max(end, clock_[index(node)]);
    }
    return end;
  }

 private:
  struct Queue {
    const LevelCost* cost = nullptr;
    double hop_seconds = 0;
    std::vector<std::int32_t> resources;  ///< held together while a message passes
    std::size_t slots = 1, sent = 0, received = 0;
    std::vector<double> arrival, freed;  ///< by message
  };

  void add_queue(std::int32_t from, std::int32_t to) {
    Queue queue;
    const std::int32_t sip = from / cubes_, other = to / cubes_;
    queue.cost = sip == other ? &r_.cube : &r_.sip;
    queue.slots = index(std::max(r_.slots, 1));
    const auto resource = [&](std::int64_t kind, std::int64_t a, std::int64_t b) {
      return resources_.try_emplace({kind, a, b}, static_cast<std::int32_t>(resources_.size())).first->second;
    };
    queue.hop_seconds = queue.cost->hop_seconds;
    if (sip == other) {
      queue.resources = {resource(0, from, to)};
    } else if (r_.kind == kSwitch) {
      queue.resources = {resource(1, sip, 0), resource(2, other, 0)};
    } else {
      // A routed queue holds every link of its way: along the row, then along the column.
      const std::vector<std::int32_t> way = sip_way(r_, sip, other);
      for (std::size_t i = 0; i + 1 < way.size(); ++i) queue.resources.push_back(resource(3, way[i], way[i + 1]));
      queue.hop_seconds *= static_cast<double>(way.size() - 1);
    }
    free_at_.resize(resources_.size(), 0);
    numbers_[std::int64_t{from} * s_.nodes + to] = static_cast<std::int32_t>(queues_.size());
    queues_.push_back(std::move(queue));
  }

  void link_steps() {
    queue_of_.resize(index(s_.nodes));
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      for (const Step& step : s_.steps[index(node)]) {
        const bool local = step.kind == StepKind::copy || step.kind == StepKind::reduce;
        const bool sends = step.kind == StepKind::send;
        const std::int64_t key =
            sends ? std::int64_t{node} * s_.nodes + step.peer : std::int64_t{step.peer} * s_.nodes + node;
        queue_of_[index(node)].push_back(local ? -1 : numbers_.at(key));
      }
    }
  }

  std::int64_t passes() const { return s_.period > 0 ? rounds_ + s_.last_round() : rounds_; }
  double& ready(std::int32_t node, std::int32_t block, std::int64_t round) {
    return ready_[(index(node) * blocks_ + index(block)) * index(rounds_) + index(round)];
  }

  /// Goes to the node's next step that is due in this pass. False at the end of its list.
  bool next(std::int32_t node) {
    const auto& steps = s_.steps[index(node)];
    std::size_t& at = at_[index(node)];
    while (pass_[index(node)] < passes()) {
      for (; at < steps.size(); ++at) {
        const std::int64_t round = round_of(node);
        if (round >= 0 && round < rounds_) return true;
      }
      at = 0;
      ++pass_[index(node)];
    }
    return false;
  }
  std::int64_t round_of(std::int32_t node) const {
    const Step& step = s_.steps[index(node)][at_[index(node)]];
    return pass_[index(node)] - (s_.period > 0 ? step.time / s_.period : 0);
  }

  /// Puts the node's next step among the events, if nothing but time keeps it from being done.
  void consider(std::int32_t node) {
    if (!next(node)) return;
    const Step& step = s_.steps[index(node)][at_[index(node)]];
    const std::int32_t number = queue_of_[index(node)][at_[index(node)]];
    double time = clock_[index(node)];
    if (step.kind == StepKind::send) {
      const Queue& queue = queues_[index(number)];
      if (queue.sent >= queue.received + queue.slots) return;
      time = std::max(time, ready(node, step.block, round_of(node)));
      if (queue.sent >= queue.slots) time = std::max(time, queue.freed[queue.sent - queue.slots]);
    } else if (number >= 0) {
      const Queue& queue = queues_[index(number)];
      if (queue.received == queue.sent) return;
      time = std::max(time, queue.arrival[queue.received]);
    }
    events_.emplace(time, node);
  }

  /// The first in time of all steps that can be done.
  void execute(std::int32_t node, double time) {
    const Step& step = s_.steps[index(node)][at_[index(node)]];
    const std::int32_t number = queue_of_[index(node)][at_[index(node)]];
    const std::int64_t round = round_of(node);
    double& clock = clock_[index(node)];
    double& value = ready(node, step.block, round);
    ++at_[index(node)];
    if (step.kind == StepKind::send) {
      clock = time + r_.send_seconds;
      send(queues_[index(number)], step.block, clock);
      // The receiver may have waited for just this message.
      if (queues_[index(number)].sent == queues_[index(number)].received + 1) wake(step.peer, number);
      return;
    }
    clock = time + r_.receive_seconds;
    value = std::max(value, number < 0 ? std::max(clock, ready(node, step.peer, round)) : clock);
    if (number < 0) return;
    Queue& queue = queues_[index(number)];
    queue.freed.push_back(clock + queue.hop_seconds / 2);  // the credit's way back
    ++queue.received;
    if (queue.sent == queue.received + queue.slots - 1) wake(step.peer, number);
  }

  /// Considers a node again if its next step uses this queue.
  void wake(std::int32_t node, std::int32_t number) {
    if (next(node) && queue_of_[index(node)][at_[index(node)]] == number) consider(node);
  }

  void send(Queue& queue, std::int32_t b, double start) {
    const Block& block = s_.blocks[index(b)];
    const double takes =
        (block.end - block.begin) * unit_bytes_ / queue.cost->bytes_per_second + queue.cost->message_seconds;
    for (const std::int32_t resource : queue.resources) start = std::max(start, free_at_[index(resource)]);
    for (const std::int32_t resource : queue.resources) free_at_[index(resource)] = start + takes;
    queue.arrival.push_back(start + takes + queue.hop_seconds);
    ++queue.sent;
  }

  const Schedule& s_;
  const PlanRequest& r_;
  const std::int64_t rounds_;
  const std::size_t blocks_;
  double unit_bytes_ = 0;
  std::int32_t cubes_ = 1;
  std::vector<Queue> queues_;
  std::unordered_map<std::int64_t, std::int32_t> numbers_;  ///< of queues, by from * nodes + to
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int32_t> resources_;
  std::vector<double> free_at_, clock_, ready_;
  std::vector<std::size_t> at_;
  std::vector<std::int64_t> pass_;
  std::vector<std::vector<std::int32_t>> queue_of_;  ///< by node and step
  std::priority_queue<std::pair<double, std::int32_t>, std::vector<std::pair<double, std::int32_t>>, std::greater<>>
      events_;  ///< (time, node): one at most for each node
};

}  // namespace

double estimate_seconds(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds) {
  rounds = std::max<std::int64_t>(rounds, 1);
  std::int64_t steps = 1;
  for (const auto& list : schedule.steps) steps += static_cast<std::int64_t>(list.size());
  const std::int64_t least = 2 * (schedule.last_round() + 2);
  const std::int64_t enough = std::max(least, std::int64_t{400000} / steps);
  if (rounds <= enough) return Run(schedule, request, rounds, rounds).run();
  const double half = Run(schedule, request, enough / 2, rounds).run();
  const double whole = Run(schedule, request, enough, rounds).run();
  return whole + (whole - half) / static_cast<double>(enough - enough / 2) * static_cast<double>(rounds - enough);
}

}  // namespace kernbench::ccl
