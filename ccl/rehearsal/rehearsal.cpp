#include "ccl/rehearsal/rehearsal.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>

#include "ccl/rehearsal/engines.h"
#include "ccl/rehearsal/memories.h"
#include "ccl/rehearsal/ways.h"

namespace kernbench::ccl {
namespace {

using Kind = RehearsedOp::Kind;
std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Of a message beside its bytes.   assumed: two cycles of the cubes' network, and one of TCM
constexpr double kSend = 0.5e-9, kReceive = 0.6e-9;

class Rehearsal {
 public:
  Rehearsal(const MachineMap& map, const Collective& collective) : map_(map), ways_(map), memories_(map, ways_) {
    find_queues(collective);
  }

  /// False: it has more than `most` ops.
  bool record(const Collective& collective, const CallTensors& tensors, std::size_t most);
  /// Nothing if ops wait for each other in a circle.
  std::optional<double> run();

 private:
  static constexpr double kNever = -1;

  /// An op with what is known of it.
  struct State {
    double ready = 0;  ///< when what it needs is there
    double issued = kNever, done = kNever;
    std::int32_t pending = 0;       ///< ops that it waits for
    std::int32_t after = kNothing;  ///< first edge to one that waits for it
  };
  /// An engine, or an end of a queue: ops in order.
  struct Line {
    std::int32_t pe = 0;
    std::deque<std::int32_t> ops;
    bool due = false;  ///< the first is among the events
    double free = 0;
    std::priority_queue<std::pair<double, double>, std::vector<std::pair<double, double>>, std::greater<>>
        under_way;  ///< loads, stores: when their places are given back, bytes
    double bytes_under_way = 0;
  };
  struct Pe {
    Pe(PeCoord at, const PeRates& rates) : coord(at), engines(rates) {}

    PeCoord coord;
    Engines engines;
    std::vector<RehearsedOp> ops;
    std::vector<State> states;
    std::vector<std::int32_t> edges;  ///< 2 * op + which of its needs: the next edge of the same source
    std::size_t next = 0;
    double cpu = 0, last = 0;
    std::int32_t blocked = kNothing;  ///< line without room
    std::int32_t waits = kNothing;    ///< op that PE_CPU waits for
    bool fence = false;
    std::size_t left = 0;                                     ///< issued and not done
    std::unordered_map<std::int32_t, std::uint32_t> ways_to;  ///< of loads and stores, by place
  };
  struct Queue {
    PeCoord from, to;
    std::int32_t slots = 1;
    std::deque<double> credits, arrivals;
    Way way;
    bool used = false;
    double back = 0;
  };
  struct Flight {
    std::int32_t queue = 0;
    std::size_t link = 0;
    double bytes = 0;
  };
  enum Lines : std::int32_t { kLoads, kStores, kMathEngine, kEngines };

