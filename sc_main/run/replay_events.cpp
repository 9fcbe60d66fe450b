#include "sc_main/run/replay_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "tlm/machine/names.h"

namespace kernbench {

/// What one SIP has published while it did a batch.
struct ReplayEvents::Tape {
  enum class What : std::uint8_t { number, text, change, op, kernel };
  struct Event {
    What what = What::number;
    std::uint32_t of = 0;     ///< family of its track; number of its record
    std::uint64_t value = 0;  ///< of text, its number
    Ps begin = 0, end = 0;
  };
  Batch batch;
  Ps begin = 0, end = 0;
  std::vector<Event> events;
  std::vector<OpRecord> records;
  std::vector<std::string> texts;
  std::vector<std::uint32_t> last;  ///< event of a family, counted from 1, while it is recorded
  double length() const { return static_cast<double>(end - begin); }
};

/// Work that ends without being told apart from other work is not kept.
struct ReplayEvents::Recording final : ReplayRecord::Done {
  Recording(Tape*& running, TapePtr tape) : running(running), tape(std::move(tape)) { running = this->tape.get(); }
  ~Recording() override { stop(); }
  void stop() {
    if (running == tape.get()) running = nullptr;
  }
  Tape*& running;
  const TapePtr tape;
};

namespace {
constexpr std::size_t kNoSip = std::numeric_limits<std::size_t>::max();
/// A queue of a repeat: no other has its number.
constexpr unsigned kQueueBits = 40;

/// The name of a part of SIP k: "sip<k>.…", or "fabric.link<k>.…", from the switch to it.
struct PartName {
  explicit PartName(std::string_view name) {
    for (const std::string_view start : {"sip", "fabric.link"}) {
      if (name.substr(0, start.size()) != start) continue;
      const char *begin = name.data() + start.size(), *end = name.data() + name.size();
      std::size_t number = 0;
      const auto read = std::from_chars(begin, end, number);
      if (read.ec != std::errc() || read.ptr == end || *read.ptr != '.') continue;
      sip = number;
      before = start;
      after = {read.ptr, static_cast<std::size_t>(end - read.ptr)};
    }
  }
  std::string of(std::size_t other) const { return fmt::format("{}{}{}", before, other, after); }
  bool leaves() const { return before != "sip" || names::matches(".io0.link*.**", std::string(after)); }
  std::size_t sip = kNoSip;        ///< of other names
  std::string_view before, after;  ///< of its number
};
std::string name_of(std::size_t sip) { return names::sip(static_cast<std::uint16_t>(sip)); }

/// All that is said of SIP `from` in `text` is said of `to`.
std::string moved_text(std::string text, int from, int to) {
  if (from == to) return text;
  const std::string old = name_of(static_cast<std::size_t>(from)) + ".",
                    own = name_of(static_cast<std::size_t>(to)) + ".";
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + own.size()))
    text.replace(at, old.size(), own);
  return text;
}
}  // namespace

ReplayEvents::~ReplayEvents() = default;

// What is simulated.

TrackId ReplayEvents::add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) {
  Track track;
  track.to = to_.add_track(name, kind, labels);
  const PartName part(name);
  const bool repeats = may_repeat_ && part.sip < sips_;
  if (track.to == kNoTrack && (!repeats || to_.wants(name) || !wanted_somewhere(name))) return kNoTrack;
  if (repeats) {
    const auto [known, is_new] = by_name_.emplace(part.of(0), static_cast<std::uint32_t>(families_.size()));
    if (is_new) families_.emplace_back(sips_, kNoTrack);
    families_[known->second][part.sip] = track.to;
    track.family = known->second;
    track.sip = part.sip;
    const auto refresh = std::find(labels.begin(), labels.end(), "refresh");
    if (refresh != labels.end()) track.by_time = static_cast<std::uint64_t>(refresh - labels.begin());
    track.leaves = part.leaves();
  }
  tracks_.push_back(track);
  return TrackId{static_cast<std::uint32_t>(tracks_.size() - 1)};
}

/// What is simulated on one SIP may be repeated on one that somebody looks at.
bool ReplayEvents::wanted_somewhere(const std::string& component) {
  const auto [known, is_new] = somewhere_.emplace(component, false);
  if (!is_new) return known->second;
  const PartName part(component);
  for (std::size_t sip = 0; sip < sips_ && !known->second; ++sip) known->second = to_.wants(part.of(sip));
  return known->second;
}

ReplayEvents::Tape* ReplayEvents::tape_of(const Track& track, Ps begin) {
  Tape* tape = track.sip < sips_ ? running(track.sip, track.leaves) : nullptr;
  if (tape == nullptr || begin < tape->begin) return nullptr;
  if (tape->last.size() < families_.size()) tape->last.resize(families_.size());
  return tape;
}

