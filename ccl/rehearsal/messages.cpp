/// Messages: ends of queues, ways, credits.
#include <algorithm>

#include "ccl/rehearsal/clocks.h"

namespace kernbench::ccl {
namespace {

/// Of a message beside its bytes.   assumed: two cycles of the cubes' network, and one of TCM
constexpr double kSend = 0.5e-9, kReceive = 0.6e-9;

/// Ways of a command from the end of a call's kernels to the start of the next one's: that they have ended, to the host
/// (two units that pass it on); the launch, that it has been taken, the start. Measured with small calls: 5.4 to 6.1.
constexpr double kCommandsBetweenCalls = 5;

/// What waiting for a slot may add to a call that is not rehearsed again for it.
constexpr double kNoMatter = 0.01;

}  // namespace

double Rehearsal::through(const std::vector<std::uint32_t>& passages, double head, double bytes) {
  for (const std::uint32_t id : passages) head = ways_[id].pass(head, bytes);
  return head;
}

Rehearsal::Queue& Rehearsal::queue(std::int32_t id) {
  Queue& queue = queues_[index(id)];
  if (queue.used) return queue;
  queue.used = true;
  queue.way = ways_.way(queue.from, queue.to);
  if (map_.packet_latency)
    queue.back = seconds(map_.packet_latency(map_.pe(queue.to), map_.pe(queue.from), map_.engines.credit_bytes));
  if (queue.credits.empty()) queue.credits.assign(index(queue.slots), 0.0);
  if (queue.from.sip != queue.to.sip && map_.io_cycle > 0) {
    queue.links_back = ways_.links(queue.to.sip, queue.from.sip);
    queue.to_io = ways_.to_io(queue.to);
  }
  return queue;
}

double Rehearsal::send(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  Queue& queue = this->queue(op.place);
  queue.credits.pop_front();
  if (queue.first.size() < index(queue.slots)) queue.first.push_back(now);
  Passage& port = ways_[ways_.port_out(pes_[index(p)].coord)];
  const Engines& engines = pes_[index(p)].engines;
  now += kSend + engines.tcm_latency;
  double head = port.pass(now, op.bytes);
  line.free = now + op.bytes / engines.tcm;
  const double handed_over = line.free;
  head = through(queue.way.out, head, op.bytes);
  const std::int32_t id = flights_.add({op.place, 0, static_cast<double>(op.bytes)});
  events_.push({head + queue.way.out_seconds, event_number_++, -1 - id});
  return handed_over;
}

/// The head of a message is at its next link between SIPs, or has passed the last.
void Rehearsal::pass(std::int32_t id, double now) {
  Flight& flight = flights_[id];
  Queue& queue = queues_[index(flight.queue)];
  double head = now;
  if (flight.link < queue.way.links.size()) {
    head = ways_[queue.way.links[flight.link++]].pass(now, flight.bytes);
    const bool further = flight.link < queue.way.links.size();
    events_.push({head + (further ? ways_.further_link_seconds() : 0), event_number_++, -1 - id});
    return;
  }
  head = through(queue.way.in, head, flight.bytes);
  head = ways_[ways_.port_in(queue.to)].pass(head, flight.bytes);
  const double further = queue.way.links.empty() ? 0 : static_cast<double>(queue.way.links.size() - 1);
  const double rest = queue.way.seconds - queue.way.out_seconds - further * ways_.further_link_seconds();
  queue.arrivals.push_back(head + rest + flight.bytes / queue.way.least_bytes_per_second);
  const std::int32_t line = static_cast<std::int32_t>(kEngines * pes_.size()) + 2 * flight.queue + 1;
  flights_.remove(id);
  consider(line);
}

double Rehearsal::receive(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  const Engines& engines = pes_[index(p)].engines;
  Queue& queue = this->queue(op.place);
  queue.arrivals.pop_front();
  const double end = now + kReceive + 2 * engines.tcm_latency + op.bytes / engines.tcm;
  line.free = end;
  queue.credits.push_back(end + queue.back);
  double at_link = end + queue.to_io;
  for (const std::uint32_t link : queue.links_back) {
    ways_[link].credit(at_link);
    at_link += ways_.further_link_seconds();
  }
  return end;
}

std::deque<double> Rehearsal::credits_left(const Queue& queue) const {
  const double start = end_ + kCommandsBetweenCalls * seconds(map_.worst_command_latency);
  std::deque<double> left;
  for (const double credit : queue.credits) left.push_back(std::max(0.0, credit - start));
  return left;
}

bool Rehearsal::holds_up_the_next() const {
  return std::any_of(queues_.begin(), queues_.end(), [this](const Queue& queue) {
    if (queue.first.empty()) return false;
    const std::deque<double> left = credits_left(queue);
    for (std::size_t i = 0; i < queue.first.size(); ++i) {
      if (left[i] > queue.first[i] + kNoMatter * end_) return true;
    }
    return false;
  });
}

}  // namespace kernbench::ccl
