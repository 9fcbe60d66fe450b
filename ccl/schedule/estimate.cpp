#include "ccl/schedule/estimate.h"

#include <algorithm>
#include <map>
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
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::int32_t node = 0; node < s_.nodes; ++node) moved = go(node) || moved;
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

  bool go(std::int32_t node) {
    const auto& steps = s_.steps[index(node)];
    bool moved = false;
    std::size_t& at = at_[index(node)];
    while (pass_[index(node)] < passes()) {
      if (at == steps.size()) {
        at = 0;
        ++pass_[index(node)];
        moved = true;
        continue;
      }
      const Step& step = steps[at];
      const std::int64_t round = pass_[index(node)] - (s_.period > 0 ? step.time / s_.period : 0);
      if (round >= 0 && round < rounds_ && !execute(node, step, queue_of_[index(node)][at], round)) break;
      ++at;
      moved = true;
    }
    return moved;
  }

  bool execute(std::int32_t node, const Step& step, std::int32_t number, std::int64_t round) {
    double& clock = clock_[index(node)];
    double& value = ready(node, step.block, round);
    if (number < 0) {
      clock += r_.receive_seconds;
      value = std::max({value, ready(node, step.peer, round), clock});
      return true;
    }
    Queue& queue = queues_[index(number)];
    if (step.kind == StepKind::send) {
      if (queue.sent - queue.received >= queue.slots) return false;
      double start = std::max(clock, value);
      if (queue.sent >= queue.slots) start = std::max(start, queue.freed[queue.sent - queue.slots]);
      clock = start = start + r_.send_seconds;
      const Block& block = s_.blocks[index(step.block)];
      const double takes =
          (block.end - block.begin) * unit_bytes_ / queue.cost->bytes_per_second + queue.cost->message_seconds;
      for (const std::int32_t resource : queue.resources) start = std::max(start, free_at_[index(resource)]);
      for (const std::int32_t resource : queue.resources) free_at_[index(resource)] = start + takes;
      queue.arrival.push_back(start + takes + queue.hop_seconds);
      ++queue.sent;
      return true;
    }
    if (queue.received == queue.sent) return false;
    clock = std::max(clock, queue.arrival[queue.received]) + r_.receive_seconds;
    value = std::max(value, clock);
    queue.freed.push_back(clock + queue.hop_seconds / 2);  // the credit's way back
    ++queue.received;
    return true;
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
