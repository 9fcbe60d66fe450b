#include "sc_main/run/launch_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/pe/compute/gemm_array.h"
#include "tlm/kernel/dtype.h"
#include "tlm/machine/names.h"
#include "topology/plan/plan.h"

namespace kernbench {
namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostSpent = 4;  ///< of a kernel's critical path, kinds that are named
constexpr double kWorthNaming = 0.05;  ///< of its time

/// Without "layer<k>.".
std::string kind_of(const std::string& kernel) {
  constexpr std::size_t kLayer = 5;
  if (kernel.rfind("layer", 0) != 0) return kernel;
  const std::size_t dot = kernel.find_first_not_of("0123456789", kLayer);
  return dot != std::string::npos && dot > kLayer && kernel[dot] == '.' ? kernel.substr(dot + 1) : kernel;
}

const OpRecord::Param* find(const OpRecord& record, const char* name) {
  const auto found = std::find_if(record.params.begin(), record.params.end(),
                                  [&](const OpRecord::Param& param) { return std::string_view(param.name) == name; });
  return found == record.params.end() ? nullptr : &*found;
}
double number(const OpRecord& record, const char* name) {
  const OpRecord::Param* param = find(record, name);
  return param == nullptr ? 0 : static_cast<double>(param->number);
}
std::string word(const OpRecord& record, const char* name) {
  const OpRecord::Param* param = find(record, name);
  return param == nullptr ? std::string() : param->text;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// What the host says of the launches of one kernel.
struct Known {
  LaunchBound bound;  // sums
  std::size_t launches = 0;
};
/// How many of each kernel were not simulated.
std::map<std::string, std::size_t> repeats_of(const std::vector<HostTraceEntry>& trace) {
  std::map<std::string, std::size_t> repeats;
  for (const HostTraceEntry& entry : trace) {
    if (entry.repeated) ++repeats[kind_of(entry.name)];
  }
  return repeats;
}
std::map<std::string, Known> known_of(const std::vector<HostTraceEntry>& trace) {
  std::map<std::string, Known> all;
  for (const HostTraceEntry& entry : trace) {
    if (entry.kind != "launch" || entry.bound.time == 0) continue;
    Known& known = all[kind_of(entry.name)];
    known.bound.time += entry.bound.time;
    known.bound.flops += entry.bound.flops;
    known.bound.bytes += entry.bound.bytes;
    ++known.launches;
  }
  return all;
}

/// Critical paths of the launches of one kernel, by what their time went for, from the kernel's start on: before it, a
/// launch stands behind others.
struct Path {
  struct Part {
    Ps time = 0;
    std::map<std::string, Ps> places;
  };
  Ps time = 0;
  std::map<Spent, Part> parts;
};
std::map<std::string, Path> paths_of(const CauseLog& causes) {
  std::map<std::string, Path> all;
  for (const CauseLog::Launch& launch : causes.launches()) {
    Path& path = all[kind_of(launch.kernel)];
    path.time += launch.completed - launch.started;
    for (const CauseLog::Segment& part : launch.running) {
      Path::Part& sum = path.parts[part.spent];
      sum.time += part.end;
      sum.places[causes.place_name(part.place)] += part.end;
    }
  }
  return all;
}

/// Of the places, the most first, that make up half of what is known to be spent.
std::vector<std::string> keys_of(Spent spent, const std::vector<std::pair<std::string, Ps>>& places) {
  Ps known = 0, told = 0;
  for (const auto& [place, time] : places) known += place.empty() && places.size() > 1 ? 0 : time;
  std::vector<std::string> keys;
  for (const auto& [place, time] : places) {
    for (std::string& key : keys_of(spent, place)) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
    }
    told += time;
    if (2 * told >= known) break;
  }
  return keys;
}

Json binds_of(const Path& path) {
  std::vector<std::pair<Spent, const Path::Part*>> order;
  for (const auto& [spent, part] : path.parts) order.emplace_back(spent, &part);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->time > b.second->time; });
  Json binds = Json::array();
  for (const auto& [spent, part] : order) {
    const double share = ratio(static_cast<double>(part->time), static_cast<double>(path.time));
    if (binds.size() == kMostSpent || share < kWorthNaming) break;
    std::vector<std::pair<std::string, Ps>> places(part->places.begin(), part->places.end());
    std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.empty(), b.second) < std::pair(b.first.empty(), a.second);
    });
    binds.push_back({{"spent", to_string(spent)},
                     {"share", share},
                     {"place", places.front().first},
                     {"keys", keys_of(spent, places)}});
  }
  return binds;
}

