#include "waves/vcd_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tlm/machine/names.h"
#include "waves/fst_file.h"
#include "waves/gtkw_file.h"

namespace kernbench {
namespace {
/// The value outside all intervals: label 0, level 0, empty text; a number that identifies something is then undefined.
constexpr std::uint64_t kNothing = ~std::uint64_t{0};
std::uint64_t idle_value(TrackKind kind) { return kind == TrackKind::number ? kNothing : 0; }

/// Short identifier of variable `n`, from the printable characters.
std::string identifier(std::uint64_t n) {
  std::string id;
  do {
    id += static_cast<char>('!' + n % 94);
    n /= 94;
  } while (n != 0);
  return id;
}
std::string vector_id(std::uint32_t track) { return identifier(std::uint64_t{track} * 2); }
std::string text_id(std::uint32_t track) { return identifier(std::uint64_t{track} * 2 + 1); }

/// A VCD string value may not hold blanks.
void append_text(std::string& out, const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 127 && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
}

void append_bits(std::string& out, std::uint64_t value) {
  int top = 63;
  while (top > 0 && (value >> top & 1) == 0) --top;
  for (; top >= 0; --top) out += static_cast<char>('0' + (value >> top & 1));
}
}  // namespace

VcdWriter::VcdWriter(const std::string& path, WaveSelection selection, std::size_t sort_buffer)
    : file_(is_fst(path) ? path + ".vcd" : path, is_gzip(path)),
      path_(path),
      selection_(std::move(selection)),
      glob_matched_(selection_.globs.size(), false),
      sorter_(sort_buffer) {
  if (!is_fst(path)) return;
  check_vcd2fst(path);
  fst_.emplace(path);
  for (const OutputFile* file : {&file_, &*fst_}) {
    if (file->temporary().empty()) throw OutputError(fmt::format("cannot write '{}': an FST has to be a file", path));
  }
}

std::vector<std::string> VcdWriter::temporaries() const {
  std::vector<std::string> names{file_.temporary()};
  if (fst_) names.push_back(fst_->temporary());
  return names;
}

std::vector<std::string> VcdWriter::unmatched_globs() const {
  std::vector<std::string> globs;
  for (std::size_t i = 0; i < glob_matched_.size(); ++i) {
    if (!glob_matched_[i]) globs.push_back(selection_.globs[i]);
  }
  return globs;
}

TrackId VcdWriter::add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) {
  const auto& globs = selection_.globs;
  bool wanted = globs.empty();
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (!names::matches(globs[i], name)) continue;
    wanted = true;
    glob_matched_[i] = true;
  }
  if (!wanted) return kNoTrack;
  const auto [found, added] = by_name_.emplace(name, static_cast<std::uint32_t>(tracks_.size()));
  if (added) {
    const unsigned bits = kind != TrackKind::state ? 32 : labels.size() <= 15 ? 4 : 8;
    tracks_.push_back({name, kind, labels, bits, false});
    before_window_.push_back({0, idle_value(kind), found->second, Change::Kind::set});
  }
  return TrackId{found->second};
}

