#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "runtime/pipeline/export.h"
#include "runtime/pipeline/run/run.h"
#include "runtime/pipeline/run/slices.h"
#include "runtime/tp/pass.h"
#include "runtime/tp/transformer.h"
#include "tests/pipeline/host_run.h"
#include "tests/runtime/machine_run.h"
#include "tests/support/test_folder.h"

namespace kernbench::pipeline {
namespace {

using kernbench::testing::machine_of;
using kernbench::testing::MachineRun;

/// Multiples of 1/16 of both signs; of norms around one.
WeightElement weight_named(const std::string& name) {
  std::int64_t key = 0;
  for (const char c : name) key = (key * 31 + c) % 101;
  const bool norm = name.find("norm") != std::string::npos && name.find("bias") == std::string::npos;
  return [=](std::int64_t row, std::int64_t col) {
    const auto value = static_cast<double>((row * 7 + col * 13 + row * col + key) % 17 - 8) / 16;
    return norm ? 1 + value / 4 : value;
  };
}

/// An exported document and its weights, checked, on as many SIPs as it has slots.
class ExportedRun {
 public:
  ExportedRun(const Exported& exported, int sips, const HostTensor& x)
      : machine(machine_of(static_cast<std::uint16_t>(sips), 2, 2)) {
    const std::string folder = folder_.path().string();
    std::ofstream(folder_.file("w.safetensors"), std::ios::binary) << to_safetensors(exported.weights);
    Problems problems, warnings;
    pipeline_ = read_pipeline(parse_config(exported.document, "exported.json"), {}, problems);
    checked_ = check_pipeline(pipeline_, {folder, sips, 2, 2}, problems, warnings);
    EXPECT_EQ(problems.str() + warnings.str(), "");
    PlanOptions plan;
    plan.folder = folder;
    RunSettings settings;
    settings.iterations = kPasses;
    settings.inputs = cut_inputs(pipeline_, {{"x", x}});
    inputs_ = settings.inputs;
    settings.group.install_at_once = false;
    machine.runtime.init_process_group(settings.group);
    run.emplace(pipeline_, checked_, make_slot_plans(pipeline_, checked_, plan), settings, sips);
  }

  /// A single pass depends on which rows of the memories the one before left open: what is compared is a mean.
  static constexpr int kPasses = 4;

  /// The mean time of a direct pass, as the pipeline's are timed. Every rank calls it.
  template <class Pass>
  void time_direct(Context& context, const Pass& pass) {
    for (int i = 0; i <= kPasses; ++i) {
      context.barrier();
      const Ps start = context.now();
      pass();
      context.barrier();
      if (context.rank() == 0 && i > 0) direct_time += static_cast<double>(context.now() - start) / kPasses;
    }
  }
  double pipeline_time() {
    const std::vector<Ps>& passes = run->outcome().passes;
    return std::accumulate(passes.begin(), passes.end(), 0.0) / static_cast<double>(passes.size());
  }

  /// The largest difference of a tensor from what the host computes, as a share of its largest element.
  double error_of(const std::string& tensor) {
    const HostTensor want = run_on_host(pipeline_, checked_, inputs_, folder_.path().string()).at(tensor);
    const std::vector<std::uint8_t>& got = run->outcome().outputs.at(tensor).bytes;
    double error = 0, most = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(want.count()); ++i) {
      const double value = load_element(want.bytes.data(), want.dtype, i);
      error = std::max(error, std::abs(load_element(got.data(), want.dtype, i) - value));
      most = std::max(most, std::abs(value));
    }
    return error / most;
  }

  MachineRun machine;
  std::optional<PipelineRun> run;
  double direct_time = 0;

 private:
  std::map<std::string, HostTensor> inputs_;
  TestFolder folder_;
  Pipeline pipeline_;
  Checked checked_;
};

HostTensor input_of(std::int64_t rows, std::int64_t cols, DType dtype) {
  HostTensor x{{rows, cols}, dtype, std::vector<std::uint8_t>(static_cast<std::size_t>(rows * cols) * size_of(dtype))};
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows * cols); ++i)
    store_element(x.bytes.data(), dtype, i, static_cast<double>(i * 2654435761U % 997) / 499 - 1);
  return x;
}

