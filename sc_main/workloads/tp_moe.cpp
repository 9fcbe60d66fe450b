#include "sc_main/workloads/tp_moe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>

#include "sc_main/workloads/sizes.h"
#include "tlm/config/units.h"

namespace kernbench {

namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> kExpertPhases{"router", "dispatch", "experts", "combine"};

struct LayerSums {
  std::string name;
  std::array<TpTimes::Row, 4> phases;
  std::int64_t least = -1, most = 0, dropped = 0, passes = 0;
  double tokens = 0;  // means of passes
};
}  // namespace

void MoeSettings::add(po::options_description& options) {
  auto more = options.add_options();
  more("ep", po::value(&ep)->default_value(0),
       "of a model with experts: ranks of each --tp group that they are dealt to; what is left of --tp shares each "
       "expert: rank = etp + ETP ep, as Megatron's. 0: as many as --tp");
  more("capacity-factor", po::value(&capacity_factor)->default_value(0),
       "F: a rank sends an expert at most F times its mean share of tokens, the others are dropped; 0: no drops");
  more("expert-skew", po::value<double>()->notifier([this](double value) { skew = value; }),
       "S, with --data off, where no values route: the n-th most popular expert has weight n^-S, by the seed; 0: by "
       "chance, all alike (default: balanced)");
}

void MoeSettings::check_into(Refusals& refusals, const std::string& model, bool mixture) const {
  refusals.check_integer("--ep", ep, 0, 1 << 16);
  if (!(capacity_factor >= 0 && capacity_factor <= 1e6))
    refusals.add(fmt::format("--capacity-factor is {}; give a number from 0 to 1e6", capacity_factor));
  if (skew && !(*skew >= 0 && *skew <= 100))
    refusals.add(fmt::format("--expert-skew is {}; give a number from 0 to 100", *skew));
  if (!asked() || mixture) return;
  const auto refuse = [&](const char* option) {
    refusals.add(fmt::format("{} is of models with experts, which model '{}' has none of", option, model),
                 "such as --model mixtral-8x7b");
  };
  if (ep != 0) refuse("--ep");
  if (capacity_factor != 0) refuse("--capacity-factor");
  if (skew) refuse("--expert-skew");
}

void MoeSettings::check_divides(Refusals& refusals, const tp::Model& model, std::int64_t tp,
                                bool sequence_parallel) const {
  const std::int64_t dealt = ranks(tp);
  if (tp % dealt != 0) return refusals.add(fmt::format("--ep is {}: give a divisor of --tp, {}", dealt, tp));
  if (model.experts % dealt != 0) {
    refusals.add(
        fmt::format("model '{}', layer0.moe: experts is {}: give a multiple of the {} that --ep{} deals them to",
                    model.name, model.experts, counted(dealt, "rank"), ep == 0 ? " (by default --tp)" : ""));
  }
  if (model.mlp_width % (tp / dealt) != 0) {
    refusals.add(fmt::format(
        "model '{}', layer0.moe: mlp_width is {}: give a multiple of the {} that --tp {} and --ep {} make share an "
        "expert",
        model.name, model.mlp_width, counted(tp / dealt, "rank"), tp, dealt));
  }
  if (sequence_parallel && dealt != tp) {
    refusals.add(fmt::format(
        "--sequence-parallel goes with --ep as --tp, {}, and not {}: rows of a rank have their experts' ranks alone",
        tp, dealt));
  }
}

std::vector<std::vector<std::uint16_t>> MoeSettings::groups(std::int64_t tp) const {
  const auto range = [](std::int64_t count, std::int64_t stride) {
    std::vector<std::uint16_t> sips;
    for (std::int64_t i = 0; i < count; ++i) sips.push_back(static_cast<std::uint16_t>(i * stride));
    return sips;
  };
  std::vector<std::vector<std::uint16_t>> groups{range(tp, 1)};
  const std::int64_t dealt = ranks(tp);
  if (dealt > 1 && dealt < tp) {
    groups.push_back(range(dealt, tp / dealt));
    groups.push_back(range(tp / dealt, 1));
  }
  return groups;
}

std::string MoeSettings::routing_text(bool data) const {
  if (data) return "by the router";
  return skew ? fmt::format("assumed, skew {}", *skew) : std::string("assumed, balanced");
}

std::string MoeSettings::text(std::int64_t tp, bool data) const {
  return fmt::format(", EP {} (ETP {}), routing {}{}", ranks(tp), tp / ranks(tp), routing_text(data),
                     capacity_factor > 0 ? fmt::format(", capacity factor {}", capacity_factor) : std::string());
}

