#include "runtime/tp/transformer.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/tp/transformer_reference.h"

namespace kernbench::testing {
namespace {

/// A value for every weight by name and position: multiples of 1/32 of both signs. Norms are around one.
tp::WeightPattern model_weight(const std::string& name) {
  std::int64_t key = 0;
  for (const char c : name) key = (key * 31 + c) % 101;
  const bool norm = name.find("norm") != std::string::npos && name.find("bias") == std::string::npos;
  const double scale = name.find("bias") != std::string::npos ? 0.25 : 0.5;
  return [=](std::int64_t row, std::int64_t col) {
    return norm ? 1 + weight_at(row + key, col) / 4 : weight_at(row + key, col + 3 * key) * scale;
  };
}

Values norm_of(const Values& x, const tp::Model& model, const std::string& name, DType dtype) {
  const auto n = static_cast<std::size_t>(model.width);
  const auto weight = model_weight(name), bias = model_weight(name + ".bias");
  Values y(x.size());
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0, square = 0;
    if (model.norm == tp::NormKind::layer) {
      for (std::size_t i = 0; i < n; ++i) mean += x[row + i] / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) square += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto col = static_cast<std::int64_t>(i);
      y[row + i] = (x[row + i] - mean) / std::sqrt(square + model.epsilon) * weight(0, col);
      if (model.norm == tp::NormKind::layer) y[row + i] += bias(0, col);
    }
  }
  return rounded(y, dtype);
}

Values linear(const Values& x, std::int64_t in, std::int64_t out, const std::string& name, bool biased) {
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / in;
  Values y = product(x, values_of({in, out}, model_weight(name)), rows, in, out);
  if (biased) add_bias_to(y, out, model_weight(name + ".bias"));
  return y;
}

double activated(Activation activation, double x) {
  if (activation == Activation::gelu) return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
  return x / (1 + std::exp(-x));  // silu
}

Values mlp_of(const Values& x, const tp::Model& model, const std::string& name, DType dtype) {
  Values up = linear(x, model.width, model.mlp_width, name + ".up", model.biases);
  if (model.gated) {
    const Values gate = linear(x, model.width, model.mlp_width, name + ".gate", model.biases);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] *= activated(model.activation, gate[i]);
  } else {
    for (double& value : up) value = activated(model.activation, value);
  }
  return linear(rounded(up, dtype), model.mlp_width, model.width, name + ".down", model.biases);
}

/// Logits of the whole vocabulary for one sequence.
Values model_on_host(const tp::Model& model, const std::vector<std::int64_t>& tokens, DType dtype) {
  Values x;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    Values row = values_of({1, model.width}, model_weight("embedding"), tokens[t], 0);
    if (model.position == tp::PositionKind::learned)
      row = plus(row, values_of({1, model.width}, model_weight("positions"), static_cast<std::int64_t>(t), 0));
    x.insert(x.end(), row.begin(), row.end());
  }
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    HostAttention attention{model.width,
                            model.heads,
                            model.kv_heads,
                            model.head_dim,
                            model.rope_theta,
                            dtype,
                            model_weight(name + ".attention.q"),
                            model_weight(name + ".attention.k"),
                            model_weight(name + ".attention.v"),
                            model_weight(name + ".attention.out")};
    if (model.biases) {
      attention.q_bias = model_weight(name + ".attention.q.bias");
      attention.k_bias = model_weight(name + ".attention.k.bias");
      attention.v_bias = model_weight(name + ".attention.v.bias");
      attention.out_bias = model_weight(name + ".attention.out.bias");
    }
    x = rounded(plus(x, attention.forward(norm_of(x, model, name + ".attention_norm", dtype))), dtype);
    x = rounded(plus(x, mlp_of(norm_of(x, model, name + ".mlp_norm", dtype), model, name + ".mlp", dtype)), dtype);
  }
  const tp::WeightPattern table = model_weight("embedding");
  const Values last = norm_of(x, model, "norm", dtype);
  const auto rows = static_cast<std::int64_t>(tokens.size());
  const Values output =
      values_of({model.width, model.vocabulary},
                model.tied ? tp::WeightPattern([=](std::int64_t row, std::int64_t col) { return table(col, row); })
                           : model_weight("output"));
  return product(last, output, rows, model.width, model.vocabulary);
}

constexpr const char* kGrouped = R"(layers: 2
width: 12
heads: 8
kv_heads: 4
head_dim: 6
mlp_width: 20
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
width: 12
heads: 4
kv_heads: 4
head_dim: 3
mlp_width: 24
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

class Transformers : public ::testing::TestWithParam<std::tuple<SchedulingKind, int, bool, DType>> {};

