#include "waves/trace_writer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "tlm/machine/names.h"
#include "waves/track_table.h"

namespace kernbench {

namespace {
/// A level changes with every packet: it is told more rarely than states.
constexpr Ps kLevel = 10;
constexpr std::size_t kBuffer = std::size_t{1} << 20;
/// Delays of OpRecord::spent, as arguments of a slice.
constexpr std::array<const char*, 7> kDelayNames{"setup", "mesh", "ucie", "fabric", "wire", "memory", "contention"};

/// Most of what a trace costs is its text: it is made in place.
void append_quoted(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}
std::string quoted(const std::string& text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

/// Microseconds, exact to the picosecond.
void append_us(std::string& out, Ps time) {
  constexpr Ps kUs = 1'000'000;
  const fmt::format_int whole(time / kUs), part(time % kUs + kUs);
  out.append(whole.data(), whole.size());
  out += '.';
  out.append(part.data() + 1, part.size() - 1);  // without the 1 that holds the zeros
}
/// ns, as Perfetto reads microseconds.
std::int64_t rounded_ns(Ps time) { return std::llround(static_cast<double>(time) / 1e6 * 1e3); }

/// How long viewers are told that a slice is, ps: they add it to the beginning, and the next slice may begin at the
/// end. Perfetto rounds both to ns, and drops a slice that overlaps another one then: up to half a ns less.
Ps told_length(Ps begin, Ps end) {
  const std::int64_t least = rounded_ns(end) - rounded_ns(begin);
  return rounded_ns(end - begin) > least ? static_cast<Ps>(least) * 1000 + 499 : end - begin;
}

/// 10 fs less, which is more than what viewers that add doubles are off by.
void append_length(std::string& out, Ps length) {
  append_us(out, length - (length > 0 ? 1 : 0));
  if (length > 0) out += "99";
}

std::string us(Ps time) {
  std::string out;
  append_us(out, time);
  return out;
}

void append_number(std::string& out, std::uint64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

/// The process that a component's slices stand in: its cube, its IO chiplet, or the first part of its name.
std::string process_name(const std::string& component) {
  const std::size_t first = component.find('.');
  if (first == std::string::npos) return component;
  const std::size_t second = component.find('.', first + 1);
  if (component.compare(0, 3, "sip") != 0) return component.substr(0, first);
  return component.substr(0, second);
}
}  // namespace

TraceWriter::TraceWriter(const std::string& path, WaveSelection selection, Ps detail)
    : file_(path, is_gzip(path)), selection_(std::move(selection)), detail_(detail) {
  buffer_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"generator\":\"kernbench\"},\"traceEvents\":[";
}

bool TraceWriter::wanted(const std::string& name) const {
  return selection_.globs.empty() || std::any_of(selection_.globs.begin(), selection_.globs.end(),
                                                 [&](const std::string& glob) { return names::matches(glob, name); });
}

/// An engine's or a PE's name, as ops and kernels have it.
bool TraceWriter::wants(const std::string& component) const {
  return wanted(component) || wanted(component + ".kernel");
}

// What of it goes out.

void TraceWriter::event(const std::string& text) {
  begin_event();
  buffer_ += text;
  end_event();
}

void TraceWriter::begin_event() {
  buffer_ += any_ ? ",\n" : "\n";
  any_ = true;
}

void TraceWriter::end_event() {
  if (buffer_.size() < kBuffer) return;
  file_.write(buffer_);
  buffer_.clear();
}

std::uint32_t TraceWriter::process_of(const std::string& name) {
  const auto [known, is_new] = processes_.emplace(name, static_cast<std::uint32_t>(processes_.size()) + 1);
  if (is_new) {
    event(fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"tid\":0,\"args\":{{\"name\":{}}}}}",
                      known->second, quoted(name)));
  }
  return known->second;
}

std::uint32_t TraceWriter::thread_of(const std::string& component) {
  const auto known = by_component_.find(component);
  if (known != by_component_.end()) return known->second;
  const std::string process = process_name(component);
  Thread thread;
  thread.process = process_of(process);
  thread.name = component.size() > process.size() ? component.substr(process.size() + 1) : component;
  threads_.push_back(std::move(thread));
  return by_component_[component] = static_cast<std::uint32_t>(threads_.size()) - 1;
}

TraceWriter::Place TraceWriter::slice(std::uint32_t number, Ps begin, Ps end, const std::string& name,
                                      const char* category, const std::string& arguments) {
  Thread& thread = threads_[number];
  std::size_t lane = 0;
  while (lane < thread.ends.size() && thread.ends[lane] > begin) ++lane;
  if (lane == thread.ends.size()) {
    thread.ends.push_back(0);
    thread.ids.push_back(next_thread_++);
    const std::string label = lane == 0 ? thread.name : fmt::format("{} ({})", thread.name, lane + 1);
    event(fmt::format("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
                      thread.process, thread.ids[lane], quoted(label)));
  }
  thread.ends[lane] = end;
  begin_event();
  buffer_ += "{\"ph\":\"X\",\"name\":";
  append_quoted(buffer_, name);
  buffer_.append(",\"cat\":\"").append(category).append("\",\"pid\":");
  append_number(buffer_, thread.process);
  buffer_ += ",\"tid\":";
  append_number(buffer_, thread.ids[lane]);
  buffer_ += ",\"ts\":";
  append_us(buffer_, begin);
  buffer_ += ",\"dur\":";
  const Ps length = told_length(begin, end);
  append_length(buffer_, length);
  buffer_.append(",\"args\":{").append(arguments);
  if (length != end - begin) {
    buffer_ += arguments.empty() ? "\"ps\":" : ",\"ps\":";
    append_number(buffer_, end - begin);
  }
  buffer_ += "}}";
  end_event();
  return {thread.process, thread.ids[lane], begin, 0};
}

void TraceWriter::arrow(const Place& from, const Place& to, const char* name) {
  const std::uint64_t id = next_arrow_++;
  event(fmt::format("{{\"ph\":\"s\",\"name\":\"{}\",\"cat\":\"flow\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{}}}", name,
                    id, from.process, from.thread, us(from.start)));
  event(fmt::format(
      "{{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"{}\",\"cat\":\"flow\",\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{}}}", name,
      id, to.process, to.thread, us(to.start)));
}

/// Arguments of a slice, of a repeat marked as such.
std::string TraceWriter::marked(std::string arguments, bool repeat) const {
  if (repeat) arguments += arguments.empty() ? "\"repeat\":true" : ",\"repeat\":true";
  return arguments;
}

// Tracks.

TrackId TraceWriter::add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) {
  // Ops and kernels are told with more by their records; ids of packets are no use in slices.
  const std::string leaf = names::leaf(name);
  const bool engine = leaf == "dma_r" || leaf == "dma_w" || leaf == "gemm" || leaf == "math";
  const bool kernel = kind == TrackKind::text && leaf.rfind("kernel", 0) == 0;
  if (kind == TrackKind::number || engine || kernel || !wanted(name)) return kNoTrack;
  State state;
  state.name = name;
  state.kind = kind;
  state.labels = labels;
  states_.push_back(std::move(state));
  return TrackId{static_cast<std::uint32_t>(states_.size()) - 1};
}

void TraceWriter::flush(State& state) {
  if (!std::exchange(state.pending, false)) return;
  if (state.kind == TrackKind::level) {
    const std::string process = process_name(state.name);
    const std::uint32_t id = process_of(process);
    begin_event();
    buffer_ += "{\"ph\":\"C\",\"name\":";
    append_quoted(buffer_, state.name.size() > process.size() ? state.name.substr(process.size() + 1) : state.name);
    buffer_ += ",\"pid\":";
    append_number(buffer_, id);
    buffer_ += ",\"tid\":0,\"ts\":";
    append_us(buffer_, state.begin);
    buffer_ += ",\"args\":{\"value\":";
    append_number(buffer_, state.value);
    buffer_ += "}}";
    end_event();
    return;
  }
  const bool is_text = state.kind == TrackKind::text;
  const std::string& name = is_text                             ? state.text
                            : state.value < state.labels.size() ? state.labels[state.value]
                                                                : state.name;
  slice(thread_of(state.name), state.begin, state.end, name, is_text ? "stall" : "state",
        marked(state.merged > 0 ? fmt::format("\"intervals\":{}", state.merged + 1) : std::string(), state.repeat));
}

void TraceWriter::interval(TrackId track, Ps begin, Ps end, std::uint64_t value) {
  if (end <= begin || value == 0 || !in_window(begin, end)) return;
  State& state = states_[static_cast<std::uint32_t>(track)];
  if (state.pending && state.value == value && state.repeat == repeats_ && begin >= state.begin &&
      begin <= state.end + detail_) {
    state.end = std::max(state.end, end);
    ++state.merged;
    return;
  }
  flush(state);
  state.pending = true;
  state.begin = begin;
  state.end = end;
  state.value = value;
  state.merged = 0;
  state.repeat = repeats_;
}

void TraceWriter::interval(TrackId track, Ps begin, Ps end, const std::string& text) {
  if (end <= begin || end - begin < detail_ || !in_window(begin, end)) return;
  State& state = states_[static_cast<std::uint32_t>(track)];
  slice(thread_of(state.name), begin, end, text, "stall", marked({}, repeats_));
}

void TraceWriter::change(TrackId track, Ps time, std::uint64_t value) {
  if (!in_window(time, time)) return;
  State& state = states_[static_cast<std::uint32_t>(track)];
  if (state.pending && time < state.begin + kLevel * detail_) {
    state.value = value;
    return;
  }
  flush(state);
  state.pending = true;
  state.begin = time;
  state.value = value;
}

void TraceWriter::rate(const std::string& name, Ps length, const std::vector<std::uint64_t>& bytes) {
  if (!wanted(name)) return;
  const std::string process = process_name(name);
  const std::uint32_t id = process_of(process);
  const std::string counter = quoted(name.substr(std::min(name.size(), process.size() + 1)) + " GB/s");
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool again = i > 0 && bytes[i] == before;
    before = bytes[i];
    if (again || !in_window(i * length, (i + 1) * length)) continue;
    event(fmt::format("{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{},\"args\":{{\"GB/s\":{:.4g}}}}}",
                      counter, id, us(i * length), static_cast<double>(bytes[i]) * 1e3 / static_cast<double>(length)));
  }
}

