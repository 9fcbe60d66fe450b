#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/start_collective.h"
#include "sc_main/workloads/tp_model.h"
#include "sc_main/workloads/tp_times.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/units.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// A layer, or all of them: what the ranks of the run share. Ranks take turns, so it needs no lock.
struct Layer {
  std::string name;
  std::int64_t in = 0, out = 0;
  TpTimes::Row times;
  Comparison comparison;                           ///< over all ranks
  std::vector<std::vector<std::uint8_t>> outputs;  ///< by rank, as they stand in memory
};

class TpMlp final : public Workload {
 public:
  std::string name() const override { return "tp_mlp"; }
  std::string help() const override { return "a two-layer perceptron, tensor-parallel over all SIPs, checked"; }
  std::string example() const override { return "kernbench run tp_mlp --batch 1 --in 512 --hidden 2048 --out 512"; }
  void add_options(po::options_description& options) override;
  void check_options() const override;
  std::vector<std::string> files() const override { return common_.files(); }
  Report run(Session& session) override;

 private:
  struct Model {
    HostLayer fc1, fc2;
    tp::LinearPlacement placement;
  };
  Model model(const Session& session) const;
  void rank_program(Context& ctx, const Model& model, TpTimes& times);
  void check_outputs(const Session& session, const Model& model);
  Report report(const Session& session, const TpTimes& times);
  Json head(const std::string& layer) const;
  Json row(const Session& session, const Layer& layer, const TpTimes& times) const;

  std::int64_t batch_ = 1, in_ = 512, hidden_ = 2048, out_ = 512;
  int bias_ = 1, overlap_ = 1, ranks_ = 1;
  bool alike_ = true;  ///< all-reduces give all ranks the same bits
  double input_ = 0.1;
  std::string activation_;
  TpOptions common_;
  std::vector<Layer> layers_;
};

void TpMlp::add_options(po::options_description& options) {
  auto add = options.add_options();
  add("batch", po::value(&batch_)->default_value(1), "rows of the input");
  add("in", po::value(&in_)->default_value(512), "columns of the input");
  add("hidden", po::value(&hidden_)->default_value(2048), "columns between the layers; divided by the SIPs");
  add("out", po::value(&out_)->default_value(512), "columns of the output");
  add("input", po::value(&input_)->default_value(0.1, "0.1"), "every element of the input");
  add("activation", po::value(&activation_)->default_value("gelu"), "none, relu, gelu, silu, tanh or sigmoid");
  add("bias", po::value(&bias_)->default_value(1), "biases in both layers: 0 or 1");
  add("overlap", po::value(&overlap_)->default_value(1),
      "chunks of rows of a row-parallel GEMM, each all-reduced while the next is multiplied; 1: one after the other");
  common_.add(options);
}

void TpMlp::check_options() const {
  Refusals refusals;
  for (const auto& [name, value] :
       {std::pair("--batch", batch_), std::pair("--in", in_), std::pair("--hidden", hidden_), std::pair("--out", out_)})
    refusals.check_integer(name, value, 1, 1 << 20);
  refusals.check_flag("--bias", bias_);
  refusals.check_integer("--overlap", overlap_, 1, tp::kMostOverlapChunks);
  if (!std::isfinite(input_)) refusals.add("--input is not a finite number");
  refusals.from([this] { parse_activation("--activation", activation_); });
  common_.check_into(refusals);
  refusals.throw_if_any();
}

TpMlp::Model TpMlp::model(const Session& session) const {
  if (hidden_ % session.map().sips != 0) {
    throw std::invalid_argument(
        fmt::format("--hidden is {}; give a multiple of the machine's {} SIPs", hidden_, session.map().sips));
  }
  const std::uint64_t seed = session.options().seed;
  const DType dtype = common_.type();
  // Scales that keep the sums of either layer around 1 where the input is 0.1.
  const double scale1 = 8 / std::sqrt(static_cast<double>(in_)), scale2 = 4 / std::sqrt(static_cast<double>(hidden_));
  Model model;
  model.fc1 = {in_,  hidden_, weight_pattern(seed, 1, dtype, scale1), {}, parse_activation("--activation", activation_),
               dtype};
  model.fc2 = {hidden_, out_, weight_pattern(seed, 2, dtype, scale2), {}, Activation::none, dtype};
  if (bias_ == 1) {
    model.fc1.bias = weight_pattern(seed, 3, dtype, 0.5);
    model.fc2.bias = weight_pattern(seed, 4, dtype, 0.5);
  }
  model.placement = common_.placement();
  return model;
}

