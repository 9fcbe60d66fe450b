#include "sc_main/run/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "sc_main/run/launch_table.h"
#include "tlm/machine/names.h"
#include "topology/plan/plan.h"

namespace kernbench {

namespace {
using Json = nlohmann::ordered_json;
using Segments = std::vector<CauseLog::Segment>;

constexpr std::size_t kMostSegments = 4096;  ///< in the JSON
constexpr std::size_t kMostLines = 8;        ///< of a table for people

double share(Ps part, Ps whole) { return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole); }

/// What a link joins: "sip3-sip4", as people call it; empty for other places.
class Wires {
 public:
  explicit Wires(const topology::Plan& plan) : spec_(plan.spec) {
    for (std::uint32_t id = 0; id < plan.ends.size(); ++id) {
      const topology::LinkEnd &end = plan.ends[id], &peer = plan.ends[end.peer];
      const auto side = [&](std::uint32_t at, const topology::LinkEnd& which) {
        const std::string of = names::parent(plan.end_name(at));  // a cube, an IO chiplet or the fabric switch
        const topology::Network& network = plan.networks[which.network];
        const bool io = end.kind->between_sips && network.kind == topology::NetworkKind::io;
        return io ? names::sip(network.sip) : of;
      };
      const std::string text = side(id, end) + "-" + side(end.peer, peer);
      for (std::size_t i = 0; i < end.spots->size(); ++i) joins_[fmt::format("{}.wire{}", plan.end_name(id), i)] = text;
    }
  }
  std::string of(const std::string& place) const {
    const auto found = joins_.find(place);
    return found == joins_.end() ? std::string() : found->second;
  }
  /// The broken links of the kind of that one: between SIPs, or between the cubes of its SIP.
  std::vector<std::string> broken(const std::string& place) const {
    std::vector<std::string> links;
    const bool of_cube = place.find(".cube") != std::string::npos;
    for (const auto& [a, b] : spec_.broken_sip_links) {
      if (!of_cube) links.push_back(names::sip(a) + " - " + names::sip(b));
    }
    for (const auto& [cube, other] : spec_.broken_cube_links) {
      if (of_cube && place.rfind(names::sip(cube.sip) + ".", 0) == 0)
        links.push_back(names::cube(cube) + " - " + names::cube({cube.sip, other}));
    }
    return links;
  }

 private:
  const topology::SystemSpec& spec_;
  std::unordered_map<std::string, std::string> joins_;
};

Json parts_of(const CauseLog& log, const Wires& wires, const Segments& sums, Ps whole) {
  Json parts = Json::array();
  for (const CauseLog::Segment& part : sums) {
    const std::string& place = log.place_name(part.place);
    Json entry{{"spent", to_string(part.spent)}, {"place", place}};
    if (const std::string joins = wires.of(place); !joins.empty()) entry["joins"] = joins;
    if (part.spent == Spent::detour) entry["around"] = wires.broken(place);
    entry["time_ps"] = part.end - part.begin;
    entry["share"] = share(part.end - part.begin, whole);
    if (const std::vector<std::string> keys = keys_of(part.spent, place); !keys.empty()) entry["keys"] = keys;
    parts.push_back(std::move(entry));
  }
  return parts;
}

Json kinds_of(const Segments& sums, Ps whole) {
  std::map<Spent, Ps> by_kind;
  for (const CauseLog::Segment& part : sums) by_kind[part.spent] += part.end - part.begin;
  std::vector<std::pair<Spent, Ps>> order(by_kind.begin(), by_kind.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json kinds = Json::array();
  for (const auto& [spent, time] : order)
    kinds.push_back({{"spent", to_string(spent)}, {"time_ps", time}, {"share", share(time, whole)}});
  return kinds;
}

void check_sum(const Segments& segments, Ps from, Ps to) {
  Ps at = from;
  for (const CauseLog::Segment& segment : segments) {
    if (segment.begin != at || segment.end <= segment.begin) break;
    at = segment.end;
  }
  if (at != to)
    throw std::logic_error(fmt::format("critical path: segments cover {} ps to {} ps, not to {} ps", from, at, to));
}

/// Without a place a part is what the smallest places of its kind come to.
std::string place_of(const Json& part) {
  const std::string place = part["place"].get<std::string>();
  return place.empty() ? "(other places)" : place;
}

std::string line(const Json& part) {
  return fmt::format("{:.0f}% {} {}", 100 * part["share"].get<double>(), part["spent"].get<std::string>(),
                     part.value("joins", place_of(part)));
}

std::string headline(const Json& parts) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 4); ++i)
    text += (i == 0 ? "" : ", ") + line(parts[i]);
  return text;
}
/// The part of the chain within each stretch: an iteration, a layer. It tiles time, so that this adds up as well. Of
/// too many the first ones and the last ones.
Json of_stretches(const CauseLog& log, const Wires& wires, const Segments& chain,
                  const std::vector<Stretch>& stretches) {
  Json list = Json::array();
  auto at = chain.begin();
  constexpr std::size_t kHalf = CauseLog::kMostLaunches / 2;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    if (i >= kHalf && i + kHalf < stretches.size()) continue;
    const Stretch& stretch = stretches[i];
    while (at != chain.end() && at->end <= stretch.begin) ++at;
    Segments within;
    for (auto segment = at; segment != chain.end() && segment->begin < stretch.end; ++segment) {
      within.push_back(*segment);
      within.back().begin = std::max(segment->begin, stretch.begin);
      within.back().end = std::min(segment->end, stretch.end);
    }
    check_sum(within, stretch.begin, stretch.end);
    const Ps time = stretch.end - stretch.begin;
    list.push_back({{"name", stretch.name},
                    {"timed", stretch.timed},
                    {"begin_ps", stretch.begin},
                    {"time_ps", time},
                    {"parts", parts_of(log, wires, CauseLog::largest(within), time)}});
  }
  return list;
}
}  // namespace