// Ops and kernels.

void TraceWriter::op(const OpRecord& record) {
  // What is not written belongs to a send or receive that is.
  const bool in_queue = record.queue != 0 && record.end > record.start;
  if (!wanted(record.component) || !in_window(record.start, record.end)) {
    if (in_queue) through_queue(record, {0, 0, record.start, record.message, false});
    return;
  }
  std::string arguments = "\"op\":";
  append_number(arguments, record.op);
  const auto add = [&arguments](const char* key, const std::string& text) {
    if (text.empty()) return;
    arguments.append(",\"").append(key).append("\":");
    append_quoted(arguments, text);
  };
  add("kernel", record.kernel);
  add("stage", record.stage);
  const auto number = std::back_inserter(arguments);
  for (const OpRecord::Param& param : record.params) {
    add(param.name, param.text);
    if (param.text.empty()) fmt::format_to(number, FMT_COMPILE(",\"{}\":{}"), param.name, param.number);
  }
  for (std::size_t i = 0; i < std::min(record.spent.size(), kDelayNames.size()); ++i) {
    if (record.spent[i] != 0) fmt::format_to(number, FMT_COMPILE(",\"{} ps\":{}"), kDelayNames[i], record.spent[i]);
  }
  arguments = marked(std::move(arguments), repeats_);
  const std::string& name = record.name == "host_call" && !record.kernel.empty() ? record.kernel : record.name;
  Place place = slice(thread_of(record.component), record.start, record.end, name, record.kind.c_str(), arguments);
  if (in_queue) {
    place.message = record.message;
    through_queue(record, place);
  }
  if (record.kind == "host" && record.launch != 0) {
    const auto found = kernels_.find(record.launch);
    if (found == kernels_.end()) return;
    for (const Place& kernel : found->second) arrow(place, kernel, "launch");
    kernels_.erase(found);
  }
}