double hbm_of(const std::map<std::string, double>& bytes) {
  const auto found = bytes.find("hbm");
  return found == bytes.end() ? 0 : found->second;
}
}  // namespace

void LaunchTable::Work::add(const Work& other, double times) {
  for (std::size_t i = 0; i < kEngines; ++i) busy[i] += other.busy[i] * times;
  flops += other.flops * times;
  array_s += other.array_s * times;
  for (const auto& [space, count] : other.bytes) bytes[space] += count * times;
  sent += other.sent * times;
}

void LaunchTable::Sum::add(const Sum& other, double times) {
  launches += other.launches * times;
  pes += other.pes * times;
  time += other.time * times;
  pe_time += other.pe_time * times;
  hbm_s += other.hbm_s * times;
  work.add(other.work, times);
}

struct LaunchTable::Launched final : ReplayRecord::Done {
  Sums sums;
};

std::unique_ptr<ReplayRecord::Done> LaunchTable::begin(const Batch& batch) {
  if (batch.links) return nullptr;
  auto launched = std::make_unique<Launched>();
  launched->sums = by_sip_[batch.sip];
  return launched;
}

void LaunchTable::end(int sip, Done& done) {
  Sums& sums = static_cast<Launched&>(done).sums;
  Sums now;
  for (const auto& [kernel, sum] : by_sip_[sip]) {
    const auto before = sums.find(kernel);
    if (before != sums.end() && before->second.launches == sum.launches) continue;
    now[kernel].add(sum, 1);
    if (before != sums.end()) now[kernel].add(before->second, -1);
  }
  sums = std::move(now);
}

void LaunchTable::simulated(ReplayRecord::Work work, const Done& done, Ps, bool afresh) {
  Seen& seen = seen_[{work.kind, work.part}];
  if (afresh) seen.sums.clear();
  seen.occurrences = afresh ? 1 : seen.occurrences + 1;
  for (const auto& [kernel, sum] : static_cast<const Launched&>(done).sums) seen.sums[kernel].add(sum, 1);
}

void LaunchTable::repeated(ReplayRecord::Work work, const Batch&, Ps, Ps) {
  seen_[{work.kind, work.part}].repeats += 1;
}

Ps LaunchTable::Busy::add(Ps start, Ps end) {
  Ps more = end - start;
  Ps from = start, to = end;
  while (!known_.empty() && known_.back().second >= from) {
    const auto [begin, until] = known_.back();
    more -= std::min(end, until) - std::min(end, std::max(start, begin));
    from = std::min(from, begin);
    to = std::max(to, until);
    known_.pop_back();
  }
  known_.emplace_back(from, to);
  if (known_.size() > kMost) known_.erase(known_.begin());
  return more;
}