  void find_queues(const Collective& collective);
  void link(std::size_t pe);
  std::int32_t line_of(std::int32_t pe, const RehearsedOp& op) const;
  void issue(std::int32_t pe);
  void consider(std::int32_t line);
  void execute(std::int32_t line, double now);
  double load(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double store(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double send(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double receive(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double calculate(std::int32_t pe, Line& line, const RehearsedOp& op, double now);
  double room(std::int32_t pe, Line& line, double now, double bytes);
  Reach& reach(std::int32_t pe, std::int32_t place);
  Queue& queue(std::int32_t id);
  void pass(std::int32_t flight, double now);
  void done(std::int32_t pe, std::int32_t op, double time);
  double through(const std::vector<std::uint32_t>& passages, double head, double bytes);

  const MachineMap& map_;
  WayBook ways_;
  std::vector<Pe> pes_;
  std::vector<Queue> queues_;
  std::vector<Line> lines_;  ///< kEngines of each PE, then both ends of each queue
  Memories memories_;
  std::vector<Flight> flights_;
  std::vector<std::int32_t> idle_;
  std::unordered_map<std::uint64_t, RehearsalTl::QueuesOfPe> directions_;
  using Event = std::tuple<double, std::uint64_t, std::int32_t>;  // (time, number, line or -1 - flight)
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t event_number_ = 0;
  double end_ = 0;
};

std::uint64_t number_of(PeCoord pe) { return std::uint64_t{pe.sip} << 32 | std::uint64_t{pe.cube} << 16 | pe.pe; }

/// The queues of the group: one for each ring.
void Rehearsal::find_queues(const Collective& collective) {
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint16_t, std::int32_t>> rings;
  std::vector<NeighbourEntry> entries;
  for (std::size_t rank = 0; rank < collective.group().sips.size(); ++rank) {
    for (const NeighbourEntry& entry : collective.neighbours(static_cast<int>(rank))) entries.push_back(entry);
  }
  for (const NeighbourEntry& entry : entries) {
    rings[number_of(entry.self)][entry.ring] = static_cast<std::int32_t>(queues_.size());
    Queue queue;
    queue.from = entry.source;
    queue.to = entry.self;
    queue.slots = entry.slots;
    queues_.push_back(std::move(queue));
  }
  for (const NeighbourEntry& entry : entries) {
    RehearsalTl::Queues& both = directions_[number_of(entry.self)][entry.direction.code()];
    both.recv = rings[number_of(entry.self)].at(entry.ring);
    both.send = rings[number_of(entry.peer)].at(entry.peer_ring);
  }
}

/// What another rank that is a PE has there.
CallTensors at_home(CallTensors tensors, PeCoord home) {
  for (LaunchMessage::TensorArg* argument : {&tensors.in, &tensors.out}) {
    for (TensorShard& shard : argument->shards) {
      if (shard.rows * shard.cols > 0) shard.owner = home;
    }
  }
  return tensors;
}

bool Rehearsal::record(const Collective& collective, const CallTensors& tensors, std::size_t most) {
  const Group& group = collective.group();
  std::map<std::uint16_t, double> starts;  // of the next launch on a SIP
  std::size_t total = 0;
  for (std::size_t rank = 0; rank < group.sips.size(); ++rank) {
    const CallTensors here = group.ranks_are_pes() ? at_home(tensors, group.pes[rank]) : tensors;
    const TensorPlaces places(map_, here);
    const Collective::Launch launch = collective.bind(static_cast<int>(rank), here.call, here.in, here.out);
    RehearsalTl tl(map_, places, launch.call, most - total);
    for (const PeCoord coord : launch.targets) {
      Pe pe(coord, map_.rates(coord));
      tl.begin(coord, directions_[number_of(coord)], group.queue.slot_bytes, pe.ops);
      try {
        launch.body(tl);
      } catch (const RehearsalTl::CannotRehearse&) {
        return false;
      }
      total += pe.ops.size();
      pe.cpu = starts[coord.sip];
      pes_.push_back(std::move(pe));
    }
    if (group.ranks_are_pes()) starts[group.pes[rank].sip] += seconds(map_.worst_command_latency);
  }
  lines_.resize(kEngines * pes_.size() + 2 * queues_.size());
  for (std::size_t p = 0; p < pes_.size(); ++p) link(p);
  return true;
}

/// Tells the lines their PE, and ops who waits for them.
void Rehearsal::link(std::size_t p) {
  Pe& pe = pes_[p];
  for (std::size_t line = 0; line < kEngines; ++line) lines_[kEngines * p + line].pe = static_cast<std::int32_t>(p);
  pe.states.resize(pe.ops.size());
  pe.edges.assign(2 * pe.ops.size(), kNothing);
  for (std::size_t i = 0; i < pe.ops.size(); ++i) {
    if (pe.ops[i].kind == Kind::send || pe.ops[i].kind == Kind::recv)
      lines_[index(line_of(static_cast<std::int32_t>(p), pe.ops[i]))].pe = static_cast<std::int32_t>(p);
    if (pe.ops[i].kind == Kind::wait) continue;
    for (std::size_t n = 0; n < 2; ++n) {
      const std::int32_t needed = pe.ops[i].needs[n];
      if (needed == kNothing) continue;
      ++pe.states[i].pending;
      pe.edges[2 * i + n] = std::exchange(pe.states[index(needed)].after, static_cast<std::int32_t>(2 * i + n));
    }
  }
}

std::int32_t Rehearsal::line_of(std::int32_t pe, const RehearsedOp& op) const {
  switch (op.kind) {
    case Kind::load:
      return kEngines * pe + kLoads;
    case Kind::store:
      return kEngines * pe + kStores;
    case Kind::math:
      return kEngines * pe + kMathEngine;
    default:
      return static_cast<std::int32_t>(kEngines * pes_.size()) + 2 * op.place + (op.kind == Kind::recv ? 1 : 0);
  }
}

std::optional<double> Rehearsal::run() {
  for (std::size_t pe = 0; pe < pes_.size(); ++pe) issue(static_cast<std::int32_t>(pe));
  while (!events_.empty()) {
    const auto [time, number, what] = events_.top();
    events_.pop();
    if (what < 0) {
      pass(-what - 1, time);
    } else {
      execute(what, time);
    }
  }
  for (const Pe& pe : pes_) {
    if (pe.next < pe.ops.size() || pe.left > 0) return {};  // blocked: the machine will say by what
  }
  return end_;
}

/// PE_CPU goes on until a queue is full or it has to wait.
void Rehearsal::issue(std::int32_t p) {
  Pe& pe = pes_[index(p)];
  while (pe.next < pe.ops.size()) {
    const auto i = static_cast<std::int32_t>(pe.next);
    const RehearsedOp& op = pe.ops[pe.next];
    if (op.kind == Kind::wait) {
      const double when = pe.states[index(op.needs[0])].done;
      pe.cpu += pe.engines.dispatch;
      ++pe.next;
      if (when == kNever) {
        pe.waits = op.needs[0];
        return;
      }
      pe.cpu = std::max(pe.cpu, when);
      continue;
    }
    if (op.kind == Kind::fence) {
      pe.cpu += pe.engines.dispatch;
      ++pe.next;
      if (pe.left > 0) {
        pe.fence = true;
        return;
      }
      pe.cpu = std::max(pe.cpu, pe.last);
      continue;
    }
    const std::int32_t id = line_of(p, op);
    Line& line = lines_[index(id)];
    if (line.ops.size() >= pe.engines.depth(op.kind)) {
      pe.blocked = id;
      return;
    }
    pe.cpu += pe.engines.dispatch;
    pe.states[pe.next].issued = pe.cpu;
    ++pe.next;
    ++pe.left;
    line.ops.push_back(i);
    if (line.ops.size() == 1) consider(id);
  }
}

/// Puts the first op of a line among the events, if nothing but time keeps it from being done.
void Rehearsal::consider(std::int32_t id) {
  Line& line = lines_[index(id)];
  if (line.due || line.ops.empty()) return;
  const Pe& pe = pes_[index(line.pe)];
  const State& state = pe.states[index(line.ops.front())];
  if (state.pending > 0) return;
  double time = std::max({state.issued, state.ready, line.free});
  const RehearsedOp& op = pe.ops[index(line.ops.front())];
  if (op.kind == Kind::send || op.kind == Kind::recv) {
    Queue& queue = this->queue(op.place);
    const std::deque<double>& tokens = op.kind == Kind::send ? queue.credits : queue.arrivals;
    if (tokens.empty()) return;
    time = std::max(time, tokens.front());
  }
  line.due = true;
  events_.emplace(time, event_number_++, id);
}

void Rehearsal::execute(std::int32_t id, double now) {
  Line& line = lines_[index(id)];
  const std::int32_t p = line.pe, i = line.ops.front();
  line.ops.pop_front();
  line.due = false;
  Pe& pe = pes_[index(p)];
  const RehearsedOp& op = pe.ops[index(i)];
  double end = now;
  switch (op.kind) {
    case Kind::load:
      end = load(p, line, op, now);
      break;
    case Kind::store:
      end = store(p, line, op, now);
      break;
    case Kind::send:
      end = send(p, line, op, now);
      break;
    case Kind::recv:
      end = receive(p, line, op, now);
      break;
    default:
      end = calculate(p, line, op, now);
      break;
  }
  if (op.kind == Kind::recv) consider(id - 1);
  done(p, i, end);
  consider(id);
  if (pe.blocked == id) {
    pe.blocked = kNothing;
    pe.cpu = std::max(pe.cpu, now);
    issue(p);
  }
}

void Rehearsal::done(std::int32_t p, std::int32_t i, double time) {
  Pe& pe = pes_[index(p)];
  pe.states[index(i)].done = time;
  pe.last = std::max(pe.last, time);
  end_ = std::max(end_, time);
  --pe.left;
  for (std::int32_t edge = pe.states[index(i)].after; edge != kNothing; edge = pe.edges[index(edge)]) {
    const std::int32_t after = edge / 2;
    State& state = pe.states[index(after)];
    state.ready = std::max(state.ready, time);
    if (--state.pending == 0 && state.issued != kNever) consider(line_of(p, pe.ops[index(after)]));
  }
  if (pe.waits == i || (pe.fence && pe.left == 0)) {
    pe.cpu = std::max(pe.cpu, pe.fence ? pe.last : time);
    pe.waits = kNothing;
    pe.fence = false;
    issue(p);
  }
}

double Rehearsal::through(const std::vector<std::uint32_t>& passages, double head, double bytes) {
  for (const std::uint32_t id : passages) head = ways_[id].pass(head, bytes);
  return head;
}

/// Waits until no more bytes are under way with these than the DMA engine has room for.
double Rehearsal::room(std::int32_t p, Line& line, double now, double bytes) {
  const double most = pes_[index(p)].engines.dma_bytes;
  // They end in any order.
  while (!line.under_way.empty() && (line.under_way.top().first <= now || line.bytes_under_way + bytes > most)) {
    now = std::max(now, line.under_way.top().first);
    line.bytes_under_way -= line.under_way.top().second;
    line.under_way.pop();
  }
  return now;
}

Reach& Rehearsal::reach(std::int32_t p, std::int32_t place) {
  Pe& pe = pes_[index(p)];
  const auto [found, fresh] = pe.ways_to.try_emplace(place, 0);
  if (fresh) {
    const PeCoord owner{pe.coord.sip, static_cast<std::uint16_t>(place / map_.pes_per_cube),
                        static_cast<std::uint16_t>(place % map_.pes_per_cube)};
    found->second = memories_.add(pe.coord, owner);
  }
  return memories_[found->second];
}

double Rehearsal::load(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  const Engines& engines = pes_[index(p)].engines;
  now = room(p, line, now, op.bytes) + engines.dma_setup;
  Reach& memory = reach(p, op.place);
  Slice& slice = memories_.slice_of(memory);
  const double bytes = op.bytes;
  double head = slice.read(now + memory.to.seconds, op.at, bytes) + memory.seconds;
  head = through(memory.from.out, head, bytes);
  head = ways_[ways_.port_in(pes_[index(p)].coord)].pass(head, bytes);
  const double first = head + memory.from.seconds;
  const double end =
      first + engines.tcm_latency + bytes / std::min(memory.from.least_bytes_per_second, slice.bytes_per_second());
  line.free = now + engines.dispatch;
  line.under_way.emplace(first, bytes);  // its packets give way to the next load's, one by one
  line.bytes_under_way += bytes;
  return end;
}

double Rehearsal::store(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  const Engines& engines = pes_[index(p)].engines;
  now = room(p, line, now, op.bytes) + engines.dma_setup;
  Reach& memory = reach(p, op.place);
  const double bytes = op.bytes;
  double head = ways_[ways_.port_out(pes_[index(p)].coord)].pass(now + engines.tcm_latency, bytes);
  line.free = head + bytes / memory.to.least_bytes_per_second;
  head = through(memory.to.out, head, bytes) + memory.to.seconds;
  head = memories_.slice_of(memory).write(head, op.at, bytes);
  const double first = head + memory.from.seconds, end = first + bytes / memory.to.least_bytes_per_second;
  line.under_way.emplace(first, bytes);
  line.bytes_under_way += bytes;
  return end;
}

Rehearsal::Queue& Rehearsal::queue(std::int32_t id) {
  Queue& queue = queues_[index(id)];
  if (queue.used) return queue;
  queue.used = true;
  queue.way = ways_.way(queue.from, queue.to);
  if (map_.packet_latency)
    queue.back = seconds(map_.packet_latency(map_.pe(queue.to), map_.pe(queue.from), map_.engines.credit_bytes));
  queue.credits.assign(index(queue.slots), 0.0);
  return queue;
}

double Rehearsal::send(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  Queue& queue = this->queue(op.place);
  queue.credits.pop_front();
  Passage& port = ways_[ways_.port_out(pes_[index(p)].coord)];
  const Engines& engines = pes_[index(p)].engines;
  now += kSend + engines.tcm_latency;
  double head = port.pass(now, op.bytes);
  line.free = now + op.bytes / engines.tcm;
  const double handed_over = line.free;
  head = through(queue.way.out, head, op.bytes);
  std::int32_t id = static_cast<std::int32_t>(flights_.size());
  if (idle_.empty()) {
    flights_.emplace_back();
  } else {
    id = idle_.back();
    idle_.pop_back();
  }
  flights_[index(id)] = {op.place, 0, static_cast<double>(op.bytes)};
  const bool further = !queue.way.links.empty();
  events_.emplace(head + (further ? ways_.further_link_seconds() : 0), event_number_++, -1 - id);
  return handed_over;
}

/// The head of a message is at its next link between SIPs, or has passed the last.
void Rehearsal::pass(std::int32_t id, double now) {
  Flight& flight = flights_[index(id)];
  Queue& queue = queues_[index(flight.queue)];
  double head = now;
  if (flight.link < queue.way.links.size()) {
    head = ways_[queue.way.links[flight.link++]].pass(now, flight.bytes);
    const bool further = flight.link < queue.way.links.size();
    events_.emplace(head + (further ? ways_.further_link_seconds() : 0), event_number_++, -1 - id);
    return;
  }
  head = through(queue.way.in, head, flight.bytes);
  head = ways_[ways_.port_in(queue.to)].pass(head, flight.bytes);
  const double links = static_cast<double>(queue.way.links.size());
  const double rest = queue.way.seconds - links * ways_.further_link_seconds();
  queue.arrivals.push_back(head + rest + flight.bytes / queue.way.least_bytes_per_second);
  const std::int32_t line = static_cast<std::int32_t>(kEngines * pes_.size()) + 2 * flight.queue + 1;
  idle_.push_back(id);
  consider(line);
}

double Rehearsal::receive(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  const Engines& engines = pes_[index(p)].engines;
  Queue& queue = this->queue(op.place);
  queue.arrivals.pop_front();
  const double end = now + kReceive + 2 * engines.tcm_latency + op.bytes / engines.tcm;
  line.free = end;
  queue.credits.push_back(end + queue.back);
  return end;
}

double Rehearsal::calculate(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  line.free = now + pes_[index(p)].engines.math(op);
  return line.free;
}

}  // namespace

std::optional<double> rehearse(const MachineMap& map, const Collective& collective, const CallTensors& tensors,
                               std::size_t most_ops) {
  Rehearsal rehearsal(map, collective);
  if (!rehearsal.record(collective, tensors, most_ops)) return {};
  return rehearsal.run();
}

}  // namespace kernbench::ccl
