#include "runtime/tp/attention.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "tests/tp/transformer_reference.h"

namespace kernbench::testing {
namespace {

/// Different for every matrix; multiples of 1/32 that differ between rows, columns and ranks.
tp::WeightPattern attention_weight(int which) {
  return [which](std::int64_t row, std::int64_t col) { return weight_at(row + 5 * which, col + 3 * which) / 2; };
}
tp::WeightPattern attention_bias(int which) {
  return [which](std::int64_t, std::int64_t col) { return bias_at(0, col + which) / 2; };
}

/// One kind of attention: its heads, its batch, how many tokens come at once, one call after the other.
struct AttentionCase {
  const char* name;
  std::int64_t heads, kv_heads, head_dim, batch, page;
  bool rotary, bias;
  DType dtype;
  std::vector<std::int64_t> lengths;
  std::uint16_t pes_of_cube = 2;
};

/// On 4 PEs a rank: caches split over all PEs, over two, whole ones on one, two on one; pages that end inside of steps;
/// head halves that no shard ends at. Of 16 PEs and three sequences five each: those of the second are three of one
/// cube and two of the other, which share what they read, and not all have a second block of queries.
std::vector<AttentionCase> attention_cases() {
  return {{"multi_head", 4, 4, 6, 1, 4, false, true, DType::f16, {7, 1, 1, 3, 1}},
          {"grouped", 8, 4, 6, 1, 4, true, false, DType::f16, {9, 1, 1, 1}},
          {"grouped_f32", 8, 4, 6, 2, 3, true, true, DType::f32, {6, 1, 5, 1}},
          {"one_token_first", 8, 4, 4, 3, 2, true, false, DType::f32, {1, 1, 1, 8, 1}},
          {"long", 4, 4, 8, 1, 16, true, false, DType::f32, {150, 1}},
          {"uneven", 4, 4, 6, 3, 2, true, false, DType::f32, {41, 13, 1}, 8}};
}

HostAttention host_attention(const AttentionCase& wanted, std::int64_t width) {
  HostAttention host{
      width,        wanted.heads,        wanted.kv_heads,     wanted.head_dim,     wanted.rotary ? 100.0 : 0,
      wanted.dtype, attention_weight(1), attention_weight(2), attention_weight(3), attention_weight(4)};
  if (!wanted.bias) return host;
  host.q_bias = attention_bias(1);
  host.k_bias = attention_bias(2);
  host.v_bias = attention_bias(3);
  host.out_bias = attention_bias(4);
  return host;
}

class Attention : public ::testing::TestWithParam<std::tuple<SchedulingKind, int, std::size_t>> {};

/// Prefill, then chunks and single tokens with the cache: each call gives what the whole sequence at once gives on the
/// host, and on the machine. All ranks to the bit.
TEST_P(Attention, EqualsTheHostsOnTheWholeSequenceHoweverItsTokensCome) {
  const auto [scheduling, ranks, which] = GetParam();
  const AttentionCase wanted = attention_cases()[which];
  const std::int64_t width = 10, total = std::accumulate(wanted.lengths.begin(), wanted.lengths.end(), std::int64_t{0});
  const HostAttention host = host_attention(wanted, width);
  std::vector<Values> inputs, expected;
  for (std::int64_t b = 0; b < wanted.batch; ++b) {
    inputs.push_back(values_of({total, width}, input_at, 17 * b, b));
    expected.push_back(host.forward(inputs.back()));
  }
  MachineRun machine(machine_of(static_cast<std::uint16_t>(ranks), 2, wanted.pes_of_cube), scheduled(scheduling));
  std::map<int, std::vector<std::vector<std::uint8_t>>> outputs;
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, ctx.world_size());
        tp::AttentionOptions options;
        options.dtype = wanted.dtype;
        options.heads = wanted.heads;
        options.kv_heads = wanted.kv_heads;
        options.head_dim = wanted.head_dim;
        options.bias = wanted.bias;
        options.page = wanted.page;
        tp::SelfAttention layer(state, width, options);
        layer.load_weights(host.q, host.k, host.v, host.out);
        if (wanted.bias) layer.load_biases(host.q_bias, host.k_bias, host.v_bias, host.out_bias);
        const tp::RotaryTable rotary =
            wanted.rotary ? tp::RotaryTable(state, total, wanted.head_dim, 100.0) : tp::RotaryTable();
        const auto input = [&](std::int64_t first, std::int64_t count) {
          return ctx.from_host(rows_of_each(inputs, width, first, count), {wanted.batch * count, width}, wanted.dtype,
                               spread(), "x");
        };
        tp::KvCache cache = layer.cache(wanted.batch, total), whole = layer.cache(wanted.batch, total);
        const Tensor at_once = layer.forward(input(0, total), whole, rotary);
        expect_near_all(at_once.to_host(), rows_of_each(expected, width, 0, total), wanted.dtype, "at once");
        std::int64_t first = 0;
        for (const std::int64_t length : wanted.lengths) {
          const Tensor y = layer.forward(input(first, length), cache, rotary);
          expect_near_all(y.to_host(), rows_of_each(expected, width, first, length), wanted.dtype,
                          "from " + std::to_string(first));
          outputs[ctx.rank()].push_back(y.bytes_to_host());
          first += length;
          EXPECT_EQ(cache.length(), first);
        }
        EXPECT_EQ(error_text([&] { layer.forward(input(0, 1), cache, rotary); }),
                  "KV cache of 'attention': positions " + std::to_string(total) + " to " + std::to_string(total) +
                      " do not fit: it has " + std::to_string(total) + " positions");
      },
      std::tuple<>(), ranks);
  ASSERT_EQ(outputs.size(), static_cast<std::size_t>(ranks));
  for (const auto& [rank, bytes] : outputs) EXPECT_EQ(bytes, outputs[0]) << "rank " << rank;
}

