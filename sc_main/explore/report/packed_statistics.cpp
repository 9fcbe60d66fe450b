#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sc_main/explore/report/run_page.h"

namespace kernbench::report {
namespace {
using Json = nlohmann::ordered_json;

/// RFC 4648.
std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) word = word << 8 | (i < left ? bytes[at + i] : 0U);
    for (std::size_t digit = 0; digit < 4; ++digit) out += digit <= left ? kDigits[word >> (18 - 6 * digit) & 63] : '=';
  }
  return out;
}

/// Share of each slice in which the resource was busy, 0 to 255. A slice that it was busy in at all is not 0.
void add_course(const Json& resource, std::uint64_t slice_ps, std::uint64_t time_ps, std::size_t slices,
                std::size_t together, std::vector<std::uint8_t>& series) {
  std::vector<double> busy(slices, 0);
  const auto over_time = resource.find("over_time");
  if (over_time != resource.end() && over_time->contains("busy_ps")) {
    const Json& list = (*over_time)["busy_ps"];
    for (std::size_t i = 0; i < list.size() && i / together < slices; ++i) busy[i / together] += list[i].get<double>();
  }
  const double units = resource.value("units", 1.0);
  for (std::size_t i = 0; i < slices; ++i) {
    const std::uint64_t begin = i * slice_ps * together, end = std::min(time_ps, begin + slice_ps * together);
    const double share = end > begin ? busy[i] / (static_cast<double>(end - begin) * units) : 0;
    series.push_back(static_cast<std::uint8_t>(share <= 0 ? 0 : std::clamp(std::lround(share * 255), 1L, 255L)));
  }
}
}  // namespace

Json packed_statistics(const Json& statistics, std::size_t most_bytes) {
  const Json& resources = statistics["resources"];
  const std::uint64_t slice_ps = statistics["slice_ps"].get<std::uint64_t>(),
                      time_ps = statistics["time_ps"].get<std::uint64_t>();
  const std::size_t all = statistics["slices"].get<std::size_t>();
  std::size_t together = 1;
  const auto slices = [&] { return (all + together - 1) / together; };
  while (slices() > 1 && slices() * resources.size() > most_bytes) together *= 2;
  Json packed{{"time_ps", time_ps}, {"slice_ps", slice_ps * together}, {"slices", slices()}};
  std::vector<std::string> kinds;
  std::vector<std::uint8_t> series;
  series.reserve(slices() * resources.size());
  for (const char* key :
       {"names", "kind", "from", "to", "utilisation", "busy_ps", "bytes", "messages", "waiting", "high_water"})
    packed[key] = Json::array();
  for (const Json& resource : resources) {
    const std::string kind = resource["kind"];
    const auto known = std::find(kinds.begin(), kinds.end(), kind);
    packed["kind"].push_back(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(kind);
    packed["names"].push_back(resource["name"]);
    packed["from"].push_back(resource.value("from", ""));
    packed["to"].push_back(resource.value("to", ""));
    packed["utilisation"].push_back(resource.value("utilisation", 0.0));
    packed["busy_ps"].push_back(resource.value("busy_ps", std::uint64_t{0}));
    packed["bytes"].push_back(resource.value("bytes", std::uint64_t{0}));
    packed["messages"].push_back(resource.value("messages", std::uint64_t{0}));
    packed["waiting"].push_back(resource.value("waiting_ps", Json::object()));
    const std::string unit = resource.value("high_water_unit", "");
    packed["high_water"].push_back(
        resource.contains("high_water") ? "at most " + resource["high_water"].dump() + " " + unit : std::string());
    add_course(resource, slice_ps, time_ps, slices(), together, series);
  }
  packed["kinds"] = kinds;
  packed["series"] = base64(series);
  return packed;
}

}  // namespace kernbench::report
