#include "sc_main/workloads/serve/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "runtime/tp/gemm_bound.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/refusals.h"
#include "sc_main/workloads/sizes.h"

namespace kernbench::serve {

namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kSimulatedLayers = 2;  ///< the first finds what another step left, the second what a layer leaves
constexpr std::size_t kCompared = 4;         ///< steps that are simulated as they are, to compare
constexpr int kIntervals = 10;               ///< of the utilisation over time

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
}

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

Json spread(const std::vector<double>& values) {
  return {{"mean", mean(values)}, {"p50", percentile(values, 50)}, {"p99", percentile(values, 99)}};
}
}  // namespace

bool ServingOptions::is_file() const { return asked() && !is_number(requests); }

std::vector<Request> ServingOptions::read(std::uint64_t seed) const {
  if (is_file()) {
    if (rate > 0) throw std::invalid_argument("--rate is of --requests N; a file says when its requests arrive");
    return read_requests(requests, static_cast<std::size_t>(most));
  }
  const std::int64_t count = std::stoll(requests);
  Refusals refusals;
  refusals.check_integer("--requests", count, 1, 1'000'000);
  if (!(rate > 0 && rate <= 1e6))
    refusals.add(fmt::format("--rate is {}; give requests per second, above 0 up to 1e6", rate));
  refusals.check_integer("--prompt", prompt, 1, 1 << 20);
  refusals.check_integer("--decode", output, 1, 1 << 20);
  refusals.throw_if_any();
  return make_requests(rate, static_cast<std::size_t>(count), seed, prompt, output);
}

Serving::Serving(const MachineMap& map, tp::Model model, tp::TransformerOptions options, std::int64_t layers,
                 std::int64_t ranks, const ServingOptions& serving, std::vector<Request> requests, std::uint64_t seed,
                 std::uint64_t weights_bytes, std::uint64_t have_bytes)
    : map_(map),
      model_(std::move(model)),
      options_(std::move(options)),
      layers_(layers),
      ranks_(ranks),
      serving_(serving),
      requests_(std::move(requests)),
      seed_(seed),
      bounds_(map, static_cast<int>(ranks)) {
  const std::int64_t heads = std::max<std::int64_t>(model_.kv_heads / ranks, 1);
  const auto position = static_cast<std::uint64_t>(2 * layers * heads * model_.head_dim) * size_of(options_.dtype);
  limits_.batch = serving.batch;
  limits_.positions = static_cast<std::int64_t>((have_bytes - std::min(weights_bytes, have_bytes)) / position);
  check_room(requests_, limits_);
}

/// One pass of a step of `wanted_`, by pieces: embedding, layers, logits.
void Serving::measure(Context& ctx, const tp::ParallelState& state) {
  using SetUp = TpTimes::SetUp;
  const bool prefill = wanted_->batch == 0;
  const std::int64_t batch = prefill ? 1 : wanted_->batch, before = prefill ? 0 : wanted_->positions,
                     length = prefill ? wanted_->positions : 1;
  const auto layers =
      static_cast<std::int64_t>(std::min<std::size_t>(kSimulatedLayers, static_cast<std::size_t>(layers_)));
  std::optional<tp::Transformer> model;
  tp::TransformerTensors tensors;
  Tensor x;
  times_->set_up(ctx, SetUp::mapping, [&] {
    model.emplace(state, model_, layers, batch, before + length, options_);
    tensors = model->place(length);
    if (!options_.ends)
      x = ctx.empty({batch * length, model_.width}, options_.dtype, options_.placement.output, "input");
  });
  model->skip(before);
  times_->set_up(ctx, SetUp::queues, [&] { model->prepare(tensors); });
  std::vector<std::int64_t> tokens;
  std::uint64_t random = splitmix64(seed_ + 7);
  for (std::int64_t i = 0; i < batch * length; ++i) {
    random = splitmix64(random);
    tokens.push_back(static_cast<std::int64_t>(random % static_cast<std::uint64_t>(model_.vocabulary)));
  }
  times_->run(ctx, [&](std::size_t piece) {
    const std::int64_t layer = static_cast<std::int64_t>(piece) - (options_.ends ? 1 : 0);
    if (layer < 0) {
      x = model->embed(tokens, tensors);
    } else if (layer < layers) {
      x = model->layer(static_cast<std::size_t>(layer), x, tensors);
    } else {
      x = model->logits(x, tensors);
    }
  });
}