void LaunchTable::op(const OpRecord& record) {
  if (record.kind == "host") {
    const auto found = open_.find(record.launch);
    if (found == open_.end()) return;
    close(found->second);
    open_.erase(found);
    return;
  }
  if (record.launch == 0) return;
  Work& work = open_[record.launch].work;
  const std::string leaf = names::leaf(record.component);
  static constexpr std::array<const char*, kEngines> kNames{"gemm", "math", "dma_r", "dma_w"};
  for (std::size_t engine = 0; engine < kEngines; ++engine) {
    if (leaf != kNames[engine]) continue;
    work.busy[engine] += static_cast<double>(busy_[record.component].add(record.start, record.end));
  }
  if (record.name == "gemm") {
    const double flops = 2 * number(record, "m") * number(record, "n") * number(record, "k");
    work.flops += flops;
    const std::optional<DType> dtype = parse_dtype(word(record, "dtype"));
    const double peak = dtype ? 2 * pe::peak_macs_per_second(plan_.spec.cube.pe.gemm, *dtype) : 0;
    work.array_s += ratio(flops, peak);
  } else if (record.kind == "dma") {
    work.bytes[word(record, "space")] += number(record, "nbytes");
  } else if (leaf == "ipcq_send") {
    work.sent += number(record, "nbytes");
  }
}

void LaunchTable::kernel(const OpRecord& record) {
  Open& launch = open_[record.launch];
  launch.kernel = record.kernel;
  launch.begin = std::min(launch.begin, record.start);
  launch.end = std::max(launch.end, record.end);
  launch.pe_time += record.end - record.start;
  ++launch.pes;
  const PeCoord pe = names::parse_pe(record.component);
  launch.sip = pe.sip;
  launch.hbm_rate += static_cast<double>(plan_.map.rates(pe).hbm_slice.bytes_per_second());
}

void LaunchTable::close(const Open& launch) {
  if (launch.pes == 0) return;  // it failed before a kernel of it had ended
  const std::string name = kind_of(launch.kernel);
  if (std::find(order_.begin(), order_.end(), name) == order_.end()) order_.push_back(name);
  Sum sum;
  sum.launches = 1;
  sum.pes = static_cast<double>(launch.pes);
  sum.time = static_cast<double>(launch.end - launch.begin);
  sum.pe_time = sum.pes * sum.time;
  sum.hbm_s = ratio(hbm_of(launch.work.bytes), launch.hbm_rate);
  sum.work = launch.work;
  by_sip_[launch.sip][name].add(sum, 1);
}

Json LaunchTable::json(const std::vector<HostTraceEntry>& trace, const CauseLog& causes) const {
  const std::map<std::string, Known> known = known_of(trace);
  const std::map<std::string, Path> paths = paths_of(causes);
  const std::map<std::string, std::size_t> repeats = repeats_of(trace);
  Sums simulated, all;
  for (const auto& [sip, of_sip] : by_sip_) {
    for (const auto& [kernel, sum] : of_sip) simulated[kernel].add(sum, 1);
  }
  all = simulated;
  for (const auto& [work, one] : seen_) {
    if (one.occurrences == 0 || one.repeats == 0) continue;
    for (const auto& [kernel, sum] : one.sums) all[kernel].add(sum, one.repeats / one.occurrences);
  }
  Json launches = Json::array();
  for (const std::string& name : order_) {
    const Sum& sum = all.at(name);
    const double count = sum.launches, time_s = sum.time * 1e-12, pe_s = sum.pe_time * 1e-12;
    const auto use = [&](Engine engine) { return ratio(sum.work.busy[engine] * 1e-12, pe_s); };
    const double hbm = hbm_of(sum.work.bytes), of_peak = ratio(sum.work.array_s, pe_s),
                 of_hbm = ratio(sum.hbm_s, time_s);
    Json bytes = Json::object();
    for (const auto& [space, moved] : sum.work.bytes) bytes[space] = moved / count;
    Json row{{"kernel", name},
             {"launches", std::llround(simulated.at(name).launches)},
             {"pes", sum.pes / count},
             {"time_ns", time_s * 1e9 / count},
             {"flops", sum.work.flops / count},
             {"bytes", std::move(bytes)},
             {"sent_bytes", sum.work.sent / count},
             {"array_busy", use(gemm)},
             {"math_busy", use(math)},
             {"dma_busy", std::max(use(dma_r), use(dma_w))},
             {"array_of_peak", of_peak},
             {"hbm_of_peak", of_hbm},
             {"tflops", ratio(sum.work.flops, time_s) / 1e12},
             {"flop_per_byte", hbm > 0 ? Json(sum.work.flops / hbm) : Json()},
             {"roof", of_peak >= of_hbm ? "array" : "HBM"},
             {"roof_share", std::max(of_peak, of_hbm)},
             {"least_bytes", nullptr},
             {"bound_ns", nullptr},
             {"bound_share", nullptr},
             {"binds", Json::array()}};
    if (of_peak <= 0 && of_hbm <= 0) row["roof"] = nullptr;
    if (const auto more = repeats.find(name); more != repeats.end()) {
      row["launches"] = std::llround(simulated.at(name).launches) + static_cast<long long>(more->second);
      row["repeats"] = more->second;
    }
    if (const auto said = known.find(name); said != known.end()) {
      const auto of = static_cast<double>(said->second.launches);
      row["least_bytes"] = said->second.bound.bytes / of;
      row["bound_ns"] = static_cast<double>(said->second.bound.time) / 1e3 / of;
      row["bound_share"] = ratio(row["bound_ns"].get<double>(), row["time_ns"].get<double>());
    }
    if (const auto path = paths.find(name); path != paths.end()) row["binds"] = binds_of(path->second);
    launches.push_back(std::move(row));
  }
  return launches;
}

