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
mlp_width: 40
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
head_dim: 5
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

/// Scheduling, ranks, grouped or multi-head, dtype; sequence-parallel, and chunks that overlap.
struct TransformerCase {
  SchedulingKind scheduling;
  int ranks;
  bool grouped;
  DType dtype;
  bool sequence = false;
  int chunks = 1;
  bool last_logits = false;
};

/// Prefill of some tokens and decode of the rest, against the whole sequences on the host: logits element by element,
/// every rank its columns, zeros in the padding. f32: roundoff through 2 layers; f16: values of several units whose
/// roundings, 2^-11 of each of them, add up over some ten stages.
void expect_logits_of_the_whole_sequence(const TransformerCase& wanted, const std::vector<std::int64_t>& lengths) {
  const tp::Model model = tp::parse_model(wanted.grouped ? kGrouped : kMultiHead, "test.yaml");
  const std::int64_t batch = 2, total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const int ranks = wanted.ranks;
  const DType dtype = wanted.dtype;
  const std::vector<std::vector<std::int64_t>> tokens = {{3, 1, 29, 14, 15, 9, 26, 5, 3, 8, 11, 2},
                                                         {27, 18, 28, 18, 2, 8, 4, 5, 9, 0, 21, 7}};
  std::vector<Values> expected;
  for (const auto& sequence : tokens)
    expected.push_back(model_on_host(model, {sequence.begin(), sequence.begin() + total}, dtype));
  double largest = 0;
  for (const Values& values : expected) {
    for (const double value : values) largest = std::max(largest, std::abs(value));
  }
  const double tolerance = (dtype == DType::f16 ? 2e-2 : 2e-5) * largest;
  MachineRun machine(machine_of(static_cast<std::uint16_t>(ranks), 2, 2), scheduled(wanted.scheduling));
  int compared = 0;
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, ctx.world_size());
        tp::TransformerOptions options;
        options.dtype = dtype;
        options.page = 4;
        options.sequence_parallel = wanted.sequence;
        options.overlap_chunks = wanted.chunks;
        options.last_logits = wanted.last_logits;
        tp::Transformer transformer(state, model, model.layers, batch, total, options);
        transformer.load(model_weight);
        std::int64_t first = 0;
        for (const std::int64_t length : lengths) {
          std::vector<std::int64_t> now;
          for (const auto& sequence : tokens)
            now.insert(now.end(), sequence.begin() + first, sequence.begin() + first + length);
          const tp::TransformerTensors tensors = transformer.place(length);
          transformer.prepare(tensors);
          const Tensor logits = transformer.forward(now, tensors);
          const std::int64_t own = model.padded_vocabulary(ranks) / ranks, of_each = wanted.last_logits ? 1 : length;
          ASSERT_EQ(logits.shape(), (Shape{batch * of_each, own}));
          const Values got = logits.to_host();
          for (std::int64_t row = 0; row < batch * of_each; ++row) {
            for (std::int64_t col = 0; col < own; ++col) {
              const std::int64_t token = ctx.rank() * own + col, at = first + length - of_each + row % of_each;
              const double want = token < model.vocabulary
                                      ? expected[static_cast<std::size_t>(row / of_each)]
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
  const auto rows = wanted.last_logits ? static_cast<std::int64_t>(lengths.size()) : total;
  EXPECT_EQ(compared, batch * rows * model.padded_vocabulary(ranks));
}

class Transformers : public ::testing::TestWithParam<std::tuple<SchedulingKind, int, bool, DType>> {};

TEST_P(Transformers, PrefillAndDecodeGiveTheLogitsOfTheWholeSequence) {
  const auto [scheduling, ranks, grouped, dtype] = GetParam();
  expect_logits_of_the_whole_sequence({scheduling, ranks, grouped, dtype}, {5, 1, 2, 1});
}

INSTANTIATE_TEST_SUITE_P(Models, Transformers,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(1, 2, 4), ::testing::Bool(),
                                            ::testing::Values(DType::f32, DType::f16)));

/// Eight ranks, one query head each, with half as many key/value heads: two ranks keep each.
class TransformersOfEight : public ::testing::TestWithParam<std::tuple<SchedulingKind, DType>> {};

TEST_P(TransformersOfEight, PrefillAndDecodeGiveTheLogitsOfTheWholeSequence) {
  const auto [scheduling, dtype] = GetParam();
  expect_logits_of_the_whole_sequence({scheduling, 8, true, dtype}, {3, 1});
}

INSTANTIATE_TEST_SUITE_P(Models, TransformersOfEight,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(DType::f32, DType::f16)));

/// What is computed on a rank's own rows, or in chunks, is what the plain layers compute: the host's model. Row cuts of
/// ranks and of chunks lie inside of sequences; positions that are learned are those of the row's token.
class TransformersInParts : public ::testing::TestWithParam<
                                std::tuple<SchedulingKind, std::pair<TransformerCase, std::vector<std::int64_t>>>> {};

