#include "sc_main/run/statistics_file.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace kernbench {

namespace {
std::uint64_t slices_of(const topology::RunStatistics& statistics) {
  return statistics.time == 0 ? 1 : ((statistics.time - 1) >> statistics.shift) + 1;
}

/// One number per slice; nothing of what is zero throughout. Most are 0, and this is most of what statistics cost.
void add_over_time(std::string& text, const char*& separator, const char* key, const std::vector<Usage::Slice>& slices,
                   std::uint64_t Usage::Slice::*member) {
  if (std::none_of(slices.begin(), slices.end(), [&](const Usage::Slice& slice) { return slice.*member != 0; })) return;
  text.append(separator).append("\"").append(key).append("\":[");
  constexpr std::size_t kMostDigits = 20;
  fmt::memory_buffer list;  // whose contents nobody clears
  list.resize(slices.size() * (kMostDigits + 1));
  char* out = list.data();
  for (const Usage::Slice& slice : slices) {
    if (const std::uint64_t value = slice.*member; value == 0) {
      *out++ = '0';
    } else {
      const fmt::format_int number(value);
      out = std::copy(number.data(), number.data() + number.size(), out);
    }
    *out++ = ',';
  }
  out[-1] = ']';
  text.append(list.data(), out);
  separator = ",";
}
}  // namespace

void StatisticsText::begin(const topology::RunStatistics& known) {
  text_ = fmt::format(
      "{{\n\"format\": \"kernbench-statistics\",\n\"version\": 1,\n\"time_ps\": {},\n\"slice_ps\": {},\n"
      "\"slices\": {},\n\"resources\": [",
      known.time, Ps{1} << known.shift, slices_of(known));
}

void StatisticsText::take(const topology::RunStatistics& known, const topology::ResourceUse& use) {
  if (!any_) begin(known);
  const auto out = std::back_inserter(text_);
  fmt::format_to(out, FMT_COMPILE("{}\n{{\"name\":\"{}\",\"kind\":\"{}\""), any_ ? "," : "", use.name, use.kind);
  any_ = true;
  if (!use.from.empty()) fmt::format_to(out, FMT_COMPILE(",\"from\":\"{}\""), use.from);
  if (!use.to.empty()) fmt::format_to(out, FMT_COMPILE(",\"to\":\"{}\""), use.to);
  if (use.rate != 0) fmt::format_to(out, FMT_COMPILE(",\"rate_bytes_per_s\":{}"), use.rate);
  fmt::format_to(out, FMT_COMPILE(",\"units\":{}"), use.units);
  if (use.has_busy)
    fmt::format_to(out, FMT_COMPILE(",\"busy_ps\":{},\"utilisation\":{:.6g}"), use.busy, use.utilisation(known.time));
  text_ += ",\"waiting_ps\":{";
  const char* separator = "";
  for (const topology::ResourceUse::Wait& wait : use.waits) {
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
      fmt::format_to(out, FMT_COMPILE("{}\"{}\":{{\"bytes\":{},\"messages\":{},\"waiting_ps\":{}}}"), separator,
                     channel.name, channel.bytes, channel.messages, channel.waiting);
      separator = ",";
    }
    text_ += '}';
  }
  text_ += ",\"over_time\":{";
  separator = "";
  if (use.has_busy) add_over_time(text_, separator, "busy_ps", use.slices, &Usage::Slice::busy);
  add_over_time(text_, separator, "waiting_ps", use.slices, &Usage::Slice::waiting);
  add_over_time(text_, separator, "bytes", use.slices, &Usage::Slice::bytes);
  text_ += "}}";
}

std::string StatisticsText::finish(const topology::RunStatistics& statistics) {
  if (!any_) begin(statistics);
  text_ += any_ ? "\n],\n\"totals\": {" : "],\n\"totals\": {";
  const auto out = std::back_inserter(text_);
  const char* separator = "";
  for (const topology::KindUse& kind : statistics.totals) {
    fmt::format_to(out,
                   "{}\n\"{}\": {{\"resources\":{},\"used\":{},\"busy_ps\":{},\"waiting_ps\":{},\"bytes\":{},"
                   "\"messages\":{}}}",
                   separator, kind.kind, kind.resources, kind.used, kind.busy, kind.waiting, kind.bytes, kind.messages);
    separator = ",";
  }
  text_ += "\n},\n\"checks\": [";
  separator = "";
  for (const topology::RunStatistics::Check& check : statistics.checks) {
    fmt::format_to(out, "{}\n{{\"check\":\"{}\",\"compared\":{}}}", separator, check.what, check.compared);
    separator = ",";
  }
  text_ += "\n]\n}\n";
  return std::move(text_);
}

}  // namespace kernbench