std::string LaunchTable::text(const Json& launches) {
  if (launches.empty()) return "# no kernel was launched: --explain has no launches to list\n";
  std::string text =
      fmt::format("# {:>28} {:>8} {:>5} {:>11} {:>5} {:>5} {:>5} {:>10} {:>7} {:>12} {:>13} {:>13} {:>6}\n",
                  "launches of", "number", "PEs", "time (us)", "array", "math", "DMA", "moved (B)", "x least",
                  "array FLOP/B", "array TFLOP/s", "of the roof", "bound");
  const auto percent = [](const Json& share) { return fmt::format("{:.0f}%", 100 * share.get<double>()); };
  for (const Json& row : launches) {
    double moved = 0;
    for (const Json& bytes : row["bytes"]) moved += bytes.get<double>();
    const bool bound = row["least_bytes"].is_number();
    text += fmt::format(
        "# {:>28} {:>8} {:>5.4g} {:>11.3f} {:>5} {:>5} {:>5} {:>10.0f} {:>7} {:>12} {:>13.3f} {:>13} {:>6}\n",
        row["kernel"].get<std::string>(), row["launches"].get<std::size_t>(), row["pes"].get<double>(),
        row["time_ns"].get<double>() / 1e3, percent(row["array_busy"]), percent(row["math_busy"]),
        percent(row["dma_busy"]), moved,
        bound && row["least_bytes"].get<double>() > 0
            ? fmt::format("{:.2f}", row["bytes"].value("hbm", 0.0) / row["least_bytes"].get<double>())
            : "-",
        row["flop_per_byte"].is_number() ? fmt::format("{:.1f}", row["flop_per_byte"].get<double>()) : "-",
        row["tflops"].get<double>(),
        row["roof"].is_string() ? fmt::format("{} of {}", percent(row["roof_share"]), row["roof"].get<std::string>())
                                : "-",
        bound ? fmt::format("{:.3f}", row["bound_share"].get<double>()) : "-");
  }
  for (const Json& row : launches) {
    text += fmt::format("# {} waits for:\n", row["kernel"].get<std::string>());
    for (const Json& one : row["binds"]) {
      const std::string place = one["place"].get<std::string>();
      std::string keys;
      for (const Json& key : one["keys"]) keys += (keys.empty() ? "" : ", ") + key.get<std::string>();
      text += fmt::format("#   {:>4} {}{}{}\n", percent(one["share"]), one["spent"].get<std::string>(),
                          place.empty() ? "" : ", most at " + place, keys.empty() ? "" : "; governed by " + keys);
    }
  }
  return text;
}

}  // namespace kernbench