Json experts_of(const tp::MoeLog& log, const TpTimes& times, const std::vector<HostTraceEntry>& trace,
                std::size_t first, std::size_t end, int steps) {
  std::vector<LayerSums> layers;
  const auto layer = [&](const std::string& name) -> LayerSums& {
    const auto found =
        std::find_if(layers.begin(), layers.end(), [&](const LayerSums& one) { return one.name == name; });
    if (found != layers.end()) return *found;
    layers.push_back({name, {}});
    return layers.back();
  };
  // Whatever began in a timed pass over these pieces. All are in order of time.
  const auto in_phase = [&](Ps begin) {
    const auto after = std::upper_bound(times.passes().begin(), times.passes().end(), begin,
                                        [](Ps time, const TpTimes::Pass& pass) { return time < pass.begin; });
    if (after == times.passes().begin()) return false;
    const TpTimes::Pass& pass = *std::prev(after);
    return begin < pass.end && pass.layer >= first && pass.layer < end;
  };
  for (const tp::MoeLog::Span& span : log.spans) {
    if (in_phase(span.begin))
      layer(span.layer).phases[static_cast<std::size_t>(span.phase)] += TpTimes::between(trace, span.begin, span.end);
  }
  for (const tp::MoeLog::Pass& pass : log.passes) {
    if (!in_phase(pass.begin)) continue;
    LayerSums& sums = layer(pass.layer);
    const auto [least, most] = std::minmax_element(pass.tokens_per_expert.begin(), pass.tokens_per_expert.end());
    sums.least = sums.least < 0 ? *least : std::min(sums.least, *least);
    sums.most = std::max(sums.most, *most);
    for (const std::int64_t tokens : pass.tokens_per_expert)
      sums.tokens += static_cast<double>(tokens) / static_cast<double>(pass.tokens_per_expert.size());
    sums.dropped += pass.dropped;
    ++sums.passes;
  }
  Json list = Json::array();
  const auto mean = [&](Ps sum) { return static_cast<double>(sum) / steps / 1e3; };
  for (const LayerSums& sums : layers) {
    Json one;
    one["layer"] = sums.name.substr(0, sums.name.find('.'));
    for (std::size_t i = 0; i < kExpertPhases.size(); ++i) {
      const TpTimes::Row& row = sums.phases[i];
      one[kExpertPhases[i]] = {{"time_ns", mean(row.time)},
                               {"compute_ns", mean(row.launch)},
                               {"communication_ns", mean(row.collective + row.hidden)},
                               {"exposed_ns", mean(row.collective)},
                               {"waiting_ns", mean(row.waiting)}};
    }
    const auto passes = static_cast<double>(std::max<std::int64_t>(sums.passes, 1));
    one["tokens_per_expert"] = {
        {"min", std::max<std::int64_t>(sums.least, 0)}, {"mean", sums.tokens / passes}, {"max", sums.most}};
    one["dropped"] = static_cast<double>(sums.dropped) / steps;
    list.push_back(std::move(one));
  }
  return list;
}

std::string experts_text(const std::string& phase, const Json& layers, std::size_t shown) {
  std::string text =
      fmt::format("# {:>8} {:>9} {:>9} {:>13} {:>13} {:>13} {:>13}  {}\n", "experts", "layer", "part", "time",
                  "compute", "exposed", "waiting", "tokens per expert: least, mean, most; dropped");
  for (std::size_t i = 0; i < std::min(layers.size(), shown); ++i) {
    const Json& layer = layers[i];
    for (const char* part : kExpertPhases) {
      const Json& row = layer[part];
      const Json& tokens = layer["tokens_per_expert"];
      const std::string counts =
          part == kExpertPhases.front()
              ? fmt::format("{}, {:.1f}, {}; {}", tokens["min"].get<std::int64_t>(), tokens["mean"].get<double>(),
                            tokens["max"].get<std::int64_t>(), layer["dropped"].get<double>())
              : std::string();
      text += fmt::format("# {:>8} {:>9} {:>9} {:>13.3f} {:>13.3f} {:>13.3f} {:>13.3f}  {}\n", phase,
                          layer["layer"].get<std::string>(), part, row["time_ns"].get<double>(),
                          row["compute_ns"].get<double>(), row["exposed_ns"].get<double>(),
                          row["waiting_ns"].get<double>(), counts);
    }
  }
  return text;
}

}  // namespace kernbench
