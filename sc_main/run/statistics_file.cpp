#include "sc_main/run/statistics_file.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace kernbench {

namespace {
constexpr std::size_t kMostDigits = 20;
constexpr std::size_t kBlock = 256 * 1024;  // bytes that are written together

std::uint64_t slices_of(const topology::RunStatistics& statistics) {
  return statistics.time == 0 ? 1 : ((statistics.time - 1) >> statistics.shift) + 1;
}

/// Decimal digits, four at a time: a run has a million numbers, nearly all of fewer than nine digits.
class Digits {
 public:
  Digits() {
    for (unsigned i = 0; i < four_.size(); ++i) {
      const char digits[] = {static_cast<char>('0' + i / 1000), static_cast<char>('0' + i / 100 % 10),
                             static_cast<char>('0' + i / 10 % 10), static_cast<char>('0' + i % 10)};
      std::memcpy(&four_[i], digits, 4);
    }
  }
  char* put(char* out, std::uint64_t value) const {
    if (value < 10'000) return head(out, static_cast<unsigned>(value));
    if (value >= 100'000'000) return tail(put(out, value / 10'000), static_cast<unsigned>(value % 10'000));
    const auto small = static_cast<unsigned>(value);
    return tail(head(out, small / 10'000), small % 10'000);
  }

 private:
  char* tail(char* out, unsigned value) const {
    std::memcpy(out, &four_[value], 4);
    return out + 4;
  }
  char* head(char* out, unsigned value) const {  // without leading zeros
    const unsigned zeros = (value < 1000) + (value < 100) + (value < 10);
    char digits[8];
    std::memcpy(digits, &four_[value], 4);
    std::memcpy(out, digits + zeros, 4);
    return out + 4 - zeros;
  }
  std::array<std::uint32_t, 10'000> four_;
};

/// A line in the making. REQUIRES: there is room.
class Line {
 public:
  explicit Line(char* begin) : begin_(begin), end_(begin) {}
  std::string_view text() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }

  Line& operator<<(std::string_view text) {
    end_ = std::copy(text.begin(), text.end(), end_);
    return *this;
  }
  Line& operator<<(std::uint64_t number) {
    end_ = digits().put(end_, number);
    return *this;
  }
  /// A number per slice; nothing of what is 0 in total. Most are 0.
  template <class Slice, class Member>
  void over_time(std::string_view key, std::uint64_t total, const std::vector<Slice>& slices, const Member& member) {
    if (total == 0) return;
    const Digits& digits = Line::digits();
    *this << "\"" << key << "\":[";
    char* out = end_;
    for (const Slice& slice : slices) {
      if (const std::uint64_t value = member(slice); value != 0) {
        out = digits.put(out, value);
        *out++ = ',';
      } else {
        std::memcpy(out, "0,", 2);
        out += 2;
      }
    }
    out[-1] = ']';
    *out++ = ',';
    end_ = out;
  }
  /// Every member leaves a comma behind it: that of the last one goes.
  void close(std::string_view bracket) {
    if (end_[-1] == ',') --end_;
    *this << bracket;
  }

 private:
  static const Digits& digits() {
    static const Digits digits;
    return digits;
  }
  char *const begin_, *end_;
};

/// `reasons`: of the waiting, if each is told of.
void add_over_time(Line& line, const std::vector<Usage::Slice>& slices, bool marks,
                   const std::vector<topology::ResourceUse::Wait>& waits = {},
                   const std::vector<Usage::Waits>& reasons = {}) {
  using Slice = Usage::Slice;
  Slice all;
  for (const Slice& slice : slices) all += slice;
  line << ",\"over_time\":{";
  line.over_time("busy_ps", all.busy, slices, [](const Slice& one) { return one.busy; });
  line.over_time("waiting_ps", all.waiting, slices, [](const Slice& one) { return one.waiting; });
  if (!reasons.empty() && all.waiting != 0) {
    line << "\"waiting_by_reason_ps\":{";
    for (std::size_t i = 0; i < waits.size(); ++i)
      line.over_time(waits[i].reason, waits[i].time, reasons, [i](const Usage::Waits& one) { return one[i]; });
    line.close("},");
  }
  line.over_time("bytes", all.bytes, slices, [](const Slice& one) { return one.bytes; });
  line.over_time("messages", all.messages, slices, [](const Slice& one) { return one.messages; });
  if (marks) line.over_time("high_water", all.mark, slices, [](const Slice& one) { return one.mark; });
  line.close("}");
}

void add_channel(Line& line, const topology::ResourceUse::Channel& channel) {
  line << "\"" << channel.name << "\":{\"busy_ps\":" << channel.busy << ",\"waiting_ps\":" << channel.waiting
       << ",\"bytes\":" << channel.bytes << ",\"messages\":" << channel.messages;
  if (!channel.slices.empty()) add_over_time(line, channel.slices, false);
  line << "},";
}

/// Bytes that a line of it may need.
std::size_t room_for(const topology::ResourceUse& use) {
  constexpr std::size_t kWords = 512;  // keys, totals, the name of a channel
  constexpr std::size_t kArrays = 5;
  std::size_t numbers = kArrays * use.slices.size() + use.waits.size() * use.reasons.size();
  for (const topology::ResourceUse::Channel& channel : use.channels) numbers += kArrays * channel.slices.size();
  return (2 + use.channels.size()) * kWords + use.name.size() + use.from.size() + use.to.size() +
         numbers * (kMostDigits + 1);
}
}  // namespace

void StatisticsText::begin(const topology::RunStatistics& known) {
  sink_(
      fmt::format("{{\n\"format\": \"kernbench-statistics\",\n\"version\": 1,\n\"time_ps\": {},\n\"slice_ps\": {},\n"
                  "\"slices\": {},\n{}\"resources\": [",
                  known.time, Ps{1} << known.shift, slices_of(known), known.repeats ? "\"repeats\": true,\n" : ""));
}

void StatisticsText::take(const topology::RunStatistics& known, const topology::ResourceUse& use) {
  if (!any_) begin(known);
  const std::size_t room = room_for(use);
  if (filled_ != 0 && text_.size() - filled_ < room) flush();
  if (text_.size() < room) text_.resize(std::max(room, kBlock));
  Line line(text_.data() + filled_);
  line << (any_ ? ",\n{\"name\":\"" : "\n{\"name\":\"") << use.name << "\",\"kind\":\"" << use.kind << "\"";
  any_ = true;
  if (!use.from.empty()) line << ",\"from\":\"" << use.from << "\"";
  if (!use.to.empty()) line << ",\"to\":\"" << use.to << "\"";
  if (use.rate != 0) line << ",\"rate_bytes_per_s\":" << use.rate;
  line << ",\"units\":" << use.units;
  if (use.has_busy)
    line << ",\"busy_ps\":" << use.busy << ",\"utilisation\":" << fmt::format("{:.6g}", use.utilisation(known.time));
  line << ",\"waiting_ps\":{";
  for (const topology::ResourceUse::Wait& wait : use.waits) line << "\"" << wait.reason << "\":" << wait.time << ",";
  line.close("},\"bytes\":");
  line << use.bytes << ",\"messages\":" << use.messages;
  if (*use.high_water_unit != '\0')
    line << ",\"high_water\":" << use.high_water << ",\"high_water_unit\":\"" << use.high_water_unit << "\"";
  if (!use.channels.empty()) {
    line << ",\"virtual_channels\":{";
    for (const topology::ResourceUse::Channel& channel : use.channels) add_channel(line, channel);
    line.close("}");
  }
  add_over_time(line, use.slices, *use.high_water_unit != '\0', use.waits, use.reasons);
  line << "}";
  filled_ += line.text().size();
}

void StatisticsText::flush() {
  sink_({text_.data(), filled_});
  filled_ = 0;
}

void StatisticsText::finish(const topology::RunStatistics& statistics) {
  if (!any_) begin(statistics);
  flush();
  fmt::memory_buffer text;
  const fmt::appender out(text);
  fmt::format_to(out, any_ ? "\n],\n\"totals\": {{" : "],\n\"totals\": {{");
  const char* separator = "";
  for (const topology::KindUse& kind : statistics.totals) {
    fmt::format_to(out,
                   "{}\n\"{}\": {{\"resources\":{},\"used\":{},\"busy_ps\":{},\"waiting_ps\":{},\"bytes\":{},"
                   "\"messages\":{}}}",
                   separator, kind.kind, kind.resources, kind.used, kind.busy, kind.waiting, kind.bytes, kind.messages);
    separator = ",";
  }
  fmt::format_to(out, "\n}},\n\"checks\": [");
  separator = "";
  for (const topology::RunStatistics::Check& check : statistics.checks) {
    fmt::format_to(out, "{}\n{{\"check\":\"{}\",\"compared\":{}}}", separator, check.what, check.compared);
    separator = ",";
  }
  fmt::format_to(out, "\n]\n}}\n");
  sink_(fmt::to_string(text));
}

}  // namespace kernbench