/// As coarse as what follows takes it.
void ReplayEvents::keep(const Track& track, Ps begin, Ps end, std::uint64_t value) {
  if (value == 0 || end <= begin || value == track.by_time) return;
  Tape* tape = tape_of(track, begin);
  if (tape == nullptr) return;
  std::uint32_t& last = tape->last[track.family];
  if (last != 0) {
    Tape::Event& before = tape->events[last - 1];
    if (before.value == value && begin >= before.begin &&
        begin - before.begin <= before.end - before.begin + to_.resolution()) {
      before.end = std::max(before.end, end);
      return;
    }
  }
  tape->events.push_back({Tape::What::number, track.family, value, begin, end});
  last = static_cast<std::uint32_t>(tape->events.size());
}

void ReplayEvents::interval(TrackId id, Ps begin, Ps end, std::uint64_t value) {
  const Track& track = this->track(id);
  if (track.to != kNoTrack) to_.interval(track.to, begin, end, value);
  keep(track, begin, end, value);
}

void ReplayEvents::interval(TrackId id, Ps begin, Ps end, const std::string& text) {
  const Track& track = this->track(id);
  if (track.to != kNoTrack) to_.interval(track.to, begin, end, text);
  Tape* tape = end > begin && end - begin >= to_.resolution() ? tape_of(track, begin) : nullptr;
  if (tape == nullptr) return;
  tape->events.push_back({Tape::What::text, track.family, tape->texts.size(), begin, end});
  tape->texts.push_back(text);
}

void ReplayEvents::change(TrackId id, Ps time, std::uint64_t value) {
  const Track& track = this->track(id);
  if (track.to != kNoTrack) to_.change(track.to, time, value);
  Tape* tape = tape_of(track, time);
  if (tape == nullptr) return;
  constexpr Ps kLevel = 10;  // of Observer::resolution()
  std::uint32_t& last = tape->last[track.family];
  if (last != 0 && (time - tape->events[last - 1].begin) / kLevel < to_.resolution()) {
    tape->events[last - 1].value = value;
    return;
  }
  tape->events.push_back({Tape::What::change, track.family, value, time, time});
  last = static_cast<std::uint32_t>(tape->events.size());
}

void ReplayEvents::keep(const OpRecord& record, bool kernel) {
  const std::size_t sip = PartName(record.component).sip;
  Tape* tape = sip < sips_ ? running(sip, false) : nullptr;
  if (tape == nullptr || record.start < tape->begin) return;
  // Sends and receives of queues belong together.
  if (record.queue == 0 && !wanted_somewhere(record.component)) return;
  tape->events.push_back({kernel ? Tape::What::kernel : Tape::What::op,
                          static_cast<std::uint32_t>(tape->records.size()), 0, record.start, record.end});
  tape->records.push_back(record);
}

void ReplayEvents::op(const OpRecord& record) {
  to_.op(record);
  keep(record, false);
}

void ReplayEvents::kernel(const OpRecord& record) {
  to_.kernel(record);
  keep(record, true);
}

std::unique_ptr<ReplayRecord::Done> ReplayEvents::begin(const Batch& batch) {
  auto tape = std::make_shared<Tape>();
  tape->batch = batch;
  tape->begin = now_();
  return std::make_unique<Recording>(running(static_cast<std::size_t>(batch.sip), batch.links), std::move(tape));
}

void ReplayEvents::end(int, Done& done) {
  Recording& recording = static_cast<Recording&>(done);
  recording.stop();
  recording.tape->end = now_();
  recording.tape->last = {};
}

/// Parts of a collective come one after the other: messages match in those of one occurrence alone.
void ReplayEvents::simulated(Work work, const Done& done, Ps, bool afresh) {
  const TapePtr& tape = static_cast<const Recording&>(done).tape;
  Known& known = known_[work.kind];
  TapePtr& part = known.parts[work.part];
  if (work.part == 0) {
    if (afresh) known.occurrences = known.time = 0;
    known.occurrences += 1;
    known.time += tape->length();
    const auto off = [mean = known.time / known.occurrences](const Tape& one) { return std::abs(one.length() - mean); };
    known.takes = afresh || part == nullptr || off(*tape) <= off(*part);
  }
  if (known.takes) part = tape;
  for (const Repeat& repeat : known.waiting[work.part]) tell(*part, repeat);
  known.waiting.erase(work.part);
}

// What is not.