/// Of all layers.
Cost Serving::cost(const std::vector<TpTimes::Row>& rows) const {
  const std::size_t last = rows.size() - 1 - (options_.ends ? 1 : 0);  // of the layers
  const auto simulated = std::min<std::int64_t>(kSimulatedLayers, layers_);
  Cost sum;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double times = i == last ? static_cast<double>(layers_ - simulated + 1) : 1;
    sum.time += times * static_cast<double>(rows[i].time);
    sum.flops += times * rows[i].flops;
    sum.bytes += times * rows[i].bytes;
  }
  return sum;
}

Cost Serving::simulate(Context& ctx, const tp::ParallelState& state, const Runtime& runtime, const StepKind& kind) {
  wanted_ = kind;
  const std::size_t layers = std::min(kSimulatedLayers, static_cast<std::size_t>(layers_));
  times_.emplace(layers + (options_.ends ? 2 : 0), 0, 1);
  ctx.barrier();
  measure(ctx, state);
  return cost(times_->of_layers(runtime.host_trace(), bounds_));
}

void Serving::run(Context& ctx, const Runtime& runtime) {
  const tp::ParallelState state = tp::initialize_model_parallel(ctx, ctx.world_size());
  if (ctx.rank() != 0) {
    for (ctx.barrier(); wanted_; ctx.barrier()) measure(ctx, state);
    return;
  }
  const auto exactly = [&](const StepKind& kind) { return simulate(ctx, state, runtime, kind); };
  StepCosts costs(exactly);
  schedule_ = serve(requests_, limits_, [&](const Step& step) { return costs.of(step); });
  simulated_ = costs.simulated();
  compare(costs, exactly);
  wanted_.reset();
  ctx.barrier();
}

/// Some steps, chosen by the seed, as they are.
void Serving::compare(StepCosts& costs, const std::function<Cost(const StepKind&)>& exactly) {
  std::uint64_t random = splitmix64(seed_ + 13);
  for (std::size_t i = 0; i < kCompared; ++i) {
    random = splitmix64(random);
    Step step = schedule_.steps[random % schedule_.steps.size()].step;
    step.positions = std::round(step.positions);
    const StepKind kind{step.prefill ? 0 : step.batch, static_cast<std::int64_t>(step.positions)};
    const double expected = costs.of(step).time, took = exactly(kind).time;
    ++compared_;
    largest_ = std::max(largest_, std::abs(expected - took) / took);
  }
}

/// What the machine does between two times.
Json Serving::interval(Ps begin, Ps end) const {
  double prefill = 0, decode = 0, sequences = 0, waiting = 0, tokens = 0, flops = 0, bytes = 0;
  for (const Taken& taken : schedule_.steps) {
    if (taken.end <= begin || taken.begin >= end) continue;
    const auto here = static_cast<double>(std::min(end, taken.end) - std::max(begin, taken.begin));
    const double share = here / static_cast<double>(taken.end - taken.begin);
    (taken.step.prefill ? prefill : decode) += here;
    sequences += here * static_cast<double>(taken.step.batch);
    waiting += here * static_cast<double>(taken.waiting);
    tokens += share * static_cast<double>(taken.step.batch);
    flops += share * taken.cost.flops;
    bytes += share * taken.cost.bytes;
  }
  const auto pes = static_cast<double>(map_.pes(0).size()), all = static_cast<double>(end - begin);
  const PeRates rates = map_.rates(map_.pes(0).front());
  const PeEngines& e = rates.engines;
  const tp::CellRate cell = tp::cell_rate(e, options_.dtype);
  const double peak = 2 * static_cast<double>(e.gemm_rows) * e.gemm_cols * static_cast<double>(cell.at_once) /
                      static_cast<double>(cell.cycles) * static_cast<double>(e.gemm_hz) * pes / 1e12;  // per ps
  const double rate = static_cast<double>(rates.hbm_slice.bytes_per_second()) * pes / 1e12;
  const double busy = prefill + decode;
  return {{"begin_s", static_cast<double>(begin) / 1e12},
          {"end_s", static_cast<double>(end) / 1e12},
          {"prefill_share", prefill / all},
          {"decode_share", decode / all},
          {"mean_batch", busy > 0 ? sequences / busy : 0},
          {"mean_waiting", busy > 0 ? waiting / busy : 0},
          {"tokens_per_s", tokens / all * 1e12},
          {"array_share", flops / all / peak},
          {"hbm_share", bytes / all / rate}};
}

