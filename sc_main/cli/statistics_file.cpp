#include "sc_main/cli/statistics_file.h"

#include <algorithm>

#include "waves/track_table.h"

namespace kernbench {

namespace {
using Json = nlohmann::ordered_json;

/// One number per slice; nothing of what is zero throughout.
void add_over_time(Json& over_time, const char* key, const std::vector<Usage::Slice>& slices,
                   std::uint64_t Usage::Slice::*member) {
  Json numbers = Json::array();
  bool any = false;
  for (const Usage::Slice& slice : slices) {
    numbers.push_back(slice.*member);
    any = any || slice.*member != 0;
  }
  if (any) over_time[key] = std::move(numbers);
}

Json resource(const topology::ResourceUse& use, Ps time) {
  Json json{{"name", use.name}, {"kind", use.kind}};
  if (!use.from.empty()) json["from"] = use.from;
  if (!use.to.empty()) json["to"] = use.to;
  if (use.rate != 0) json["rate_bytes_per_s"] = use.rate;
  json["units"] = use.units;
  if (use.has_busy) {
    json["busy_ps"] = use.busy;
    json["utilisation"] = use.utilisation(time);
  }
  json["waiting_ps"] = Json::object();
  for (const topology::ResourceUse::Wait& wait : use.waits) json["waiting_ps"][wait.reason] = wait.time;
  json["bytes"] = use.bytes;
  json["messages"] = use.messages;
  if (*use.high_water_unit != '\0') {
    json["high_water"] = use.high_water;
    json["high_water_unit"] = use.high_water_unit;
  }
  Json over_time = Json::object();
  if (use.has_busy) add_over_time(over_time, "busy_ps", use.slices, &Usage::Slice::busy);
  add_over_time(over_time, "waiting_ps", use.slices, &Usage::Slice::waiting);
  add_over_time(over_time, "bytes", use.slices, &Usage::Slice::bytes);
  json["over_time"] = std::move(over_time);
  return json;
}
}  // namespace

nlohmann::ordered_json to_json(const topology::RunStatistics& statistics) {
  Json json{{"format", "kernbench-statistics"}, {"version", 1}, {"time_ps", statistics.time}};
  json["slice_ps"] = Ps{1} << statistics.shift;
  json["slices"] = statistics.time == 0 ? 1 : ((statistics.time - 1) >> statistics.shift) + 1;
  std::vector<const topology::ResourceUse*> order;
  for (const topology::ResourceUse& use : statistics.resources) order.push_back(&use);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return natural_less(a->name, b->name); });
  Json& resources = json["resources"] = Json::array();
  for (const topology::ResourceUse* use : order) resources.push_back(resource(*use, statistics.time));
  Json& totals = json["totals"] = Json::object();
  for (const topology::KindUse& kind : statistics.totals) {
    totals[kind.kind] = {{"resources", kind.resources}, {"used", kind.used},   {"busy_ps", kind.busy},
                         {"waiting_ps", kind.waiting},  {"bytes", kind.bytes}, {"messages", kind.messages}};
  }
  Json& checks = json["checks"] = Json::array();
  for (const topology::RunStatistics::Check& check : statistics.checks)
    checks.push_back({{"check", check.what}, {"compared", check.compared}});
  return json;
}

std::string statistics_text(const nlohmann::ordered_json& statistics) {
  std::string text;
  for (const auto& [key, value] : statistics.items()) {
    text += (text.empty() ? "{\n" : ",\n") + Json(key).dump() + ": ";
    if (key != "resources") {
      text += value.dump();
      continue;
    }
    const char* separator = "[\n";
    for (const Json& one : value) {
      text += separator + one.dump();
      separator = ",\n";
    }
    text += value.empty() ? "[]" : "\n]";
  }
  return text + "\n}\n";
}

}  // namespace kernbench