TEST_P(TransformersInParts, GiveTheLogitsOfTheWholeSequence) {
  auto [one, lengths] = std::get<1>(GetParam());
  one.scheduling = std::get<0>(GetParam());
  expect_logits_of_the_whole_sequence(one, lengths);
}

std::vector<std::pair<TransformerCase, std::vector<std::int64_t>>> parts_cases() {
  constexpr SchedulingKind kAny = SchedulingKind::concurrent;
  return {{{kAny, 2, true, DType::f32, true}, {5, 1, 2}},        {{kAny, 2, false, DType::f16, true}, {5, 1, 2}},
          {{kAny, 4, false, DType::f32, true, 1, true}, {6, 2}}, {{kAny, 8, true, DType::f16, true}, {4}},
          {{kAny, 2, true, DType::f16, false, 3}, {5, 1, 2}},    {{kAny, 4, false, DType::f32, false, 2}, {3, 1}}};
}

INSTANTIATE_TEST_SUITE_P(Models, TransformersInParts,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::ValuesIn(parts_cases())));

/// One layer of a gated model: norms 2, QKV, rotary, scores, out, up, gate, product, down and the last residual 1 each;
/// a batch of 2 on 4 PEs and 2 ranks splits caches of one head each over two of them, so that a single token takes one
/// launch more. Two all-reduces; sequence-parallel, each is a gather before and a scatter behind. Chunks: of 6 tokens
/// three of 2, each a GEMM and an all-reduce, and one launch joins them; of 2 tokens two of one. Four experts in place
/// of up, gate, product and down, all tokens at the first two: router 2, dispatch 1, 6 each, combine 1; the choices and
/// the rows are gathered, rows go there and back. Where ranks share experts, their sums are all-reduced; where they
/// share all, nothing is dispatched.
using Counts = std::map<std::string, int>;
struct TraceCase {
  bool sequence;
  int chunks;
  Counts prefill, decode;
  int ranks = 2, ep = 0;  ///< that experts are dealt to; 0: none
};
std::vector<TraceCase> trace_cases() {
  return {{false, 1, {{"launch", 11}, {"all_reduce", 2}}, {{"launch", 12}, {"all_reduce", 2}}},
          {true,
           1,
           {{"launch", 11}, {"all_gather", 2}, {"reduce_scatter", 2}},
           {{"launch", 12}, {"all_gather", 2}, {"reduce_scatter", 2}}},
          {false, 3, {{"launch", 11 + 2 * 3}, {"all_reduce", 6}}, {{"launch", 12 + 2 * 2}, {"all_reduce", 4}}},
          {false,
           1,
           {{"launch", 7 + 16}, {"all_reduce", 1}, {"all_gather", 2}, {"all_to_all", 2}},
           {{"launch", 8 + 16}, {"all_reduce", 1}, {"all_gather", 2}, {"all_to_all", 2}},
           2,
           2},
          {false, 1, {{"launch", 7 + 15}, {"all_reduce", 2}}, {{"launch", 8 + 15}, {"all_reduce", 2}}, 2, 1},
          {false,
           1,
           {{"launch", 7 + 16}, {"all_reduce", 2}, {"all_gather", 2}, {"all_to_all", 2}},
           {{"launch", 8 + 16}, {"all_reduce", 2}, {"all_gather", 2}, {"all_to_all", 2}},
           4,
           2}};
}

class LayerTrace : public ::testing::TestWithParam<std::tuple<SchedulingKind, TraceCase>> {};

TEST_P(LayerTrace, HasTheLaunchesAndCollectivesThatALayerImplies) {
  const TraceCase one = std::get<1>(GetParam());
  tp::Model model = tp::parse_model(kGrouped, "test.yaml");
  model.heads = 4;
  model.kv_heads = 2;
  if (one.ep > 0) {
    model.experts = 4;
    model.experts_per_token = 2;
  }
  MachineRun machine(machine_of(static_cast<std::uint16_t>(one.ranks), 2, 2), scheduled(std::get<0>(GetParam())));
  std::vector<Counts> entries(2);
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state =
            tp::initialize_model_parallel(ctx, one.ranks, 1, tp::on_first_use(), one.ep > 0 ? one.ep : one.ranks);
        tp::TransformerOptions options;
        options.sequence_parallel = one.sequence;
        options.overlap_chunks = one.chunks;
        const tp::TransformerLayer layer(state, model, "layer0", options);
        tp::KvCache cache = layer.cache(2, 8);
        const tp::RotaryTable rotary(state, 8, model.head_dim, model.rope_theta);
        int at = 0;
        for (const std::int64_t length : {3, 1}) {
          const std::size_t before = machine.runtime.host_trace().size();
          const Tensor x = ctx.zeros({(one.sequence ? 1 : 2) * length, model.width}, DType::f16, {}, "x");
          const Tensor y = layer.forward(x, cache, rotary, layer.place(cache, length));
          EXPECT_EQ(y.shape(), x.shape());
          ctx.barrier();
          if (ctx.rank() == 0) {
            const auto& trace = machine.runtime.host_trace();
            for (std::size_t i = before; i < trace.size(); ++i) {
              if (trace[i].rank != 0) continue;
              ++entries[static_cast<std::size_t>(at)][trace[i].kind == "launch" ? "launch" : trace[i].operation];
            }
          }
          ++at;
        }
      },
      std::tuple<>(), one.ranks);
  EXPECT_EQ(entries[0], one.prefill);
  EXPECT_EQ(entries[1], one.decode);
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerTrace,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::ValuesIn(trace_cases())));