void expect_same_bits(const std::vector<std::uint8_t>& got, const std::vector<std::uint8_t>& want, DType dtype,
                      int rank) {
  ASSERT_EQ(got.size(), want.size()) << "rank " << rank;
  int differ = 0;
  for (std::size_t i = 0; i < got.size() / size_of(dtype); ++i) {
    const double a = load_element(got.data(), dtype, i), b = load_element(want.data(), dtype, i);
    if (a != b && ++differ == 1)
      ADD_FAILURE() << "rank " << rank << ", element " << i << ": " << a << ", directly " << b;
  }
  EXPECT_EQ(differ, 0) << "elements of " << got.size() / size_of(dtype) << " on rank " << rank;
}

/// A perceptron as a pipeline and as layers of runtime/tp, in one program: the same bits, on every rank, and within 2%
/// the same time.
class PipelineRoundTrip : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PipelineRoundTrip, AnExportedPerceptronGivesBitsAndTimeOfTheDirectRun) {
  const auto [tp_size, pp] = GetParam();
  MlpExport model;
  model.batch = 5;
  model.in = 24;
  model.hidden = 32;
  model.out = 20;
  model.tp = tp_size;
  model.pp = pp;
  model.weights_file = "w.safetensors";
  model.up = model.up_bias = model.down = model.down_bias = weight_named("w");
  const HostTensor x = input_of(model.batch, model.in, DType::f16);
  ExportedRun both(export_mlp(model), tp_size * pp, x);
  std::vector<std::vector<std::uint8_t>> direct(static_cast<std::size_t>(tp_size * pp));
  both.machine.runtime.spawn(
      [&](Context& context) {
        const tp::ParallelState state = tp::initialize_model_parallel(context, tp_size, pp);
        both.run->rank_program(context);
        tp::LinearOptions linear;
        linear.bias = true;
        linear.activation = Activation::gelu;
        tp::ColumnParallelLinear up(state, model.in, model.hidden, linear);
        linear.activation = Activation::none;
        tp::RowParallelLinear down(state, model.hidden, model.out, linear);
        up.load_weight(model.up);
        up.load_bias(model.up);
        down.load_weight(model.up);
        down.load_bias(model.up);
        const Tensor in = context.from_bytes(x.bytes, {model.batch, model.in}, DType::f16, DPPolicy(), "x");
        const tp::ForwardTensors hidden = up.place(model.batch), out = down.place(model.batch);
        up.prepare(in, hidden);
        down.prepare(hidden.output, out);
        // With two stages each has its layer, and what lies between is sent.
        const Group& stages = state.pipeline_model_parallel_group();
        const bool first = context.rank() < tp_size, last = context.rank() >= (pp - 1) * tp_size;
        Tensor between = hidden.output;
        both.time_direct(context, [&] {
          tp::Pass pass(state);  // as the pipeline, which waits where ranks meet
          if (first) up.forward(in, hidden);
          if (first && !last) {
            pass.wait();
            context.send(between, 1, stages);
          }
          if (last && !first) context.recv(between, 0, stages);
          if (last) down.forward(between, out);
          pass.end();
        });
        direct[static_cast<std::size_t>(context.rank())] = out.output.bytes_to_host();
      },
      std::tuple<>(), both.run->ranks());
  for (int rank = 0; rank < tp_size; ++rank) {
    expect_same_bits(both.run->outcome().outputs["y_" + std::to_string(rank)].bytes,
                     direct[static_cast<std::size_t>((pp - 1) * tp_size + rank)], DType::f16, rank);
  }
  EXPECT_NEAR(both.pipeline_time(), both.direct_time, 0.02 * both.direct_time);
  RecordProperty("share", std::to_string(both.pipeline_time() / both.direct_time));
}

INSTANTIATE_TEST_SUITE_P(Sizes, PipelineRoundTrip,
                         ::testing::Values(std::pair(1, 1), std::pair(2, 1), std::pair(4, 1), std::pair(1, 2),
                                           std::pair(2, 2), std::pair(4, 2)),
                         [](const auto& info) {
                           return "Tp" + std::to_string(info.param.first) + "Pp" + std::to_string(info.param.second);
                         });

/// Grouped heads that are turned, gated MLP, RMS norms; and as many heads as keys, biases and layer norms.
constexpr const char* kGrouped = R"(layers: 2
width: 48
heads: 8
kv_heads: 4
head_dim: 6
mlp_width: 80
gated: true
activation: silu
norm: rms
epsilon: 1e-3
vocabulary: 37
position: rotary
rope_theta: 100
positions: 64
biases: false
tied: false
)";
constexpr const char* kMultiHead = R"(layers: 2
width: 24
heads: 4
kv_heads: 4
head_dim: 5
mlp_width: 40
gated: false
activation: gelu
norm: layer
epsilon: 1e-3
vocabulary: 30
position: learned
positions: 16
biases: true
tied: true
)";

