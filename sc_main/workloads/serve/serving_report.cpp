#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/tp/gemm_bound.h"
#include "sc_main/workloads/serve/serving.h"
#include "sc_main/workloads/sizes.h"
#include "tlm/config/units.h"

namespace kernbench::serve {

namespace {
using Json = nlohmann::ordered_json;

constexpr int kIntervals = 10;               ///< of the utilisation over time
constexpr std::size_t kMostServed = 10'000;  ///< requests that are listed one by one

/// Nearest rank: the least value that so many per cent are not above.
double percentile(std::vector<double> values, int percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t rank = (values.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return values[rank == 0 ? 0 : rank - 1];
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Of none: null.
Json spread(const std::vector<double>& values) {
  if (values.empty()) return {{"mean", nullptr}, {"p50", nullptr}, {"p99", nullptr}};
  return {{"mean", mean(values)}, {"p50", percentile(values, 50)}, {"p99", percentile(values, 99)}};
}
}  // namespace

/// What the machine does between two times.
Json Serving::interval(Ps begin, Ps end) const {
  double prefill = 0, mixed = 0, decode = 0, sequences = 0, waiting = 0, took = 0, tokens = 0;
  Cost done;
  for (const Taken& taken : schedule_.steps) {
    if (taken.end <= begin || taken.begin >= end) continue;
    const auto here = static_cast<double>(std::min(end, taken.end) - std::max(begin, taken.begin));
    const double share = here / static_cast<double>(taken.end - taken.begin);
    const Step& step = taken.step;
    const Cost cost = taken.cost.all();
    const auto given = static_cast<double>(step.batch + step.ends);
    (step.prompts.empty() ? decode : step.batch > 0 ? mixed : prefill) += share * cost.time;
    took += here;
    sequences += here * static_cast<double>(step.batch + static_cast<std::int64_t>(step.prompts.size()));
    waiting += here * static_cast<double>(taken.waiting);
    tokens += share * given;
    const auto add = [share](double before, double more) { return before + share * more; };
    done = Cost::joined(done, cost, add);
    for (std::int64_t sent = 1; sent < limits_.stages; ++sent) done = Cost::joined(done, taken.cost.send, add);
  }
  const auto pes = static_cast<double>(map_.pes(0).size()), length = static_cast<double>(end - begin);
  const double all = length * static_cast<double>(limits_.replicas * limits_.stages);  // of all their machines
  const PeRates rates = map_.rates(map_.pes(0).front());
  const PeEngines& e = rates.engines;
  const tp::CellRate cell = tp::cell_rate(e, options_.dtype);
  const double peak = 2 * static_cast<double>(e.gemm_rows) * e.gemm_cols * static_cast<double>(cell.at_once) /
                      static_cast<double>(cell.cycles) * static_cast<double>(e.gemm_hz) * pes / 1e12;  // per ps
  const double rate = static_cast<double>(rates.hbm_slice.bytes_per_second()) * pes / 1e12;
  const auto replicas = static_cast<double>(limits_.replicas);
  Json utilisation = MachineWork().utilisation(most_);
  for (std::size_t part = 0; part < done.busy.size(); ++part) {
    if (utilisation.contains(MachineWork::kParts[part]))
      utilisation[MachineWork::kParts[part]] = done.busy[part] / length / replicas;
  }
  return {{"begin_s", static_cast<double>(begin) / 1e12},
          {"end_s", static_cast<double>(end) / 1e12},
          {"prefill_share", prefill / all},
          {"mixed_share", mixed / all},
          {"decode_share", decode / all},
          {"mean_batch", took > 0 ? sequences / took : 0},
          {"mean_waiting", took > 0 ? waiting / took : 0},
          {"tokens_per_s", tokens / length * 1e12},
          {"array_share", done.flops / all / peak},
          {"hbm_share", done.bytes / all / rate},
          {"power_w", done.pj / length + standing_},
          {"utilisation", std::move(utilisation)}};
}

Json Serving::row() const {
  std::vector<double> to_first, per_token;
  double output = 0, prompt = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Served& served = schedule_.served[i];
    output += static_cast<double>(requests_[i].output);
    prompt += static_cast<double>(requests_[i].prompt);
    to_first.push_back(static_cast<double>(served.first - requests_[i].arrival) / 1e9);
    if (requests_[i].output == 1) continue;
    per_token.push_back(static_cast<double>(served.last - served.first) / 1e9 /
                        static_cast<double>(requests_[i].output - 1));
  }
  const double seconds = static_cast<double>(schedule_.end) / 1e12;
  Json row;
  row["op"] = "serving";
  row["phase"] = "serving";
  row["model"] = model_.name;
  row["ranks"] = ranks_;
  row["dp"] = limits_.replicas;
  row["pp"] = limits_.stages;
  row["dtype"] = to_string(options_.dtype);
  row["scheduler"] = serving_.scheduler;
  row["chunk"] = limits_.chunk;
  row["batch"] = limits_.batch;
  row["cache_positions"] = limits_.positions;
  row["requests"] = requests_.size();
  row["requests_left_out"] = asked_.left_out;
  row["prompt_tokens"] = prompt;
  row["output_tokens"] = output;
  row["time_ns"] = seconds * 1e9;
  row["requests_per_s"] = static_cast<double>(requests_.size()) / seconds;
  row["tokens_per_s"] = output / seconds;
  row["ttft_ms"] = spread(to_first);
  row["tpot_ms"] = spread(per_token);
  row["steps"] = schedule_.steps.size();
  row["simulated_parts"] = simulated_;
  row["compared_steps"] = compared_;
  row["difference"] = compared_ > 0 ? expected_ / compared_time_ - 1 : 0;
  row["largest_difference"] = largest_;
  Json& over_time = row["over_time"] = Json::array();
  Ps begin = 0;
  for (int i = 1; i <= kIntervals; ++i) {
    const Ps end = schedule_.end / kIntervals * static_cast<Ps>(i) + (i == kIntervals ? schedule_.end % kIntervals : 0);
    if (end > begin) over_time.push_back(interval(begin, end));
    begin = end;
  }
  const Json whole = interval(0, schedule_.end);
  for (const char* key :
       {"prefill_share", "mixed_share", "decode_share", "mean_batch", "mean_waiting", "array_share", "hbm_share"})
    row[key] = whole[key];
  row["energy_pj"] = whole["power_w"].get<double>() * static_cast<double>(schedule_.end);
  row["token_energy_pj"] = row["energy_pj"].get<double>() / output;
  row["utilisation"] = whole["utilisation"];
  row["served"] = served();
  return row;
}

/// What became of the first requests: whoever wants other percentiles takes them from here.
Json Serving::served() const {
  Json list = Json::array();
  const auto ms = [](Ps time) { return static_cast<double>(time) / 1e9; };
  for (std::size_t i = 0; i < std::min(requests_.size(), kMostServed); ++i) {
    const Request& request = requests_[i];
    const Served& one = schedule_.served[i];
    list.push_back({{"arrival_ms", ms(request.arrival)},
                    {"prompt", request.prompt},
                    {"output", request.output},
                    {"first_token_ms", ms(one.first)},
                    {"last_token_ms", ms(one.last)}});
  }
  return list;
}

Report Serving::report() const {
  Json row = this->row();
  Report report;
  const auto line = [](const char* what, const Json& of) {
    if (of["mean"].is_null()) return fmt::format("# {}: -; no request has two tokens\n", what);
    return fmt::format("# {}: mean {:.3f} ms, P50 {:.3f}, P99 {:.3f}\n", what, of["mean"].get<double>(),
                       of["p50"].get<double>(), of["p99"].get<double>());
  };
  const auto whole = [&](const char* key) { return row[key].get<double>(); };
  report.text = fmt::format(
      "# serving, {}: {}{}, {:.0f} prompt and {:.0f} output tokens, at most {} at once, TP {} x DP {} x PP {}, {}, "
      "room "
      "for {} positions of KV caches, {}{}\n",
      model_.name, counted(static_cast<std::int64_t>(requests_.size()), "request"),
      asked_.left_out > 0 ? fmt::format(" ({} of the file left out, which generate nothing)", asked_.left_out) : "",
      whole("prompt_tokens"), whole("output_tokens"), limits_.batch, ranks_, limits_.replicas, limits_.stages,
      to_string(options_.dtype), limits_.positions, serving_.scheduler,
      limits_.chunk > 0 ? fmt::format(" of {} tokens", limits_.chunk) : "");
  report.text += fmt::format("# took {:.6f} s: {:.3f} requests and {:.1f} output tokens per second\n",
                             whole("time_ns") / 1e9, whole("requests_per_s"), whole("tokens_per_s"));
  report.text += line("time to first token", row["ttft_ms"]) + line("time per output token", row["tpot_ms"]);
  report.text +=
      fmt::format("# {:.6f} J, {:.6f} J per output token, mean utilisation: {}\n", whole("energy_pj") * 1e-12,
                  whole("token_energy_pj") * 1e-12, utilisation_text(row["utilisation"]));
  report.text +=
      fmt::format("#{:>11} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
                  "from (s)", "to (s)", "prefill", "mixed", "decode", "batch", "waiting", "tokens/s", "arrays", "HBM",
                  "NoC", "UCIe", "links", "power (W)");
  for (const Json& one : row["over_time"]) {
    const auto of = [&](const char* key) { return one[key].get<double>(); };
    report.text += fmt::format(" {:>11.6f} {:>12.6f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.2f} {:>8.2f} {:>12.1f}",
                               of("begin_s"), of("end_s"), of("prefill_share"), of("mixed_share"), of("decode_share"),
                               of("mean_batch"), of("mean_waiting"), of("tokens_per_s"));
    for (const char* part : MachineWork::kParts)
      report.text += fmt::format(" {:>8.3f}", one["utilisation"].value(part, 0.0));
    report.text += fmt::format(" {:>9.3f}\n", of("power_w"));
  }
  report.text += fmt::format(
      "# {} steps, from {} simulated parts and what lies between them; {} steps simulated in one go, their decode "
      "by as many sequences of the length that sets its time: {:+.2f} % off in all, at most {:.2f} %\n",
      schedule_.steps.size(), simulated_, compared_, 100 * whole("difference"), 100 * largest_);
  report.results.push_back(std::move(row));
  return report;
}

}  // namespace kernbench::serve