/// What a layer gives its last token: after a prefill of n + 1, and after one of n and a decode step. The same sums in
/// other orders (many rows, other kernels for a single token): within what f32 loses in them.
class PrefillThenDecode : public ::testing::TestWithParam<int> {};

TEST_P(PrefillThenDecode, GivesWhatALongerPrefillGives) {
  constexpr std::int64_t kBatch = 2, kTokens = 7;
  const int ranks = GetParam();
  const tp::Model model = tp::parse_model(kGrouped, "test.yaml");
  MachineRun machine(machine_of(static_cast<std::uint16_t>(ranks), 2, 2));
  std::vector<int> compared(static_cast<std::size_t>(ranks));
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, ranks);
        tp::TransformerOptions options;
        options.dtype = DType::f32;
        options.page = 2;
        tp::TransformerLayer layer(state, model, "layer0", options);
        layer.load(model_weight);
        const tp::RotaryTable rotary(state, kTokens + 1, model.head_dim, model.rope_theta);
        /// Rows of tokens [first, first + length) of each sequence, through the layer.
        const auto pass = [&](tp::KvCache& cache, std::int64_t first, std::int64_t length) {
          Tensor x = ctx.zeros({kBatch * length, model.width}, DType::f32, {}, "x");
          std::vector<std::uint8_t> bytes(x.bytes());
          for (std::int64_t row = 0; row < kBatch * length; ++row) {
            const std::int64_t token = row / length * (kTokens + 1) + first + row % length;
            for (std::int64_t c = 0; c < model.width; ++c)
              store_element(bytes.data(), DType::f32, static_cast<std::size_t>(row * model.width + c),
                            weight_at(token, c + 5));
          }
          x.write_bytes(bytes);
          return layer.forward(x, cache, rotary, layer.place(cache, length)).bytes_to_host();
        };
        tp::KvCache whole = layer.cache(kBatch, kTokens + 1), parts = layer.cache(kBatch, kTokens + 1);
        const std::vector<std::uint8_t> longer = pass(whole, 0, kTokens + 1);
        pass(parts, 0, kTokens);
        const std::vector<std::uint8_t> last = pass(parts, kTokens, 1);
        for (std::int64_t entry = 0; entry < kBatch; ++entry) {
          for (std::int64_t c = 0; c < model.width; ++c) {
            const double one =
                load_element(longer.data(), DType::f32,
                             static_cast<std::size_t>((entry * (kTokens + 1) + kTokens) * model.width + c));
            const double other =
                load_element(last.data(), DType::f32, static_cast<std::size_t>(entry * model.width + c));
            EXPECT_NEAR(one, other, 1e-5 * (1 + std::abs(one))) << "rank " << ctx.rank() << ", column " << c;
            compared[static_cast<std::size_t>(ctx.rank())] += one != 0 ? 1 : 0;
          }
        }
      },
      std::tuple<>(), ranks);
  for (const int count : compared) EXPECT_GT(count, kBatch * model.width / 2) << "elements that are not zero";
}

INSTANTIATE_TEST_SUITE_P(Ranks, PrefillThenDecode, ::testing::Values(1, 2, 4));

TEST(TransformerLayer, TokensThatTheRanksDoNotDivideAreNamed) {
  MachineRun machine(machine_of(2, 1, 1));
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        tp::TransformerOptions options;
        options.sequence_parallel = true;
        const tp::TransformerLayer layer(state, tp::parse_model(kGrouped, "test.yaml"), "layer7", options);
        const tp::KvCache cache = layer.cache(3, 8);
        EXPECT_EQ(
            error_text([&] { layer.place(cache, 5); }),
            "TransformerLayer 'layer7': batch 3 x length 5 are 15 tokens: sequence parallelism takes a multiple of "
            "the tensor-parallel world size 2");
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