void VcdWriter::note(std::uint32_t track, std::uint64_t value) {
  Track& t = tracks_[track];
  if (value == idle_value(t.kind)) return;
  t.active = true;
  if (value > 0xFFFF'FFFF && t.kind != TrackKind::text) t.bits = 64;
}

void VcdWriter::interval(TrackId id, Ps begin, Ps end, std::uint64_t value) {
  begin = std::max(begin, selection_.from);
  end = std::min(end, selection_.to);
  if (begin >= end) return;
  const auto track = static_cast<std::uint32_t>(id);
  note(track, value);
  sorter_.push({begin, value, track, Change::Kind::begin});
  if (end < selection_.to) sorter_.push({end, 0, track, Change::Kind::end});
}

void VcdWriter::interval(TrackId track, Ps begin, Ps end, const std::string& text) {
  interval(track, begin, end, intern(text));
}

void VcdWriter::change(TrackId id, Ps time, std::uint64_t value) {
  if (time > selection_.to) return;
  const auto track = static_cast<std::uint32_t>(id);
  const Change change{time, value, track, Change::Kind::set};
  if (time < selection_.from) {
    if (time >= before_window_[track].time) before_window_[track] = change;
    return;
  }
  note(track, value);
  sorter_.push(change);
}

std::uint64_t VcdWriter::intern(const std::string& text) {
  const auto [found, added] = text_ids_.emplace(text, texts_.size());
  if (added) texts_.push_back(text);
  return found->second;
}

void VcdWriter::write_header(Ps start) {
  file_.write("$version KernBench $end\n$timescale 1ps $end\n");
  std::vector<std::string> scope;
  const auto enter = [&](std::vector<std::string> wanted) {
    const auto common = std::mismatch(scope.begin(), scope.end(), wanted.begin(), wanted.end()).first - scope.begin();
    for (std::size_t i = scope.size(); i > static_cast<std::size_t>(common); --i) file_.write("$upscope $end\n");
    for (std::size_t i = static_cast<std::size_t>(common); i < wanted.size(); ++i) {
      file_.write(fmt::format("$scope module {} $end\n", vcd_name(wanted[i])));
    }
    scope = std::move(wanted);
  };
  for (const std::uint32_t i : in_natural_order(tracks_)) {
    const Track& track = tracks_[i];
    std::vector<std::string> parts = components(track.name);
    const std::string leaf = vcd_name(parts.back());
    parts.pop_back();
    enter(std::move(parts));
    if (track.kind == TrackKind::text) {
      file_.write(fmt::format("$var string 1 {} {} $end\n", text_id(i), leaf));
      continue;
    }
    file_.write(fmt::format("$var wire {} {} {} [{}:0] $end\n", track.bits, vector_id(i), leaf, track.bits - 1));
    if (track.kind == TrackKind::state) file_.write(fmt::format("$var string 1 {} {}_text $end\n", text_id(i), leaf));
  }
  enter({});
  file_.write(fmt::format("$enddefinitions $end\n#{}\n$dumpvars\n", start));
}

void VcdWriter::write_value(std::uint32_t i, std::uint64_t value) {
  const Track& track = tracks_[i];
  line_.clear();
  if (track.kind != TrackKind::text) {
    const std::uint64_t largest = track.bits == 64 ? kNothing - 1 : (std::uint64_t{1} << track.bits) - 1;
    line_ += 'b';
    if (value == kNothing) {
      line_ += 'z';
    } else {
      append_bits(line_, std::min(value, largest));
    }
    line_ += ' ' + vector_id(i) + '\n';
  }
  if (track.kind == TrackKind::text || track.kind == TrackKind::state) {
    line_ += 's';
    const bool known = track.kind == TrackKind::text || value < track.labels.size();
    append_text(line_, !known                          ? fmt::format("unknown-{}", value)
                       : track.kind == TrackKind::text ? texts_[value]
                                                       : track.labels[value]);
    line_ += ' ' + text_id(i) + '\n';
  }
  file_.write(line_);
}

/// The value that `state` had until `end` counts as far as it lies in `focus`.
void VcdWriter::count_busy(std::uint32_t i, const Replay& state, Ps end, const Stretch& focus) {
  Track& track = tracks_[i];
  if (track.kind != TrackKind::state || state.written == 0 || state.written >= track.labels.size()) return;
  const Ps from = std::max(state.since, focus.begin), to = std::min(end, focus.end);
  if (from < to && !is_waiting(track.labels[state.written])) track.busy += to - from;
}

void VcdWriter::replay(Ps end, const Stretch& focus) {
  std::vector<Replay> state(tracks_.size());
  for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
    state[i].value = state[i].written = before_window_[i].value;
    write_value(i, state[i].value);
  }
  file_.write("$end\n");

  // All changes of one instant make one step: a track is written once, and only if it differs.
  Ps shown = std::min(selection_.from, end), now = shown;
  std::vector<std::uint32_t> dirty;
  const auto flush = [&] {
    for (const std::uint32_t i : dirty) {
      Replay& track = state[i];
      track.dirty = false;
      if (track.value == track.written) continue;
      if (now != shown) file_.write(fmt::format("#{}\n", now));
      shown = now;
      write_value(i, track.value);
      count_busy(i, track, now, focus);
      track.written = track.value;
      track.since = now;
    }
    dirty.clear();
  };
  sorter_.drain([&](const Change& change) {
    if (change.time != now) flush();
    now = change.time;
    Replay& track = state[change.track];
    switch (change.kind) {
      case Change::Kind::begin:
        ++track.open;
        [[fallthrough]];
      case Change::Kind::set:
        track.value = change.value;
        break;
      case Change::Kind::end:
        if (--track.open == 0) track.value = idle_value(tracks_[change.track].kind);
        break;
    }
    if (!track.dirty) dirty.push_back(change.track);
    track.dirty = true;
  });
  flush();
  const Ps last = std::min(end, selection_.to);
  for (std::uint32_t i = 0; i < tracks_.size(); ++i) count_busy(i, state[i], last, focus);
  if (last > shown) file_.write(fmt::format("#{}\n", last));
}

void VcdWriter::finish(Ps end, const std::vector<Stretch>& stretches) {
  const Ps from = std::min(selection_.from, end), to = std::max(std::min(selection_.to, end), from + 1);
  Stretch focus{"", from, to, false};  // the last one that counts, if the window shows it
  if (!stretches.empty()) {
    tracks_.push_back({kStretchTrack, TrackKind::text, {}, 1, false, 0});
    before_window_.push_back({0, 0, static_cast<std::uint32_t>(tracks_.size() - 1), Change::Kind::set});
  }
  for (const Stretch& stretch : stretches) {
    interval(TrackId{static_cast<std::uint32_t>(tracks_.size() - 1)}, stretch.begin, stretch.end, stretch.name);
    if (stretch.timed && stretch.begin < to && stretch.end > from)
      focus = {stretch.name, std::max(stretch.begin, from), std::min(stretch.end, to), true};
  }
  for (std::uint32_t i = 0; i < tracks_.size(); ++i) note(i, before_window_[i].value);
  write_header(std::min(selection_.from, end));
  replay(end, focus);
  if (fst_) {
    file_.flush();
    run_vcd2fst(file_.temporary(), fst_->temporary(), path_);
    fst_->commit();
  } else {
    file_.commit();
  }
  write_gtkw(path_, tracks_, focus, stretches);
}

}  // namespace kernbench
