#include "ccl/schedule/estimate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
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

/// When something happens on the first of a node's lanes, and on the last: lanes share links one after the other, and
/// each goes on with its own part of a message.
struct Span {
  double first = 0, last = 0;
};
Span latest(const Span& a, const Span& b) { return {std::max(a.first, b.first), std::max(a.last, b.last)}; }
Span operator+(const Span& a, double seconds) { return {a.first + seconds, a.last + seconds}; }

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
    clock_.assign(index(s_.nodes), Span());
    at_.assign(index(s_.nodes), 0);
    pass_.assign(index(s_.nodes), 0);
    ready_.assign(index(s_.nodes) * blocks_ * index(rounds_), Span());
    link_steps();
  }

  double run() {
    for (std::int32_t node = 0; node < s_.nodes; ++node) consider(node);
    while (!events_.empty()) {
      const auto [time, what] = events_.top();
      events_.pop();
      if (what < 0) {
        pass(flights_[index(-what - 1)], -what - 1, time);
        continue;
      }
      execute(what);
      consider(what);
    }
    double end = 0;
    for (std::int32_t node = 0; node < s_.nodes; ++node) {
      if (pass_[index(node)] < passes())
        throw std::invalid_argument("the lists deadlock with the queue slots there are");
      end = std::max(end, clock_[index(node)].last);
    }
    return end;
  }

 private:
  struct Queue {
    const LevelCost* cost = nullptr;
    double hop_seconds = 0, pass_seconds = 0;
    std::vector<std::int32_t> resources;  ///< links on the way, or ports
    std::size_t slots = 1, sent = 0, received = 0;
    std::vector<Span> arrival, freed;  ///< by message
  };

  /// A message on its way over several links.
  struct Flight {
    std::int32_t queue = 0, to = 0;
    std::size_t link = 0;
    double takes = 0;  ///< on each link
    double last = 0;   ///< when the last lane has handed it over
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
      const std::vector<std::int32_t> way = cube_way(from % cubes_, to % cubes_);
      for (std::size_t i = 0; i + 1 < way.size(); ++i)
        queue.resources.push_back(resource(0, sip * cubes_ + way[i], sip * cubes_ + way[i + 1]));
      queue.pass_seconds = queue.cost->pass_seconds;
    } else if (r_.kind == kSwitch) {
      queue.resources = {resource(1, sip, 0), resource(2, other, 0)};
    } else {
      const std::vector<std::int32_t> way = sip_way(r_, sip, other);
      for (std::size_t i = 0; i + 1 < way.size(); ++i) queue.resources.push_back(resource(3, way[i], way[i + 1]));
      queue.pass_seconds = queue.cost->pass_seconds;
    }
    if (sip != other && r_.cube_h > 1) {  // up to the top row of cubes, and down again
      const int rows = from % cubes_ / r_.cube_w + to % cubes_ / r_.cube_w;
      queue.hop_seconds += r_.climb_seconds * rows / (2 * (r_.cube_h - 1));
    }
    free_at_.resize(resources_.size(), 0);
    numbers_[std::int64_t{from} * s_.nodes + to] = static_cast<std::int32_t>(queues_.size());
    queues_.push_back(std::move(queue));
  }

  /// Cubes of a SIP on the way: along the row, then along the column.
  std::vector<std::int32_t> cube_way(std::int32_t from, std::int32_t to) const {
    std::vector<std::int32_t> way{from};
    while (way.back() != to) {
      const std::int32_t at = way.back(), across = to % r_.cube_w - at % r_.cube_w;
      way.push_back(across != 0 ? at + (across > 0 ? 1 : -1) : at + (to > at ? r_.cube_w : -r_.cube_w));
    }
    return way;
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
  Span& ready(std::int32_t node, std::int32_t block, std::int64_t round) {
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

  /// When the node's next step can begin; nothing if something else has to happen first.
  std::optional<Span> start(std::int32_t node) {
    const Step& step = s_.steps[index(node)][at_[index(node)]];
    const std::int32_t number = queue_of_[index(node)][at_[index(node)]];
    Span time = clock_[index(node)];
    if (step.kind == StepKind::send) {
      const Queue& queue = queues_[index(number)];
      if (queue.sent >= queue.received + queue.slots) return {};
      time = latest(time, ready(node, step.block, round_of(node)));
      if (queue.sent >= queue.slots) time = latest(time, queue.freed[queue.sent - queue.slots]);
    } else if (number >= 0) {
      const Queue& queue = queues_[index(number)];
      if (queue.received == queue.arrival.size()) return {};
      time = latest(time, queue.arrival[queue.received]);
    }
    return time;
  }

  /// Puts the node's next step among the events, if nothing but time keeps it from being done.
  void consider(std::int32_t node) {
    if (!next(node)) return;
    if (const auto time = start(node)) events_.emplace(time->first, node);
  }

  /// The first in time of all steps that can be done.
  void execute(std::int32_t node) {
    const Step& step = s_.steps[index(node)][at_[index(node)]];
    const std::int32_t number = queue_of_[index(node)][at_[index(node)]];
    const std::int64_t round = round_of(node);
    const bool sends = step.kind == StepKind::send;
    Span& clock = clock_[index(node)];
    clock = *start(node) + engine_seconds(step.block, sends ? r_.send_seconds : r_.receive_seconds);
    ++at_[index(node)];
    if (sends) {
      send(number, step, clock);
      return;
    }
    Span& value = ready(node, step.block, round);
    value = latest(value, number < 0 ? latest(clock, ready(node, step.peer, round)) : clock);
    if (number < 0) return;
    Queue& queue = queues_[index(number)];
    const double way = queue.hop_seconds + queue.pass_seconds * static_cast<double>(queue.resources.size() - 1);
    queue.freed.push_back(clock + way / 2);  // the credit's way back
    ++queue.received;
    if (queue.sent == queue.received + queue.slots - 1) wake(step.peer, number);
  }

  /// Considers a node again if its next step uses this queue.
  void wake(std::int32_t node, std::int32_t number) {
    if (next(node) && queue_of_[index(node)][at_[index(node)]] == number) consider(node);
  }

  double bytes_of(std::int32_t b) const {
    const Block& block = s_.blocks[index(b)];
    return (block.end - block.begin) * unit_bytes_;
  }
  /// That an engine of a lane is busy with its share of a block.
  double engine_seconds(std::int32_t b, double fixed) const {
    if (r_.lane_bytes_per_second <= 0) return fixed;
    return fixed + bytes_of(b) / std::max(r_.lanes, 1) / r_.lane_bytes_per_second;
  }

  void send(std::int32_t number, const Step& step, const Span& at) {
    Queue& queue = queues_[index(number)];
    ++queue.sent;
    const double takes = bytes_of(step.block) / queue.cost->bytes_per_second + queue.cost->message_seconds;
    const Flight flight{number, step.peer, 0, takes, at.last};
    double start = at.first;
    if (queue.resources.size() == 1 || queue.pass_seconds <= 0) {
      for (const std::int32_t resource : queue.resources) start = std::max(start, free_at_[index(resource)]);
      for (const std::int32_t resource : queue.resources) free_at_[index(resource)] = start + takes;
      arrive(flight, start);
      return;
    }
    std::int32_t id = static_cast<std::int32_t>(flights_.size());
    if (idle_.empty()) {
      flights_.push_back(flight);
    } else {
      id = idle_.back();
      idle_.pop_back();
      flights_[index(id)] = flight;
    }
    events_.emplace(start, -id - 1);
  }

  /// The head of a routed message is at its next link, which is then busy for as long as the bytes take.
  void pass(Flight& flight, std::int32_t id, double time) {
    const Queue& queue = queues_[index(flight.queue)];
    double& free_at = free_at_[index(queue.resources[flight.link])];
    const double head = std::max(time, free_at);
    free_at = head + flight.takes;
    if (++flight.link < queue.resources.size()) {
      events_.emplace(head + queue.pass_seconds, -id - 1);
      return;
    }
    idle_.push_back(id);
    arrive(Flight(flight), head);
  }

  /// `head`: when it got the last link. A lane's part cannot be there before its own time on the link.
  void arrive(const Flight& flight, double head) {
    Queue& queue = queues_[index(flight.queue)];
    const double passed = queue.pass_seconds * static_cast<double>(queue.resources.size() - 1),
                 part = flight.takes / std::max(r_.lanes, 1);
    const Span there{head + part, std::max(head + flight.takes, flight.last + passed + part)};
    queue.arrival.push_back(there + queue.hop_seconds);
    // The receiver may have waited for just this message.
    if (queue.arrival.size() == queue.received + 1) wake(flight.to, flight.queue);
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
  std::vector<double> free_at_;
  std::vector<Span> clock_, ready_;
  std::vector<std::size_t> at_;
  std::vector<std::int64_t> pass_;
  std::vector<std::vector<std::int32_t>> queue_of_;  ///< by node and step
  std::priority_queue<std::pair<double, std::int32_t>, std::vector<std::pair<double, std::int32_t>>, std::greater<>>
      events_;  ///< (time, node): one at most for each node; (time, -1 - flight)
  std::vector<Flight> flights_;
  std::vector<std::int32_t> idle_;  ///< places in flights_
};

}  // namespace

double estimate_seconds(const Schedule& schedule, const PlanRequest& request, std::int64_t rounds) {
  rounds = std::max<std::int64_t>(rounds, 1);
  std::int64_t steps = 1;
  for (const auto& list : schedule.steps) steps += static_cast<std::int64_t>(list.size());
  const std::int64_t least = 2 * (schedule.last_round() + 2);
  const std::int64_t enough = std::max(least, std::int64_t{400000} / steps);
  const double memory = 2 * request.memory_seconds;  // the first load and the last store
  if (rounds <= enough) return memory + Run(schedule, request, rounds, rounds).run();
  const double half = Run(schedule, request, enough / 2, rounds).run();
  const double whole = Run(schedule, request, enough, rounds).run();
  return memory + whole +
         (whole - half) / static_cast<double>(enough - enough / 2) * static_cast<double>(rounds - enough);
}

}  // namespace kernbench::ccl