/// Prefill of some tokens and decode of the rest, against the whole sequences on the host: logits element by element,
/// every rank its columns, zeros in the padding. f32: roundoff through 2 layers; f16: values of several units whose
/// roundings, 2^-11 of each of them, add up over some ten stages.
TEST_P(Transformers, PrefillAndDecodeGiveTheLogitsOfTheWholeSequence) {
  const auto [scheduling, ranks, grouped, dtype] = GetParam();
  const tp::Model model = tp::parse_model(grouped ? kGrouped : kMultiHead, "test.yaml");
  const std::int64_t batch = 2, total = 9;
  const std::vector<std::vector<std::int64_t>> tokens = {{3, 1, 29, 14, 15, 9, 26, 5, 3},
                                                         {27, 18, 28, 18, 2, 8, 4, 5, 9}};
  std::vector<Values> expected;
  for (const auto& sequence : tokens) expected.push_back(model_on_host(model, sequence, dtype));
  double largest = 0;
  for (const Values& values : expected) {
    for (const double value : values) largest = std::max(largest, std::abs(value));
  }
  const double tolerance = (dtype == DType::f16 ? 2e-2 : 2e-5) * largest;
  MachineRun machine(machine_of(static_cast<std::uint16_t>(ranks), 2, 2), scheduled(scheduling));
  int compared = 0;
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, ctx.world_size());
        tp::TransformerOptions options;
        options.dtype = dtype;
        options.page = 4;
        tp::Transformer transformer(state, model, model.layers, batch, total, options);
        transformer.load(model_weight);
        std::int64_t first = 0;
        for (const std::int64_t length : {5, 1, 2, 1}) {
          std::vector<std::int64_t> now;
          for (const auto& sequence : tokens)
            now.insert(now.end(), sequence.begin() + first, sequence.begin() + first + length);
          const tp::TransformerTensors tensors = transformer.place(length);
          transformer.prepare(tensors);
          const Tensor logits = transformer.forward(now, tensors);
          const std::int64_t own = model.padded_vocabulary(ranks) / ranks;
          ASSERT_EQ(logits.shape(), (Shape{batch * length, own}));
          const Values got = logits.to_host();
          for (std::int64_t row = 0; row < batch * length; ++row) {
            for (std::int64_t col = 0; col < own; ++col) {
              const std::int64_t token = ctx.rank() * own + col, at = first + row % length;
              const double want = token < model.vocabulary
                                      ? expected[static_cast<std::size_t>(row / length)]
                                                [static_cast<std::size_t>(at * model.vocabulary + token)]
                                      : 0;
              ASSERT_NEAR(got[static_cast<std::size_t>(row * own + col)], want, tolerance)
                  << "row " << row << " token " << token << " from " << first;
              ++compared;
            }
          }
          first += length;
        }
        EXPECT_EQ(transformer.length(), total);
      },
      std::tuple<>(), ranks);
  EXPECT_EQ(compared, batch * total * model.padded_vocabulary(ranks));
}

INSTANTIATE_TEST_SUITE_P(Models, Transformers,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(1, 2, 4), ::testing::Bool(),
                                            ::testing::Values(DType::f32, DType::f16)));

/// One layer of a gated model: norms 2, QKV, rotary, scores, out, up, gate, product, down and the last residual 1 each;
/// a batch of 2 on 4 PEs and 2 ranks splits caches of one head each over two of them, so that a single token takes one
/// launch more. Two all-reduces.
TEST(TransformerLayer, TraceHasTheLaunchesAndCollectivesThatALayerImplies) {
  MachineRun machine(machine_of(2, 2, 2));
  tp::Model model = tp::parse_model(kGrouped, "test.yaml");
  model.heads = 4;
  model.kv_heads = 2;
  std::vector<std::map<std::string, int>> entries(2);
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        const tp::TransformerLayer layer(state, model, "layer0", {});
        tp::KvCache cache = layer.cache(2, 8);
        const tp::RotaryTable rotary(state, 8, model.head_dim, model.rope_theta);
        int at = 0;
        for (const std::int64_t length : {3, 1}) {
          const std::size_t before = machine.runtime.host_trace().size();
          const Tensor x = ctx.zeros({2 * length, model.width}, DType::f16, {}, "x");
          layer.forward(x, cache, rotary, layer.place(cache, length));
          ctx.barrier();
          if (ctx.rank() == 0) {
            const auto& trace = machine.runtime.host_trace();
            for (std::size_t i = before; i < trace.size(); ++i) {
              if (trace[i].rank == 0) ++entries[static_cast<std::size_t>(at)][trace[i].kind];
            }
          }
          ++at;
        }
      },
      std::tuple<>(), 2);
  EXPECT_EQ(entries[0], (std::map<std::string, int>{{"launch", 11}, {"collective", 2}}));
  EXPECT_EQ(entries[1], (std::map<std::string, int>{{"launch", 12}, {"collective", 2}}));
}

}  // namespace
}  // namespace kernbench::testing
