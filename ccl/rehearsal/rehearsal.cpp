#include "ccl/rehearsal/rehearsal.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ccl/rehearsal/clocks.h"

namespace kernbench::ccl {
namespace {

std::uint64_t number_of(PeCoord pe) { return std::uint64_t{pe.sip} << 32 | std::uint64_t{pe.cube} << 16 | pe.pe; }

/// The call of another rank: of a PE, with what it has there; of a send_recv, as far on.
CallTensors of_rank(const Group& group, std::size_t rank, CallTensors tensors) {
  if (group.ranks_are_pes()) {
    for (LaunchMessage::TensorArg* argument : {&tensors.in, &tensors.out}) {
      for (TensorShard& shard : argument->shards) {
        if (shard.rows * shard.cols > 0) shard.owner = group.pes[rank];
      }
    }
  }
  if (tensors.call.op == CollectiveOp::send_recv) {
    const auto ranks = static_cast<int>(group.sips.size()), moved = static_cast<int>(rank) - tensors.first;
    for (int* other : {&tensors.call.to, &tensors.call.from}) *other = (*other + moved + ranks) % ranks;
  }
  return tensors;
}

/// Ranks in the order in which their launches are sent.
std::vector<std::size_t> order_of_launches(const Group& group, const CallTensors& tensors) {
  std::vector<std::size_t> ranks(group.sips.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  if (group.ranks_are_pes())
    std::rotate(ranks.begin(), ranks.begin() + tensors.first, ranks.begin() + tensors.first + 1);
  return ranks;
}

}  // namespace

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

bool Rehearsal::record(const Collective& collective, const CallTensors& tensors, std::size_t most) {
  const Group& group = collective.group();
  std::map<std::uint16_t, double> starts;  // of the next launch on a SIP
  std::size_t total = 0;
  for (const std::size_t rank : order_of_launches(group, tensors)) {
    const CallTensors here = of_rank(group, rank, tensors);
    const TensorPlaces places(map_, here);
    const Collective::Launch launch = collective.bind(static_cast<int>(rank), here.call, here.in, here.out);
    RehearsalTl tl(map_, places, launch.call, *launch.program, most - total);
    for (const PeCoord coord : launch.targets) {
      Pe pe(coord, map_.rates(coord));
      tl.begin(coord, directions_[number_of(coord)], group.queue.slot_bytes, pe.ops);
      try {
        launch.kernel.entry(launch.kernel.arguments.data(), tl);
      } catch (const RehearsalTl::CannotRehearse&) {
        return false;
      }
      total += pe.ops.size();
      pe.cpu = starts[coord.sip];
      pes_.push_back(std::move(pe));
    }
    // The command to its cube, one that may be in service, and the way to the PE: IoCpu's start time.
    if (group.ranks_are_pes()) {
      starts[group.pes[rank].sip] += seconds(2 * map_.io_command + map_.worst_command_latency);
    }
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
  // From the last on, so that those that wait for one op come in the order in which they are issued.
  for (std::size_t i = pe.ops.size(); i-- > 0;) {
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
    const auto [time, number, what] = events_.pop();
    if (what < 0) {
      pass(-what - 1, time);
    } else if (index(what) >= lines_.size()) {
      serve(static_cast<std::uint32_t>(index(what) - lines_.size()), time);
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
  const RehearsedOp& op = pe.ops[index(line.ops.front())];
  if ((op.kind == Kind::load || op.kind == Kind::store) && !has_room(line, op)) return;
  double time = std::max({state.issued, state.ready, line.free, line.room});
  if (op.kind == Kind::send || op.kind == Kind::recv) {
    Queue& queue = this->queue(op.place);
    const std::deque<double>& tokens = op.kind == Kind::send ? queue.credits : queue.arrivals;
    if (tokens.empty()) return;
    time = std::max(time, tokens.front());
  }
  line.due = true;
  events_.push({time, event_number_++, id});
}

void Rehearsal::execute(std::int32_t id, double now) {
  Line& line = lines_[index(id)];
  const std::int32_t p = line.pe, i = line.ops.front();
  line.ops.pop_front();
  line.due = false;
  Pe& pe = pes_[index(p)];
  const RehearsedOp& op = pe.ops[index(i)];
  switch (op.kind) {
    case Kind::load:
      load(id, i, now);
      break;
    case Kind::store:
      store(id, i, now);
      break;
    case Kind::send:
      done(p, i, send(p, line, op, now));
      break;
    case Kind::recv: {
      const double end = receive(p, line, op, now);
      consider(id - 1);
      done(p, i, end);
      break;
    }
    default:
      done(p, i, calculate(p, line, op, now));
      break;
  }
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

double Rehearsal::calculate(std::int32_t p, Line& line, const RehearsedOp& op, double now) {
  line.free = now + pes_[index(p)].engines.math(op);
  return line.free;
}

std::optional<double> rehearse(const MachineMap& map, const Collective& collective, const CallTensors& tensors,
                               std::size_t most_ops) {
  Rehearsal rehearsal(map, collective);
  if (!rehearsal.record(collective, tensors, most_ops)) return {};
  const std::optional<double> first = rehearsal.run();
  if (!first || !rehearsal.holds_up_the_next()) return first;
  Rehearsal next(map, collective, rehearsal);
  next.record(collective, tensors, most_ops);
  return next.run();
}

}  // namespace kernbench::ccl