Report TpMlp::run(Session& session) {
  const Model wanted = model(session);
  ranks_ = session.map().sips;
  layers_.assign(2, Layer());
  layers_[0].name = "fc1";
  layers_[1].name = "fc2";
  layers_[0].in = in_;
  layers_[0].out = layers_[1].in = hidden_;
  layers_[1].out = out_;
  for (Layer& layer : layers_) layer.outputs.resize(static_cast<std::size_t>(ranks_));
  const ProcessGroupOptions group = common_.group(session);
  alike_ = adds_alike(group);
  session.runtime().init_process_group(group);
  TpTimes times(layers_.size(), common_.warmup, common_.iterations);
  session.run(ranks_, [&](Context& ctx) { rank_program(ctx, wanted, times); });
  CollectiveBounds bounds(session.map(), ranks_);
  const std::vector<TpTimes::Row> rows = times.of_layers(session.runtime().host_trace(), bounds);
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i].times = rows[i];
  if (common_.checks(session)) check_outputs(session, wanted);
  Report made = report(session, times);
  // The algorithm is known once the queues are there.
  made.text = fmt::format("# tp_mlp on {}: {} x {} -> {} -> {}, {}, activation {}, bias {}, all-reduce {}\n",
                          counted(ranks_, "SIP"), batch_, in_, hidden_, out_, common_.dtype, activation_,
                          bias_ == 1 ? "yes" : "no", session.runtime().algorithm()) +
              made.text;
  return made;
}

Report TpMlp::report(const Session& session, const TpTimes& times) {
  Report report;
  report.text = fmt::format(
      "# warm-up {}, iterations {}; times in ns, of rank 0: set-up, launch, coll. and waiting add up to time; fc1 and "
      "fc2 to mlp\n#{:>7} {:>6} {:>7} {:>7} {:>14} {:>14} {:>8} {:>14} {:>5} {:>14} {:>12} {:>8} {:>12} {:>5}  {}\n",
      common_.warmup, common_.iterations, "layer", "batch", "in", "out", "time", "set-up", "launches", "launch",
      "colls", "coll.", "waiting", "check", "bound", "share", "bound by");
  const TpTimes::Row& set_up = times.of_set_up();
  Json first = head("set-up");
  times.add_set_up_to(first);
  report.results.push_back(std::move(first));
  report.text +=
      fmt::format(" {:>7} {:>6} {:>7} {:>7} {:>14.3f} {:>14.3f} {:>8} {:>14} {:>5} {:>14} {:>12.3f} {:>8}\n", "set-up",
                  "-", "-", "-", in_ns(set_up.time), in_ns(set_up.mapping + set_up.loading + set_up.queues), "-", "-",
                  "-", "-", in_ns(set_up.waiting), "-");
  Layer whole{"mlp", in_, out_, {}, layers_.back().comparison, {}};
  for (const Layer& layer : layers_) whole.times += layer.times;
  layers_.push_back(std::move(whole));
  for (const Layer& layer : layers_) {
    Json result = row(session, layer, times);
    report.text += fmt::format(
        " {:>7} {:>6} {:>7} {:>7} {:>14.3f} {:>14} {:>8} {:>14.3f} {:>5} {:>14.3f} {:>12.3f} {:>8} {:>12.1f} {:>5.2f}  "
        "{}\n",
        layer.name, batch_, layer.in, layer.out, result["time_ns"].get<double>(), "-",
        result["launches"].get<std::size_t>(), result["launch_ns"].get<double>(),
        result["collectives"].get<std::size_t>(), result["collective_ns"].get<double>(),
        result["waiting_ns"].get<double>(), result["check"].get<std::string>(), result["bound_ns"].get<double>(),
        result["bound_share"].get<double>(), result["bound_binds"].get<std::string>());
    report.wrong = report.wrong || layer.comparison.mismatches > 0;
    report.results.push_back(std::move(result));
  }
  report.text +=
      times.set_up_text() + TpTimes::overlap_text(report.results.back()) + TpTimes::kernels_text(report.results.back());
  report.text +=
      fmt::format("# {:.0f} rows of the batch per second\n", report.results.back().at("rows_per_s").get<double>());
  return report;
}