struct LayersCase {
  const char* name;
  const char* model;
  int tp, pp;
  DType dtype = DType::f16;
  std::int64_t batch = 2, length = 5;
};

class PipelineLayersRoundTrip : public ::testing::TestWithParam<LayersCase> {};

/// Decoder layers as a pipeline and as tp::Transformer, in one program: the same bits on every rank, and within 2% the
/// same time. Between stages a direct run sends what the pipeline does.
TEST_P(PipelineLayersRoundTrip, ExportedLayersGiveBitsAndTimeOfTheDirectRun) {
  const LayersCase& wanted = GetParam();
  const tp::Model model = tp::parse_model(wanted.model, "m.yaml");
  TransformerExport layers{model};
  layers.name = "m";
  layers.batch = wanted.batch;
  layers.length = wanted.length;
  layers.dtype = wanted.dtype;
  layers.tp = wanted.tp;
  layers.pp = wanted.pp;
  layers.weights_file = "w.safetensors";
  layers.weights = weight_named;
  const std::int64_t rows = wanted.batch * wanted.length;
  const HostTensor in = input_of(rows, model.width, wanted.dtype);
  const int sips = wanted.tp * wanted.pp;
  ExportedRun both(export_transformer(layers), sips, in);
  std::vector<std::vector<std::uint8_t>> direct(static_cast<std::size_t>(sips));
  both.machine.runtime.spawn(
      [&](Context& context) {
        const tp::ParallelState state = tp::initialize_model_parallel(context, wanted.tp, wanted.pp);
        both.run->rank_program(context);
        tp::TransformerOptions options;
        options.dtype = wanted.dtype;
        options.ends = false;
        options.placement.weight = options.placement.output = tp::LinearPlacement::packed();
        tp::Transformer transformer(state, model, model.layers, wanted.batch, wanted.length, options);
        transformer.load(weight_named);
        const tp::TransformerTensors tensors = transformer.place(wanted.length);
        transformer.prepare(tensors);
        const int stage = state.pipeline_model_parallel_rank();
        Tensor x = context.empty({rows, model.width}, wanted.dtype, options.placement.output, "x");
        if (stage == 0) x.write_bytes(in.bytes);
        Tensor y;
        both.time_direct(context, [&] {
          transformer.truncate(0);
          if (stage > 0) context.recv(x, stage - 1, state.pipeline_model_parallel_group());
          y = x;
          tp::Pass pass(state);  // as the pipeline, which waits where ranks meet
          for (std::int64_t layer = 0; layer < model.layers; ++layer) {
            if (layer * wanted.pp / model.layers == stage)
              y = transformer.layer(static_cast<std::size_t>(layer), y, tensors);
          }
          pass.end();
          if (stage + 1 < wanted.pp) context.send(y, stage + 1, state.pipeline_model_parallel_group());
        });
        direct[static_cast<std::size_t>(context.rank())] = y.bytes_to_host();
      },
      std::tuple<>(), both.run->ranks());
  const int last = (wanted.pp - 1) * wanted.tp;
  for (int rank = 0; rank < wanted.tp; ++rank) {
    expect_same_bits(both.run->outcome().outputs["y1_" + std::to_string(rank)].bytes,
                     direct[static_cast<std::size_t>(last + rank)], wanted.dtype, rank);
  }
  // Some sixteen roundings a layer.
  EXPECT_LT(both.error_of("y1_0"), wanted.dtype == DType::f32 ? 1e-5 : wanted.dtype == DType::f16 ? 1e-2 : 8e-2);
  EXPECT_NEAR(both.pipeline_time(), both.direct_time, 0.02 * both.direct_time);
  RecordProperty("share", std::to_string(both.pipeline_time() / both.direct_time));
}

INSTANTIATE_TEST_SUITE_P(Models, PipelineLayersRoundTrip,
                         ::testing::Values(LayersCase{"GroupedTp1", kGrouped, 1, 1},
                                           LayersCase{"GroupedTp2", kGrouped, 2, 1},
                                           LayersCase{"GroupedTp4", kGrouped, 4, 1, DType::bf16},
                                           LayersCase{"GroupedTp2Pp2", kGrouped, 2, 2},
                                           LayersCase{"GroupedTp4Pp2", kGrouped, 4, 2},
                                           LayersCase{"GroupedOneToken", kGrouped, 2, 1, DType::f16, 1, 1},
                                           LayersCase{"MultiHeadTp2", kMultiHead, 2, 1, DType::f32},
                                           LayersCase{"MultiHeadTp1Pp2", kMultiHead, 1, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kernbench::pipeline
