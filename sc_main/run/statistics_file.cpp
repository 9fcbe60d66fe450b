#include "sc_main/run/statistics_file.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace kernbench {

namespace {
std::uint64_t slices_of(const topology::RunStatistics& statistics) {
  return statistics.time == 0 ? 1 : ((statistics.time - 1) >> statistics.shift) + 1;
}

void add(fmt::memory_buffer& text, std::string_view what) { text.append(what); }

/// One number per slice; nothing of what is 0 in total. Most are 0, and this is most of what statistics cost.
void add_over_time(fmt::memory_buffer& text, const char*& separator, const char* key, std::uint64_t total,
                   const std::vector<Usage::Slice>& slices, std::uint64_t Usage::Slice::*member) {
  if (total == 0) return;
  static const std::string zeros = [] {
    std::string many;
    for (int i = 0; i < 256; ++i) many += "0,";
    return many;
  }();
  fmt::format_to(fmt::appender(text), FMT_COMPILE("{}\"{}\":["), separator, key);
  constexpr std::size_t kMostDigits = 20;
  const std::size_t before = text.size();
  text.resize(before + slices.size() * (kMostDigits + 1));  // whose contents nobody clears
  char* out = text.data() + before;
  for (auto at = slices.begin(); at != slices.end();) {
    if (const std::uint64_t value = (*at).*member; value != 0) {
      out = std::to_chars(out, out + kMostDigits, value).ptr;
      *out++ = ',';
      ++at;
      continue;
    }
    const auto used = std::find_if(at, slices.end(), [&](const Usage::Slice& slice) { return slice.*member != 0; });
    for (auto left = 2 * static_cast<std::size_t>(used - at); left != 0;) {
      const std::size_t some = std::min(left, zeros.size());
      out = std::copy_n(zeros.data(), some, out);
      left -= some;
    }
    at = used;
  }
  out[-1] = ']';
  text.resize(static_cast<std::size_t>(out - text.data()));
  separator = ",";
}
}  // namespace

void StatisticsText::begin(const topology::RunStatistics& known) {
  fmt::format_to(fmt::appender(text_),
                 "{{\n\"format\": \"kernbench-statistics\",\n\"version\": 1,\n\"time_ps\": {},\n\"slice_ps\": {},\n"
                 "\"slices\": {},\n\"resources\": [",
                 known.time, Ps{1} << known.shift, slices_of(known));
}

void StatisticsText::take(const topology::RunStatistics& known, const topology::ResourceUse& use) {
  if (!any_) begin(known);
  const fmt::appender out(text_);
  fmt::format_to(out, FMT_COMPILE("{}\n{{\"name\":\"{}\",\"kind\":\"{}\""), any_ ? "," : "", use.name, use.kind);
  any_ = true;
  if (!use.from.empty()) fmt::format_to(out, FMT_COMPILE(",\"from\":\"{}\""), use.from);
  if (!use.to.empty()) fmt::format_to(out, FMT_COMPILE(",\"to\":\"{}\""), use.to);
  if (use.rate != 0) fmt::format_to(out, FMT_COMPILE(",\"rate_bytes_per_s\":{}"), use.rate);
  fmt::format_to(out, FMT_COMPILE(",\"units\":{}"), use.units);
  if (use.has_busy)
    fmt::format_to(out, FMT_COMPILE(",\"busy_ps\":{},\"utilisation\":{:.6g}"), use.busy, use.utilisation(known.time));
  add(text_, ",\"waiting_ps\":{");
  const char* separator = "";
  Ps waiting = 0;
  for (const topology::ResourceUse::Wait& wait : use.waits) {
    waiting += wait.time;
    fmt::format_to(out, FMT_COMPILE("{}\"{}\":{}"), separator, wait.reason, wait.time);
    separator = ",";
  }
  fmt::format_to(out, FMT_COMPILE("}},\"bytes\":{},\"messages\":{}"), use.bytes, use.messages);
  if (*use.high_water_unit != '\0')
    fmt::format_to(out, FMT_COMPILE(",\"high_water\":{},\"high_water_unit\":\"{}\""), use.high_water,
                   use.high_water_unit);
  if (!use.channels.empty()) {
    separator = ",\"virtual_channels\":{";
    for (const topology::ResourceUse::Channel& channel : use.channels) {
      fmt::format_to(out, FMT_COMPILE("{}\"{}\":{{\"busy_ps\":{},\"waiting_ps\":{},\"bytes\":{},\"messages\":{}}}"),
                     separator, channel.name, channel.busy, channel.waiting, channel.bytes, channel.messages);
      separator = ",";
    }
    add(text_, "}");
  }
  add(text_, ",\"over_time\":{");
  separator = "";
  if (use.has_busy) add_over_time(text_, separator, "busy_ps", use.busy, use.slices, &Usage::Slice::busy);
  add_over_time(text_, separator, "waiting_ps", waiting, use.slices, &Usage::Slice::waiting);
  add_over_time(text_, separator, "bytes", use.bytes, use.slices, &Usage::Slice::bytes);
  add(text_, "}}");
}

std::string StatisticsText::finish(const topology::RunStatistics& statistics) {
  if (!any_) begin(statistics);
  add(text_, any_ ? "\n],\n\"totals\": {" : "],\n\"totals\": {");
  const fmt::appender out(text_);
  const char* separator = "";
  for (const topology::KindUse& kind : statistics.totals) {
    fmt::format_to(out,
                   "{}\n\"{}\": {{\"resources\":{},\"used\":{},\"busy_ps\":{},\"waiting_ps\":{},\"bytes\":{},"
                   "\"messages\":{}}}",
                   separator, kind.kind, kind.resources, kind.used, kind.busy, kind.waiting, kind.bytes, kind.messages);
    separator = ",";
  }
  add(text_, "\n},\n\"checks\": [");
  separator = "";
  for (const topology::RunStatistics::Check& check : statistics.checks) {
    fmt::format_to(out, "{}\n{{\"check\":\"{}\",\"compared\":{}}}", separator, check.what, check.compared);
    separator = ",";
  }
  add(text_, "\n]\n}\n");
  return fmt::to_string(text_);
}

}  // namespace kernbench