void TpMlp::rank_program(Context& ctx, const Model& model, TpTimes& times) {
  using SetUp = TpTimes::SetUp;
  const tp::ParallelState state = tp::initialize_model_parallel(ctx, ctx.world_size());
  tp::LinearOptions options;
  options.dtype = model.fc1.dtype;
  options.bias = bias_ == 1;
  options.placement = model.placement;
  options.name = "fc1";
  options.activation = model.fc1.activation;
  std::optional<tp::ColumnParallelLinear> fc1;
  std::optional<tp::RowParallelLinear> fc2;
  Tensor x;
  tp::ForwardTensors hidden, y;
  times.set_up(ctx, SetUp::mapping, [&] {
    fc1.emplace(state, in_, hidden_, options);
    options.name = "fc2";
    options.activation = Activation::none;
    options.overlap_chunks = overlap_;
    fc2.emplace(state, hidden_, out_, options);
    x = ctx.empty({batch_, in_}, options.dtype, model.placement.input, "x");
    hidden = fc1->place(batch_);
    y = fc2->place(batch_);
  });
  times.set_up(ctx, SetUp::loading, [&] {
    fc1->load_weight(model.fc1.weight);
    fc2->load_weight(model.fc2.weight);
    if (options.bias) {
      fc1->load_bias(model.fc1.bias);
      fc2->load_bias(model.fc2.bias);
    }
    std::vector<std::uint8_t> bytes(x.bytes());
    for (std::size_t i = 0; i < bytes.size() / size_of(options.dtype); ++i)
      store_element(bytes.data(), options.dtype, i, input_);
    x.write_bytes(bytes);
  });
  times.set_up(ctx, SetUp::queues, [&] {
    fc1->prepare(x, hidden);
    fc2->prepare(hidden.output, y);
  });
  times.run(ctx, [&](std::size_t layer) {
    if (layer == 0) {
      fc1->forward(x, hidden);
    } else {
      fc2->forward(hidden.output, y);
    }
  });
  if (common_.check == 0) return;
  // After all passes, and also without data: where host copies take time, they take it all the same.
  layers_[0].outputs[static_cast<std::size_t>(ctx.rank())] = hidden.output.bytes_to_host();
  layers_[1].outputs[static_cast<std::size_t>(ctx.rank())] = y.output.bytes_to_host();
}

/// Every rank's part of the hidden layer, and every rank's whole output, against the host's run of the whole model.
void TpMlp::check_outputs(const Session& session, const Model& model) {
  const DType dtype = model.fc1.dtype;
  std::uint8_t raw[8] = {};
  store_element(raw, dtype, 0, input_);
  const std::vector<double> x(static_cast<std::size_t>(batch_ * in_), load_element(raw, dtype, 0));
  const HostValues hidden = model.fc1.forward(exact(x), batch_, 1), y = model.fc2.forward(hidden, batch_, ranks_);
  for (const double value : y.value) {
    if (std::isfinite(value)) continue;
    throw std::invalid_argument(
        fmt::format("--input {} makes results that {} cannot hold; give a smaller one", input_, common_.dtype));
  }
  const auto decoded = [&](const std::vector<std::uint8_t>& bytes) {
    std::vector<double> values(bytes.size() / size_of(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = load_element(bytes.data(), dtype, i);
    return values;
  };
  const std::int64_t own = hidden_ / session.map().sips;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto slot = static_cast<std::size_t>(rank);
    const std::vector<double> part = decoded(layers_[0].outputs[slot]);
    for (std::int64_t r = 0; r < batch_; ++r) {
      const auto row = part.begin() + r * own;
      compare_layer({row, row + own}, hidden, static_cast<std::size_t>(r * hidden_ + rank * own), dtype,
                    layers_[0].comparison);
    }
    compare_layer(decoded(layers_[1].outputs[slot]), y, 0, dtype, layers_[1].comparison);
    // Every rank computes the same: a difference in a single bit is an error of the machine.
    if (alike_ && layers_[1].outputs[slot] != layers_[1].outputs[0]) ++layers_[1].comparison.mismatches;
  }
}

Json TpMlp::head(const std::string& layer) const {
  Json row;
  row["op"] = "tp_mlp";
  row["layer"] = layer;
  row["batch"] = batch_;
  row["in"] = in_;
  row["out"] = out_;
  row["dtype"] = to_string(common_.type());
  row["ranks"] = ranks_;
  return row;
}

Json TpMlp::row(const Session& session, const Layer& layer, const TpTimes& times) const {
  const double ns = times.mean_ns(layer.times.time);
  const bool checked = common_.checks(session);
  Json row = head(layer.name);
  row["in"] = layer.in;
  row["out"] = layer.out;
  row["time_ns"] = ns;
  row["rows_per_s"] = ns > 0 ? static_cast<double>(batch_) / ns * 1e9 : 0;
  times.add_to(layer.times, row);
  row["check"] = !checked ? "skipped" : layer.comparison.mismatches == 0 ? "ok" : "wrong";
  row["mismatches"] = checked ? Json(layer.comparison.mismatches) : Json();
  row["max_abs_err"] = checked ? Json(layer.comparison.max_abs_error) : Json();
  return row;
}

}  // namespace

std::unique_ptr<Workload> make_tp_mlp() { return std::make_unique<TpMlp>(); }

}  // namespace kernbench