Json critical_path_of(CauseLog& log, const topology::Plan& plan, Ps end, const std::vector<Stretch>& stretches) {
  // What still happens when the host has heard everything: credits and acknowledgements on their way.
  const Cause last = log.step(Spent::other, 0, end, log.host);
  Segments segments = log.chain(last);
  check_sum(segments, 0, end);
  const Wires wires(plan);
  const Segments sums = CauseLog::sums(segments);
  Json json{{"time_ps", end}, {"kinds", kinds_of(sums, end)}, {"parts", parts_of(log, wires, sums, end)}};
  Json& list = json["segments"] = Json::array();
  const std::size_t left_out = segments.size() - std::min(segments.size(), kMostSegments);
  for (std::size_t i = left_out; i < segments.size(); ++i) {
    list.push_back({{"begin_ps", segments[i].begin},
                    {"end_ps", segments[i].end},
                    {"spent", to_string(segments[i].spent)},
                    {"place", log.place_name(segments[i].place)}});
  }
  json["segments_left_out"] = left_out;
  json["stretches"] = of_stretches(log, wires, segments, stretches);
  json["stretches_left_out"] = stretches.size() - json["stretches"].size();
  Json& launches = json["launches"] = Json::array();
  for (const CauseLog::Launch& launch : log.launches()) {
    const Ps time = launch.completed - launch.submitted;
    Ps sum = 0;
    for (const CauseLog::Segment& part : launch.largest) sum += part.end;
    if (sum != time) {
      throw std::logic_error(
          fmt::format("critical path: the parts of '{}' add up to {} ps, and it took {} ps", launch.kernel, sum, time));
    }
    launches.push_back({{"kernel", launch.kernel},
                        {"sip", launch.sip},
                        {"submitted_ps", launch.submitted},
                        {"time_ps", time},
                        {"parts", parts_of(log, wires, launch.largest, time)}});
  }
  json["launches_left_out"] = log.launches_seen() - log.launches().size();
  return json;
}

std::string critical_path_text(const Json& path) {
  const auto us = [](const Json& ps) { return ps.get<double>() / 1e6; };
  std::string text =
      fmt::format("# critical path of the run, {:.3f} us: {}\n", us(path["time_ps"]), headline(path["parts"]));
  text += "#   time (us)  share  spent on              where; keys that govern it\n";
  const auto table = [&](const Json& parts) {
    for (std::size_t i = 0; i < std::min(parts.size(), kMostLines); ++i) {
      const Json& part = parts[i];
      text += fmt::format("# {:11.3f} {:5.1f}%  {:<20}  {}{}{}\n", us(part["time_ps"]),
                          100 * part["share"].get<double>(), part["spent"].get<std::string>(), place_of(part),
                          part.contains("joins") ? fmt::format(" ({})", part["joins"].get<std::string>()) : "",
                          part.contains("keys")
                              ? fmt::format("; {}", fmt::join(part["keys"].get<std::vector<std::string>>(), ", "))
                              : std::string());
    }
  };
  table(path["parts"]);
  std::size_t told = 0;
  for (const Json& stretch : path["stretches"]) {
    if (!stretch["timed"].get<bool>() || ++told > kMostLines) continue;
    text += fmt::format("# critical path of {}, {:.3f} us: {}\n", stretch["name"].get<std::string>(),
                        us(stretch["time_ps"]), headline(stretch["parts"]));
  }
  if (told > kMostLines) text += fmt::format("# {} more of them are in --json\n", told - kMostLines);
  // Of each kernel the slowest of its last launches: those of one instant are one collective's.
  std::map<std::string, const Json*> last;
  for (const Json& launch : path["launches"]) {
    const Json*& known = last[launch["kernel"].get<std::string>()];
    const bool together = known != nullptr && (*known)["submitted_ps"] == launch["submitted_ps"];
    if (known == nullptr || !together || (*known)["time_ps"] < launch["time_ps"]) known = &launch;
  }
  for (const auto& [kernel, launch] : last) {
    text += fmt::format("# critical path of the last launch of {}, {:.3f} us: {}\n", kernel, us((*launch)["time_ps"]),
                        headline((*launch)["parts"]));
    table((*launch)["parts"]);
  }
  return text;
}

}  // namespace kernbench
