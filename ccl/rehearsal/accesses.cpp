/// Loads and stores: DMA engines, ways, slices.
#include <algorithm>

#include "ccl/rehearsal/clocks.h"

namespace kernbench::ccl {

/// Whether it is known when no more bytes are under way with an op's than the DMA engine has room for.
bool Rehearsal::has_room(Line& line, const RehearsedOp& op) {
  const double most = pes_[index(line.pe)].engines.dma_bytes;
  while (line.bytes_under_way > 0 && line.bytes_under_way + op.bytes > most) {
    if (line.under_way.empty()) return false;
    line.room = std::max(line.room, line.under_way.top().first);
    line.bytes_under_way -= line.under_way.top().second;
    line.under_way.pop();
  }
  return true;
}

std::uint32_t Rehearsal::way_to(std::int32_t p, std::int32_t place) {
  Pe& pe = pes_[index(p)];
  const auto [found, fresh] = pe.ways_to.try_emplace(place, 0);
  if (fresh) {
    const PeCoord owner{pe.coord.sip, static_cast<std::uint16_t>(place / map_.pes_per_cube),
                        static_cast<std::uint16_t>(place % map_.pes_per_cube)};
    found->second = memories_.add(pe.coord, owner);
    due_.resize(memories_.slices(), HbmSlice::kNever);
  }
  return found->second;
}

/// The number of a new access, whose bytes are under way.
std::int32_t Rehearsal::access(std::int32_t id, std::int32_t i) {
  Line& line = lines_[index(id)];
  const RehearsedOp& op = pes_[index(line.pe)].ops[index(i)];
  line.bytes_under_way += op.bytes;
  return accesses_.add({id, i, static_cast<double>(op.bytes), way_to(line.pe, op.place), 0});
}

void Rehearsal::load(std::int32_t id, std::int32_t i, double now) {
  Line& line = lines_[index(id)];
  const Pe& pe = pes_[index(line.pe)];
  const std::int32_t number = access(id, i);
  const Reach& memory = memories_[accesses_[number].way];
  HbmSlice& slice = memories_.slice(memory.slice);
  // The requests of one that had to wait for room follow those that give way to them.
  const double apart =
      line.room >= now ? 1 / std::min(memory.from.least_bytes_per_second, slice.bytes_per_second()) : 0;
  now += pe.engines.dma_setup;
  line.free = now + pe.engines.dispatch;
  slice.read(now + memory.to.seconds, pe.ops[index(i)].at, pe.ops[index(i)].bytes, apart, number);
  schedule(memory.slice);
}

void Rehearsal::store(std::int32_t id, std::int32_t i, double now) {
  Line& line = lines_[index(id)];
  const Pe& pe = pes_[index(line.pe)];
  const std::int32_t number = access(id, i);
  const Reach& memory = memories_[accesses_[number].way];
  const double bytes = pe.ops[index(i)].bytes, apart = 1 / memory.to.least_bytes_per_second;
  now += pe.engines.dma_setup;
  double head = ways_[ways_.port_out(pe.coord)].pass(now + pe.engines.tcm_latency, bytes);
  line.free = head + bytes * apart;
  head = through(memory.to.out, head, bytes) + memory.to.seconds;
  memories_.slice(memory.slice).write(head, pe.ops[index(i)].at, bytes, apart, number);
  schedule(memory.slice);
}

void Rehearsal::schedule(std::uint32_t slice) {
  const double time = memories_.slice(slice).next();
  if (time >= due_[slice]) return;
  due_[slice] = time;
  events_.push({time, event_number_++, static_cast<std::int32_t>(lines_.size() + slice)});
}

void Rehearsal::serve(std::uint32_t slice, double now) {
  if (now != due_[slice]) return;  // it was asked for earlier since
  due_[slice] = HbmSlice::kNever;
  std::vector<HbmSlice::Progress> served = std::move(progress_);
  memories_.slice(slice).advance(now, served);
  for (const HbmSlice::Progress& progress : served) this->progress(progress);
  served.clear();
  progress_ = std::move(served);
  schedule(slice);
}

/// Its packets give way to the next access's: of a load as the first comes, of a store as its first train is answered.
void Rehearsal::progress(const HbmSlice::Progress& progress) {
  Access& access = accesses_[progress.id];
  Line& line = lines_[index(access.line)];
  const Pe& pe = pes_[index(line.pe)];
  const Reach& memory = memories_[access.way];
  const bool load = pe.ops[index(access.op)].kind == Kind::load;
  const HbmSlice& slice = memories_.slice(memory.slice);
  const Way& back = memory.from;
  if (progress.first) {
    double head = progress.begin + (load ? memory.seconds : slice.answer_seconds());
    if (load) {
      head = through(back.out, head, access.bytes);
      head = ways_[ways_.port_in(pe.coord)].pass(head, access.bytes);
    }
    access.first = head + back.seconds;
    line.under_way.emplace(access.first, access.bytes);
    consider(access.line);
  }
  if (!progress.last) return;
  double end = progress.end + slice.answer_seconds() + back.seconds;
  if (load) {
    const double rate = std::min(back.least_bytes_per_second, slice.bytes_per_second());
    end = std::max(access.first + access.bytes / rate, progress.end + memory.seconds + back.seconds);
    end += pe.engines.tcm_latency;
  }
  accesses_.remove(progress.id);
  done(line.pe, access.op, end);
}

}  // namespace kernbench::ccl