Report Serving::report() const {
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
  row["dtype"] = to_string(options_.dtype);
  row["batch"] = limits_.batch;
  row["cache_positions"] = limits_.positions;
  row["requests"] = requests_.size();
  row["prompt_tokens"] = prompt;
  row["output_tokens"] = output;
  row["time_ns"] = seconds * 1e9;
  row["requests_per_s"] = static_cast<double>(requests_.size()) / seconds;
  row["tokens_per_s"] = output / seconds;
  row["ttft_ms"] = spread(to_first);
  row["tpot_ms"] = spread(per_token);
  row["steps"] = schedule_.steps.size();
  row["simulated_steps"] = simulated_;
  row["compared_steps"] = compared_;
  row["largest_difference"] = largest_;
  Json& over_time = row["over_time"] = Json::array();
  Ps begin = 0;
  for (int i = 1; i <= kIntervals; ++i) {
    const Ps end = schedule_.end / kIntervals * static_cast<Ps>(i) + (i == kIntervals ? schedule_.end % kIntervals : 0);
    if (end > begin) over_time.push_back(interval(begin, end));
    begin = end;
  }
  const Json whole = interval(0, schedule_.end);
  for (const char* key : {"prefill_share", "decode_share", "mean_batch", "mean_waiting", "array_share", "hbm_share"})
    row[key] = whole[key];

  Report report;
  const auto line = [](const char* what, const Json& of) {
    return fmt::format("# {}: mean {:.3f} ms, P50 {:.3f}, P99 {:.3f}\n", what, of["mean"].get<double>(),
                       of["p50"].get<double>(), of["p99"].get<double>());
  };
  report.text = fmt::format(
      "# serving, {}: {}, {:.0f} prompt and {:.0f} output tokens, at most {} at once, TP {}, {}, room for {} positions "
      "of KV caches\n",
      model_.name, counted(static_cast<std::int64_t>(requests_.size()), "request"), prompt, output, limits_.batch,
      ranks_, to_string(options_.dtype), limits_.positions);
  report.text += fmt::format("# took {:.6f} s: {:.3f} requests and {:.1f} output tokens per second\n", seconds,
                             row["requests_per_s"].get<double>(), row["tokens_per_s"].get<double>());
  report.text += line("time to first token", row["ttft_ms"]) + line("time per output token", row["tpot_ms"]);
  report.text += fmt::format("#{:>11} {:>12} {:>8} {:>8} {:>8} {:>8} {:>12} {:>8} {:>8}\n", "from (s)", "to (s)",
                             "prefill", "decode", "batch", "waiting", "tokens/s", "arrays", "HBM");
  for (const Json& one : over_time) {
    const auto of = [&](const char* key) { return one[key].get<double>(); };
    report.text += fmt::format(" {:>11.6f} {:>12.6f} {:>8.3f} {:>8.3f} {:>8.2f} {:>8.2f} {:>12.1f} {:>8.3f} {:>8.3f}\n",
                               of("begin_s"), of("end_s"), of("prefill_share"), of("decode_share"), of("mean_batch"),
                               of("mean_waiting"), of("tokens_per_s"), of("array_share"), of("hbm_share"));
  }
  report.text += fmt::format(
      "# {} steps, from {} simulated ones and what lies between them; {} checked by simulating them as they are: at "
      "most {:.2f} % "
      "off\n",
      schedule_.steps.size(), simulated_, compared_, 100 * largest_);
  report.results.push_back(std::move(row));
  return report;
}

}  // namespace kernbench::serve