/// Of many rows the weight goes round the cubes, if it is packed, and rows stay.
TEST(SelfAttention, ManyRowsOfItsProjectionsLieOverTheCubes) {
  MachineRun machine(machine_of(1, 2, 2));
  machine.runtime.spawn(
      [](Context& ctx) {
        ctx.init_process_group();
        tp::AttentionOptions options;
        options.heads = options.kv_heads = 2;
        options.head_dim = 8;
        const DPPolicy packed = tp::LinearPlacement::packed(), split = tp::LinearPlacement::split();
        options.placement.weight = options.placement.output = packed;
        const tp::SelfAttention layer(tp::initialize_model_parallel(ctx, 1), 16, options);
        options.placement.weight = split;
        const tp::SelfAttention unpacked(tp::initialize_model_parallel(ctx, 1), 16, options);
        const auto lie = [](const tp::SelfAttention& of, std::int64_t length) {
          const tp::AttentionTensors tensors = of.place(of.cache(1, 513), length);
          return std::pair(to_string(tensors.qkv.output.policy()), to_string(tensors.output.output.policy()));
        };
        const DPPolicy rows = DPPolicy().cube(CubeSplit::row_wise);
        const std::pair few(to_string(packed), to_string(packed));
        EXPECT_EQ(lie(layer, 512), few);
        EXPECT_EQ(lie(unpacked, 513), few);
        EXPECT_EQ(lie(layer, 513),
                  std::pair(to_string(rows.pe(PeSplit::column_wise)), to_string(rows.pe(PeSplit::row_wise))));
      },
      std::tuple<>(), 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(1, 2, 4),
                                            ::testing::Range(std::size_t{0}, std::size_t{6})),
                         [](const auto& info) {
                           return std::string(attention_cases()[std::get<2>(info.param)].name) + "_tp" +
                                  std::to_string(std::get<1>(info.param)) +
                                  (std::get<0>(info.param) == SchedulingKind::rounds ? "_rounds" : "_concurrent");
                         });

/// Every position of every sequence has a row of its own, on a PE of its sequence, and a sequence's pages are dealt out
/// evenly.
TEST(KvCacheLayout, GivesEveryPositionARowOfItsOwnOnItsSequencesPes) {
  for (const auto& [sequences, pes] : {std::pair(1, 8), std::pair(3, 8), std::pair(8, 8), std::pair(11, 4)}) {
    tp::CacheLayout layout;
    layout.sequences = sequences;
    layout.pes = pes;
    layout.run = std::max<std::int64_t>(1, pes / sequences);
    layout.of_each_pe = (sequences + pes - 1) / pes;
    layout.page = 4;
    layout.positions = 50;
    layout.pages = (13 + layout.run - 1) / layout.run;
    std::set<std::int64_t> rows;
    for (std::int64_t s = 0; s < sequences; ++s) {
      std::map<std::int64_t, int> pages_of;
      for (std::int64_t p = 0; p < layout.positions; ++p) {
        const std::int64_t row = layout.row(s, p), pe = row / layout.rows_of_pe();
        EXPECT_TRUE(rows.insert(row).second) << "sequence " << s << ", position " << p;
        EXPECT_LT(row, layout.rows());
        EXPECT_EQ(pe, layout.pe_of(s, p / layout.page));
        if (p % layout.page == 0) ++pages_of[pe];
      }
      EXPECT_EQ(static_cast<std::int64_t>(pages_of.size()), std::min<std::int64_t>(layout.run, 13));
      for (const auto& [pe, count] : pages_of) EXPECT_LE(count, layout.pages);
    }
  }
}

TEST(AttentionErrors, NameLayerDimensionAndNumbers) {
  MachineRun host(machine_of(2, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        ctx.init_process_group();
        const tp::ParallelState state = tp::initialize_model_parallel(ctx, 2);
        tp::AttentionOptions options;
        options.name = "layer3.attention";
        options.heads = 4;
        options.kv_heads = 3;
        options.head_dim = 64;
        EXPECT_EQ(
            error_text([&] { tp::SelfAttention(state, 8, options); }),
            "SelfAttention 'layer3.attention': kv heads is 3: give a multiple or a divisor of the tensor-parallel "
            "world size 2");
        options.heads = 3;
        EXPECT_EQ(error_text([&] { tp::SelfAttention(state, 8, options); }),
                  "SelfAttention 'layer3.attention': heads is 3: give a positive multiple of the tensor-parallel world "
                  "size 2");
        options.heads = 6;
        options.kv_heads = 4;
        EXPECT_EQ(error_text([&] { tp::SelfAttention(state, 8, options); }),
                  "SelfAttention 'layer3.attention': heads is 6: give a multiple of the 4 kv heads");
        options.kv_heads = 2;
        const tp::SelfAttention layer(state, 8, options);
        const std::string text = error_text([&] { layer.cache(1000, 1 << 20); });
        EXPECT_EQ(
            text.find("KV cache of 'layer3.attention': batch 1000 x kv heads 1 x positions 1048576 x head dim 64 x "
                      "2 in f16 takes 268435456000 B a rank, which does not fit: "),
            0u)
            << text;
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
