#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/tp_model.h"
#include "sc_main/workloads/tp_times.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/units.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// The projection in front of an attention layer: x (tokens, hidden) to queries, keys and values (tokens, 3 hidden),
/// column-parallel over the SIPs by heads. GPT-3's smallest model has 12 heads of 64 (Brown et al. 2020, table 2.1).
class Qkv final : public Workload {
 public:
  std::string name() const override { return "qkv"; }
  std::string help() const override {
    return "the QKV projection of a GPT layer, column-parallel over all SIPs, checked";
  }
  std::string example() const override { return "kernbench run qkv --tokens 16 --heads 12 --head-size 64"; }

  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("tokens", po::value(&tokens_)->default_value(16), "rows of the input");
    add("heads", po::value(&heads_)->default_value(12), "attention heads; divided by the SIPs");
    add("head-size", po::value(&head_size_)->default_value(64), "columns of a head; hidden = heads x head size");
    common_.add(options);
  }

  void check_options() const override {
    Refusals refusals;
    for (const auto& [name, value] :
         {std::pair("--tokens", tokens_), std::pair("--heads", heads_), std::pair("--head-size", head_size_)})
      refusals.check_integer(name, value, 1, 1 << 16);
    common_.check_into(refusals);
    refusals.throw_if_any();
  }

  std::vector<std::string> files() const override { return common_.files(); }

  Report run(Session& session) override {
    const int ranks = session.map().sips;
    if (heads_ % ranks != 0)
      throw std::invalid_argument(
          fmt::format("--heads is {}; give a multiple of the machine's {} SIPs", heads_, ranks));
    const DType dtype = common_.type();
    const std::int64_t hidden = heads_ * head_size_, out = 3 * hidden, own = out / ranks;
    const std::uint64_t seed = session.options().seed;
    // Columns in the order in which Megatron stores them: by head, so that a rank's slice is whole heads.
    HostLayer layer{hidden,
                    out,
                    weight_pattern(seed, 1, dtype, 2 / std::sqrt(static_cast<double>(hidden))),
                    weight_pattern(seed, 2, dtype, 0.5),
                    Activation::none,
                    dtype};
    const tp::WeightPattern input = weight_pattern(seed, 3, dtype, 1);
    std::vector<double> x(static_cast<std::size_t>(tokens_ * hidden));
    std::vector<std::uint8_t> x_bytes(x.size() * size_of(dtype));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = input(static_cast<std::int64_t>(i) / hidden, static_cast<std::int64_t>(i) % hidden);
      store_element(x_bytes.data(), dtype, i, x[i]);
    }
    const tp::LinearPlacement placement = common_.placement();
    std::vector<std::vector<double>> outputs(static_cast<std::size_t>(ranks));
    TpTimes times(1, common_.warmup, common_.iterations);
    session.runtime().init_process_group(common_.group(session));
    session.run(ranks, [&](Context& ctx) {
      using SetUp = TpTimes::SetUp;
      const tp::ParallelState state = tp::initialize_model_parallel(ctx, ranks);
      tp::LinearOptions options;
      options.name = "qkv";
      options.dtype = dtype;
      options.bias = true;
      options.placement = placement;
      std::optional<tp::ColumnParallelLinear> projection;
      Tensor in;
      tp::ForwardTensors y;
      times.set_up(ctx, SetUp::mapping, [&] {
        projection.emplace(state, hidden, out, options);
        in = ctx.empty({tokens_, hidden}, dtype, placement.input, "x");
        y = projection->place(tokens_);
      });
      times.set_up(ctx, SetUp::loading, [&] {
        projection->load_weight(layer.weight);
        projection->load_bias(layer.bias);
        in.write_bytes(x_bytes);
      });
      times.set_up(ctx, SetUp::queues, [&] { projection->prepare(in, y); });
      times.run(ctx, [&](std::size_t) { projection->forward(in, y); });
      if (common_.check == 1) outputs[static_cast<std::size_t>(ctx.rank())] = y.output.to_host();
    });
    Comparison comparison;
    const bool checked = common_.checks(session);
    if (checked) {
      const HostValues whole = layer.forward(exact(x), tokens_, 1);
      for (int rank = 0; rank < ranks; ++rank) {
        for (std::int64_t t = 0; t < tokens_; ++t) {
          const auto row = outputs[static_cast<std::size_t>(rank)].begin() + t * own;
          compare_layer({row, row + own}, whole, static_cast<std::size_t>(t * out + rank * own), dtype, comparison);
        }
      }
    }
    CollectiveBounds bounds(session.map(), ranks);
    return report(ranks, hidden, times, times.of_layers(session.runtime().host_trace(), bounds).front(), checked,
                  comparison);
  }

 private:
  Report report(int ranks, std::int64_t hidden, const TpTimes& times, const TpTimes::Row& spent, bool checked,
                const Comparison& comparison) const {
    const double ns = times.mean_ns(spent.time);
    const double flops = 6.0 * static_cast<double>(tokens_) * static_cast<double>(hidden) * static_cast<double>(hidden);
    Json head;
    head["op"] = "qkv";
    head["tokens"] = tokens_;
    head["heads"] = heads_;
    head["hidden"] = hidden;
    head["dtype"] = to_string(common_.type());
    head["ranks"] = ranks;
    Json set_up = head, row = std::move(head);
    times.add_set_up_to(set_up);
    row["layer"] = "qkv";
    row["time_ns"] = ns;
    times.add_to(spent, row);
    row["tflops"] = ns > 0 ? flops / ns / 1e3 : 0;
    row["check"] = !checked ? "skipped" : comparison.mismatches == 0 ? "ok" : "wrong";
    row["mismatches"] = checked ? Json(comparison.mismatches) : Json();
    row["max_abs_err"] = checked ? Json(comparison.max_abs_error) : Json();
    Report report;
    report.text = fmt::format(
        "# qkv on {}: x ({} x {}) to queries, keys and values of {} heads, by heads over the SIPs\n"
        "# warm-up {}, iterations {}; times in ns, of rank 0: set-up, launch and waiting add up to time\n"
        "#{:>9} {:>7} {:>8} {:>6} {:>14} {:>14} {:>14} {:>12} {:>9} {:>8}\n",
        counted(ranks, "SIP"), tokens_, hidden, heads_, common_.warmup, common_.iterations, "tokens", "hidden", "type",
        "ranks", "time", "set-up", "launch", "waiting", "TFLOP/s", "check");
    const auto line = [&](const std::string& tokens, double time, const std::string& before, const std::string& launch,
                          double waiting, const std::string& rate, const std::string& check) {
      report.text += fmt::format(" {:>9} {:>7} {:>8} {:>6} {:>14.3f} {:>14} {:>14} {:>12.3f} {:>9} {:>8}\n", tokens,
                                 hidden, to_string(common_.type()), ranks, time, before, launch, waiting, rate, check);
    };
    const TpTimes::Row& before = times.of_set_up();
    line("set-up", in_ns(before.time), fmt::format("{:.3f}", in_ns(before.mapping + before.loading + before.queues)),
         "-", in_ns(before.waiting), "-", "-");
    line(std::to_string(tokens_), ns, "-", fmt::format("{:.3f}", times.mean_ns(spent.launch)),
         times.mean_ns(spent.waiting), fmt::format("{:.3f}", row["tflops"].get<double>()),
         row["check"].get<std::string>());
    report.text += times.set_up_text();
    report.wrong = comparison.mismatches > 0;
    report.results.push_back(std::move(set_up));
    report.results.push_back(std::move(row));
    return report;
  }

  std::int64_t tokens_ = 16, heads_ = 12, head_size_ = 64;
  TpOptions common_;
};

}  // namespace

std::unique_ptr<Workload> make_qkv() { return std::make_unique<Qkv>(); }

}  // namespace kernbench