/// Joins receives with the sends of their last messages. Of repeats a receive may come before its send.
void TraceWriter::through_queue(const OpRecord& record, const Place& place) {
  Ring& ring = rings_[record.queue];
  (names::leaf(record.component) == "ipcq_send" ? ring.sends : ring.receives).push_back(place);
  while (!ring.sends.empty() && !ring.receives.empty()) {
    const Place from = ring.sends.front(), to = ring.receives.front();
    if (from.message <= to.message) ring.sends.pop_front();
    if (from.message < to.message) continue;
    ring.receives.pop_front();
    if (from.written && to.written) arrow(from, to, "message");
  }
  if (ring.sends.empty() && ring.receives.empty()) rings_.erase(record.queue);
}

void TraceWriter::kernel(const OpRecord& record) {
  const std::string component = record.component + ".kernel";
  if (!wanted(component) || !in_window(record.start, record.end)) return;
  const Place place = slice(thread_of(component), record.start, record.end, record.kernel, "kernel",
                            marked(fmt::format("\"launch\":{}", record.launch), repeats_));
  std::vector<Place>& kernels = kernels_[record.launch];
  const bool first =
      std::none_of(kernels.begin(), kernels.end(), [&](const Place& known) { return known.process == place.process; });
  if (first && record.end > record.start) kernels.push_back(place);
}

void TraceWriter::add(const std::vector<Stretch>& stretches) {
  for (const Stretch& stretch : stretches) {
    if (wanted(kStretchTrack) && in_window(stretch.begin, stretch.end))
      slice(thread_of(kStretchTrack), stretch.begin, stretch.end, stretch.name, "iteration", {});
  }
}

void TraceWriter::finish() {
  for (State& state : states_) flush(state);
  buffer_ += "\n]}\n";
  file_.write(buffer_);
  buffer_.clear();
  file_.commit();
}

}  // namespace kernbench