void ReplayEvents::repeated(Work work, const Batch& batch, Ps begin, Ps end) {
  if (work.part == 0) ++repeats_;
  Known& known = known_[work.kind];
  const Repeat repeat{batch, begin, end, repeats_};
  if (const auto part = known.parts.find(work.part); part != known.parts.end()) {
    tell(*part->second, repeat);
  } else {
    known.waiting[work.part].push_back(repeat);
  }
}

namespace {
/// Times of an occurrence, as those of a repeat: in between in proportion, so that what does not overlap still does
/// not.
struct Stretched {
  Ps from = 0, length = 0;  ///< of the occurrence
  Ps begin = 0, takes = 0;  ///< of the repeat
  Ps operator()(Ps time) const {
    const Ps since = time - from;
    if (takes == length) return begin + since;
    if (since >= length) return begin + takes + (since - length);
    return begin +
           static_cast<Ps>(static_cast<double>(since) * static_cast<double>(takes) / static_cast<double>(length));
  }
};

Stretched stretched(Ps from, Ps to, Ps begin, Ps end) { return {from, to - from, begin, std::max(end, begin) - begin}; }
}  // namespace

void ReplayEvents::tell(const Tape& tape, const Repeat& repeat) {
  // What passes over links comes until the next collective begins.
  const Ps end = tape.batch.links ? repeat.begin + (tape.end - tape.begin) : repeat.end;
  const Stretched at = stretched(tape.begin, tape.end, repeat.begin, end);
  const auto sip = static_cast<std::size_t>(repeat.batch.sip);
  ops_.clear();
  to_.repeats(true);
  for (const Tape::Event& event : tape.events) {
    if (event.what == Tape::What::op) {
      to_.op(moved(tape, repeat, tape.records[event.of]));
    } else if (event.what == Tape::What::kernel) {
      to_.kernel(moved(tape, repeat, tape.records[event.of]));
    } else if (const TrackId track = families_[event.of][sip]; track == kNoTrack) {
      continue;
    } else if (event.what == Tape::What::number) {
      to_.interval(track, at(event.begin), at(event.end), event.value);
    } else if (event.what == Tape::What::text) {
      to_.interval(track, at(event.begin), at(event.end),
                   moved_text(tape.texts[event.value], tape.batch.sip, repeat.batch.sip));
    } else {
      to_.change(track, at(event.begin), event.value);
    }
  }
  to_.repeats(false);
}

namespace {
/// "va:0x…" of a tensor of the occurrence, as the address in that tensor of the repeat.
std::string moved_address(const std::string& text, const ReplayRecord::Batch& from, const ReplayRecord::Batch& to) {
  Va va = 0;
  std::from_chars(text.data() + 5, text.data() + text.size(), va, 16);
  for (std::size_t i = 0; i < std::min(from.tensors.size(), to.tensors.size()); ++i) {
    const ReplayRecord::Batch::Range& range = from.tensors[i];
    if (va >= range.begin && va - range.begin < range.bytes)
      return fmt::format("va:{:#x}", to.tensors[i].begin + (va - range.begin));
  }
  return text;
}
}  // namespace

OpRecord ReplayEvents::moved(const Tape& tape, const Repeat& repeat, const OpRecord& record) {
  const Stretched at = stretched(tape.begin, tape.end, repeat.begin, repeat.end);
  const Batch &from = tape.batch, &to = repeat.batch;
  OpRecord own = record;
  own.start = at(record.start);
  own.end = at(record.end);
  Ps time = record.start;
  for (Ps& spent : own.spent) {
    const Ps until = time + spent;
    spent = at(until) - at(time);
    time = until;
  }
  own.component = moved_text(record.component, from.sip, to.sip);
  for (OpRecord::Param& param : own.params)
    param.text = param.text.compare(0, 5, "va:0x") == 0 ? moved_address(param.text, from, to)
                                                        : moved_text(param.text, from.sip, to.sip);
  if (record.op != 0) own.op = ops_.try_emplace(record.op, next_op_).first->second;
  if (own.op == next_op_) ++next_op_;
  // A mark names its kernel alone.
  const auto call = std::find_if(from.calls.begin(), from.calls.end(), [&](const Batch::Call& one) {
    return record.launch != 0 ? one.message == record.launch : one.kernel == record.kernel;
  });
  if (call != from.calls.end()) {
    const Batch::Call& same = to.calls[static_cast<std::size_t>(call - from.calls.begin())];
    if (record.launch != 0) own.launch = same.message;
    if (!record.kernel.empty()) own.kernel = same.kernel;
  }
  if (record.queue != 0) own.queue = repeat.number << kQueueBits | record.queue;
  return own;
}

}  // namespace kernbench
