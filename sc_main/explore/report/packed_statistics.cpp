#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sc_main/explore/report/run_page.h"
#include "tlm/config/json_text.h"

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

/// The page's slices: so many of the statistics' own, `together` each.
struct Slices {
  std::uint64_t slice_ps, time_ps;
  std::size_t all, together = 1;
  std::size_t count() const { return (all + together - 1) / together; }
  std::uint64_t page_ps() const { return slice_ps * together; }
};

/// Of times of each slice their shares of it: how many things were at it at once, in the mean.
std::vector<double> shares_of(const Json* times, const Slices& slices) {
  std::vector<double> shares(slices.count(), 0);
  for (std::size_t i = 0; times != nullptr && i < times->size() && i < slices.all; ++i)
    shares[i / slices.together] += (*times)[i].get<double>();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::uint64_t begin = i * slices.page_ps(), end = std::min(slices.time_ps, begin + slices.page_ps());
    shares[i] = end > begin ? shares[i] / static_cast<double>(end - begin) : 0;
  }
  return shares;
}

/// 0 to 255 for 0 to `whole`. What is not 0 stays so.
void add_course(const std::vector<double>& shares, double whole, std::vector<std::uint8_t>& series) {
  for (const double share : shares)
    series.push_back(
        static_cast<std::uint8_t>(share <= 0 ? 0 : std::clamp(std::lround(share / whole * 255), 1L, 255L)));
}

const Json* list_of(const Json& holder, const char* key) {
  const auto over_time = holder.find("over_time");
  if (over_time == holder.end()) return nullptr;
  const auto list = over_time->find(key);
  return list == over_time->end() ? nullptr : &*list;
}

/// Courses that are no resource's use: {names, scale, series}, the largest ones. `scale` is what 255 means, by course.
class Details {
 public:
  void add(std::string name, const Json* times) {
    if (times == nullptr) return;
    double sum = 0;
    for (const Json& time : *times) sum += time.get<double>();
    if (sum > 0) rows_.push_back({std::move(name), times, sum});
  }
  Json packed(const Slices& slices) {
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.sum > b.sum; });
    rows_.resize(std::min(rows_.size(), kMost));
    Json packed{{"names", Json::array()}, {"scale", Json::array()}};
    std::vector<std::uint8_t> series;
    for (const Row& row : rows_) {
      const std::vector<double> shares = shares_of(row.times, slices);
      const double most = std::max(1.0, *std::max_element(shares.begin(), shares.end()));
      packed["names"].push_back(row.name);
      packed["scale"].push_back(most);
      add_course(shares, most, series);
    }
    packed["series"] = base64(series);
    return packed;
  }

 private:
  static constexpr std::size_t kMost = 200;
  struct Row {
    std::string name;
    const Json* times;
    double sum;
  };
  std::vector<Row> rows_;
};

/// What it waited for, one by one where that is kept.
void add_waiting(const Json& resource, Details& details) {
  const std::string name = resource.at("name");
  const Json* reasons = list_of(resource, "waiting_by_reason_ps");
  if (reasons == nullptr) return details.add(name, list_of(resource, "waiting_ps"));
  for (const auto& [reason, times] : reasons->items()) details.add(name + ": " + reason, &times);
}

void add_channels(const Json& resource, Details& details) {
  const auto channels = resource.find("virtual_channels");
  if (channels == resource.end()) return;
  for (const auto& [name, channel] : channels->items())
    details.add(resource.at("name").get<std::string>() + " " + name, list_of(channel, "busy_ps"));
}
}  // namespace

Json packed_statistics(const Json& statistics, std::size_t most_bytes) {
  const Json& resources = statistics.at("resources");
  Slices slices{statistics.at("slice_ps").get<std::uint64_t>(), statistics.at("time_ps").get<std::uint64_t>(),
                statistics.at("slices").get<std::size_t>()};
  while (slices.count() > 1 && slices.count() * resources.size() > most_bytes) slices.together *= 2;
  Json packed{{"time_ps", slices.time_ps}, {"slice_ps", slices.page_ps()}, {"slices", slices.count()}};
  std::vector<std::string> kinds;
  std::vector<std::uint8_t> series;
  series.reserve(slices.count() * resources.size());
  Details waiting, channels;
  for (const char* key :
       {"names", "kind", "from", "to", "utilisation", "busy_ps", "bytes", "messages", "waiting", "high_water"})
    packed[key] = Json::array();
  for (const Json& resource : resources) {
    const std::string kind = resource.at("kind");
    const auto known = std::find(kinds.begin(), kinds.end(), kind);
    packed["kind"].push_back(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(kind);
    packed["names"].push_back(resource.at("name"));
    packed["from"].push_back(resource.value("from", ""));
    packed["to"].push_back(resource.value("to", ""));
    packed["utilisation"].push_back(resource.value("utilisation", 0.0));
    packed["busy_ps"].push_back(resource.value("busy_ps", std::uint64_t{0}));
    packed["bytes"].push_back(resource.value("bytes", std::uint64_t{0}));
    packed["messages"].push_back(resource.value("messages", std::uint64_t{0}));
    packed["waiting"].push_back(resource.value("waiting_ps", Json::object()));
    const std::string unit = resource.value("high_water_unit", "");
    packed["high_water"].push_back(resource.contains("high_water")
                                       ? "at most " + json_text(resource.at("high_water")) + " " + unit
                                       : std::string());
    add_course(shares_of(list_of(resource, "busy_ps"), slices), resource.value("units", 1.0), series);
    add_waiting(resource, waiting);
    add_channels(resource, channels);
  }
  packed["kinds"] = kinds;
  packed["series"] = base64(series);
  packed["waits"] = waiting.packed(slices);
  packed["channels"] = channels.packed(slices);
  return packed;
}

}  // namespace kernbench::report
