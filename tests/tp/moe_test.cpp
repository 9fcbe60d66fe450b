#include "runtime/tp/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tests/tp/transformer_reference.h"

namespace kernbench::testing {
namespace {

constexpr std::int64_t kRowWidth = 12, kExpertHidden = 8, kExperts = 8;

/// Products of input and router are multiples of 2^-7 whose sums every type holds: logits are exact, ties are ties.
double router_at(std::int64_t row, std::int64_t col) { return weight_at(row + 3, col * 5); }
double token_at(std::int64_t row, std::int64_t col) { return input_at(row * 2 + 1, col); }
/// Of matrix `part` of an expert; experts differ in every element's place.
tp::WeightPattern expert_at(std::int64_t expert, std::int64_t part) {
  return [=](std::int64_t row, std::int64_t col) { return weight_at(row + 5 * expert + part, col + 3 * expert + 1); };
}

struct HostMoe {
  std::int64_t tokens, per_token;
  double capacity_factor = 0;
  std::int64_t ranks = 1;  ///< that send tokens; with a capacity factor
  tp::WeightPattern router = router_at;
  DType dtype = DType::f32;
  std::vector<std::int64_t> counts = std::vector<std::int64_t>(kExperts);
  std::int64_t dropped = 0;

  Values mlp(const Values& x, std::int64_t expert) const {
    const auto matrix = [&](std::int64_t part, Shape shape) { return values_of(shape, expert_at(expert, part)); };
    Values up = product(x, matrix(0, {kRowWidth, kExpertHidden}), 1, kRowWidth, kExpertHidden);
    const Values gate = product(x, matrix(1, {kRowWidth, kExpertHidden}), 1, kRowWidth, kExpertHidden);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1 + std::exp(-gate[i]));
    return product(up, matrix(2, {kExpertHidden, kRowWidth}), 1, kExpertHidden, kRowWidth);
  }

  /// Written out from the formulas: no ranks, no blocks, a token after the other.
  Values forward(const Values& x) {
    const std::int64_t of_rank = (tokens + ranks - 1) / ranks;
    const double capacity =
        capacity_factor > 0
            ? std::ceil(capacity_factor * static_cast<double>(of_rank * per_token) / static_cast<double>(kExperts))
            : 1e9;
    const Values weights = values_of({kRowWidth, kExperts}, router);
    std::vector<std::int64_t> sent(kExperts);
    Values y;
    for (std::int64_t token = 0; token < tokens; ++token) {
      if (token % of_rank == 0) std::fill(sent.begin(), sent.end(), 0);
      const Values own(x.begin() + token * kRowWidth, x.begin() + (token + 1) * kRowWidth);
      Values logits = product(own, weights, 1, kRowWidth, kExperts), row(kRowWidth);
      const Values all = logits;
      std::vector<std::size_t> chosen;
      double sum = 0;
      for (std::int64_t j = 0; j < per_token; ++j) {
        chosen.push_back(static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
        logits[chosen.back()] = -1e300;
        sum += std::exp(all[chosen.back()]);
      }
      for (const std::size_t expert : chosen) {
        if (static_cast<double>(sent[expert]) >= capacity) {
          ++dropped;
          continue;
        }
        ++sent[expert];
        ++counts[expert];
        const Values part = mlp(own, static_cast<std::int64_t>(expert));
        for (std::size_t i = 0; i < row.size(); ++i) row[i] += std::exp(all[expert]) / sum * part[i];
      }
      y.insert(y.end(), row.begin(), row.end());
    }
    return y;
  }
};

struct MoeCase {
  int ranks, ep;
  std::int64_t per_token = 2;
  double capacity_factor = 0;
  bool sequence = false;
};
double nothing_at(std::int64_t, std::int64_t) { return 0.0; }

/// A pass over `tokens` tokens against the host, every element on every rank. The roundings: up, its product with the
/// gate, down, the weighted sum, of values whose sums are at most some units.
void expect_host_values(Context& ctx, const MoeCase& wanted, DType dtype, const std::vector<std::int64_t>& lengths,
                        const tp::WeightPattern& router = router_at) {
  const tp::ParallelState state =
      tp::initialize_model_parallel(ctx, ctx.world_size(), 1, tp::on_first_use(), wanted.ep);
  tp::MoeOptions options;
  options.dtype = dtype;
  options.experts = kExperts;
  options.per_token = wanted.per_token;
  options.sequence_parallel = wanted.sequence;
  options.placement.weight = tp::LinearPlacement::packed();
  options.run.capacity_factor = wanted.capacity_factor;
  options.run.log = std::make_shared<tp::MoeLog>();
  tp::MoeMlp layer(state, kRowWidth, kExpertHidden, options);
  layer.load_router(router);
  for (std::int64_t e = 0; e < kExperts; ++e) layer.load_expert(e, expert_at(e, 0), expert_at(e, 1), expert_at(e, 2));
  for (const std::int64_t tokens : lengths) {
    const tp::MoeTensors tensors = layer.place(tokens);
    layer.prepare(tensors);
    for (const std::int64_t first : {0, 7}) {  // the second pass meets what the first left
      const Values x = values_of({tokens, kRowWidth}, token_at, first);
      HostMoe host{tokens, wanted.per_token, wanted.capacity_factor, wanted.ep, router, dtype};
      const Values whole = host.forward(x);
      double largest = 0;
      for (const double value : whole) largest = std::max(largest, std::abs(value));
      const double tolerance = (dtype == DType::f16 ? 0x1p-11 : 0x1p-22) * 8 * largest;
      const std::int64_t rows = wanted.sequence ? tokens / wanted.ranks : tokens,
                         top = wanted.sequence ? ctx.rank() * rows : 0;
      const Values own(x.begin() + top * kRowWidth, x.begin() + (top + rows) * kRowWidth);
      const Values got = layer.forward(ctx.from_host(own, {rows, kRowWidth}, dtype, spread(), "x"), tensors).to_host();
      ASSERT_EQ(got.size(), own.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], whole[static_cast<std::size_t>(top * kRowWidth) + i], tolerance)
            << to_string(dtype) << ", " << tokens << " tokens from " << first << ", element " << i << " of rank "
            << ctx.rank();
      }
      if (ctx.rank() != 0) continue;
      EXPECT_EQ(options.run.log->passes.back().tokens_per_expert, host.counts);
      EXPECT_EQ(options.run.log->passes.back().dropped, host.dropped);
      EXPECT_EQ(host.dropped > 0, wanted.capacity_factor > 0) << "the case has some to drop";
    }
  }
}

class MoeRanks : public ::testing::TestWithParam<std::tuple<SchedulingKind, MoeCase>> {};

/// Experts dealt to all ranks, to some and to one; lengths that the ranks divide and do not, fewer tokens than ranks.
TEST_P(MoeRanks, GiveEachTokenTheWeightedSumOfItsExperts) {
  const auto [scheduling, wanted] = GetParam();
  MachineRun machine(machine_of(static_cast<std::uint16_t>(wanted.ranks), 2, 2), scheduled(scheduling));
  machine.runtime.spawn(
      [&, wanted = wanted](Context& ctx) {
        ctx.init_process_group();
        const std::vector<std::int64_t> lengths = wanted.capacity_factor > 0 || wanted.sequence
                                                      ? std::vector<std::int64_t>{40}
                                                      : std::vector<std::int64_t>{5, 1, 40};
        expect_host_values(ctx, wanted, DType::f32, lengths);
        expect_host_values(ctx, wanted, DType::f16, lengths);
      },
      std::tuple<>(), wanted.ranks);
}

INSTANTIATE_TEST_SUITE_P(Moe, MoeRanks,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(MoeCase{1, 1}, MoeCase{2, 2}, MoeCase{2, 1},
                                                              MoeCase{4, 4}, MoeCase{4, 2, 3}, MoeCase{2, 2, 1},
                                                              MoeCase{2, 2, 2, 0, true}, MoeCase{2, 2, 2, 1.0},
                                                              MoeCase{4, 2, 2, 0.5})));

/// All logits are equal: each token goes to the first experts, half of it to each, and the others have none.
TEST(Moe, OfEqualLogitsTheFirstExpertsAreTakenAndOthersHaveNoTokens) {
  MachineRun machine(machine_of(4, 2, 2));
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        expect_host_values(ctx, {4, 4}, DType::f32, {6}, nothing_at);
        HostMoe host{6, 2, 0, 4, nothing_at};
        host.forward(values_of({6, kRowWidth}, token_at));
        EXPECT_EQ(host.counts, (std::vector<std::int64_t>{6, 6, 0, 0, 0, 0, 0, 0}));
        // Two pairs of equal largest ones: 1 and 4 are before 6 and 7.
        expect_host_values(ctx, {4, 4}, DType::f16, {6}, [](std::int64_t row, std::int64_t col) {
          return row == 0 && (col == 1 || col == 4 || col == 6 || col == 7) ? 0.5 : 0.0;
        });
      },
      std::tuple<>(), 4);
}

/// `tokens` through an expert on each rank and more: launches of rank 0 of that name, of two passes.
std::map<std::string, int> launches_of(int ranks, std::int64_t tokens, const tp::WeightPattern& router) {
  MachineRun machine(machine_of(static_cast<std::uint16_t>(ranks), 2, 2));
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        expect_host_values(ctx, {ranks, ranks}, DType::f32, {tokens}, router);
      },
      std::tuple<>(), ranks);
  std::map<std::string, int> launches;
  for (const HostTraceEntry& one : machine.runtime.host_trace()) {
    if (one.rank == 0) ++launches[one.name];
  }
  return launches;
}

/// A launch carries 896 rows: blocks of more than that and the 1,000 choices of a rank take several.
TEST(Moe, MoreRowsThanALaunchCarriesTakeSeveral) {
  auto launches = launches_of(2, 1000, router_at);
  EXPECT_GE(launches["moe.dispatch"], 2 * 2);
  EXPECT_EQ(launches["moe.combine"], 2 * 2);
}

/// All 500 tokens go to the same two experts of a single rank.
TEST(Moe, MoreChoicesThanALaunchCarriesAreCombinedBySeveral) {
  EXPECT_EQ(launches_of(1, 500, nothing_at)["moe.combine"], 2 * 2);
}

TEST(Moe, RefusesWhatDoesNotDivideNamingLayerAndNumbers) {
  MachineRun machine(machine_of(3, 1, 1));
  machine.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const auto text = [&](std::int64_t experts, std::int64_t per_token, std::int64_t hidden, int ep) {
          return error_text([&] {
            tp::MoeOptions options;
            options.name = "layer3.moe";
            options.experts = experts;
            options.per_token = per_token;
            const auto state = tp::initialize_model_parallel(ctx, 3, 1, tp::on_first_use(), ep);
            tp::MoeMlp layer(state, 4, hidden, options);
          });
        };
        EXPECT_EQ(text(8, 2, 6, 3),
                  "MoeMlp 'layer3.moe': experts is 8: give a positive multiple of the expert-parallel world size 3");
        EXPECT_EQ(text(8, 2, 7, 1),
                  "MoeMlp 'layer3.moe': hidden is 7: give a positive multiple of the expert-tensor-parallel world size "
                  "3");
        EXPECT_EQ(text(6, 7, 6, 3), "MoeMlp 'layer3.moe': experts per token is 7: give 1 to the 6 experts");
        EXPECT_EQ(text(1200, 900, 6, 3),
                  "MoeMlp 'layer3.moe': experts per token is 900: a launch carries the rows of 896");
        EXPECT_EQ(text(6, 2, 6, 2),
                  "initialize_model_parallel: expert_model_parallel_size 2 does not divide tensor_model_parallel_size "
                  "3");
        // Logits that are no numbers choose nobody.
        tp::MoeOptions options;
        options.experts = 3;
        const auto state = tp::initialize_model_parallel(ctx, 3);
        tp::MoeMlp layer(state, 4, 4, options);
        layer.load_router([](std::int64_t, std::int64_t) { return std::nan(""); });
        const Tensor x = ctx.full(1, {3, 4}, DType::f16, spread(), "x");
        const tp::MoeTensors tensors = layer.place(3);
        EXPECT_EQ(error_text([&] { layer.forward(x, tensors); }),
                  "router: token 0 has no choice 0 among the 3 experts: its logits are no numbers");
      },
      std::tuple<>(), 3);
}

/// Whoever follows the maps finds each token at its experts and each result at its token, whatever the choices.
TEST(MoeRouting, SendsEachChoiceToItsExpertAndFindsItAgain) {
  std::uint64_t seed = 1;
  for (const auto& [tokens, ranks, factor] : {std::tuple(13, 4, 0.0), std::tuple(3, 8, 0.0), std::tuple(64, 2, 0.75)}) {
    const tp::MoeShape shape{tokens, 8, 2, ranks, factor};
    const tp::MoeRouting routing(shape, tp::assumed_choices({1.0, seed++}, tokens, 8, 2));
    const std::int64_t rows = tp::MoeRouting::rows_of_rank(shape);
    // What arrives at each rank: the token of every row, from block s of rank s.
    std::int64_t found = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<std::int32_t> sent = routing.send_rows(rank), slots = routing.slots(rank);
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const auto choice = static_cast<std::size_t>(rank * rows * 2) + i;
        EXPECT_EQ(slots[i] < 0, routing.dropped(choice));
        if (slots[i] < 0) continue;
        EXPECT_EQ(sent[static_cast<std::size_t>(slots[i])], static_cast<std::int32_t>(i / 2));
        const std::int64_t expert = routing.choices()[choice], target = slots[i] / routing.block();
        EXPECT_EQ(target, expert / (8 / ranks));
        const std::int64_t arrives = rank * routing.block() + slots[i] % routing.block();
        const std::vector<std::int32_t> own = routing.expert_rows(expert);
        EXPECT_EQ(std::count(own.begin(), own.end(), arrives), 1);
        ++found;
      }
    }
    EXPECT_EQ(found + routing.dropped(), 2 * tokens);
    EXPECT_EQ(routing.dropped() > 0, factor > 0);
    const auto& counts = routing.tokens_per_expert();
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), found);
  }
}

TEST(MoeRouting, AssumedChoicesAreBalancedOrAsPopularAsZipfSays) {
  const auto counts = [](const std::vector<std::int32_t>& choices) {
    std::vector<std::int64_t> list(8);
    for (const std::int32_t choice : choices) ++list[static_cast<std::size_t>(choice)];
    std::sort(list.rbegin(), list.rend());
    return list;
  };
  EXPECT_EQ(counts(tp::assumed_choices({}, 64, 8, 2)), std::vector<std::int64_t>(8, 16));
  const auto even = counts(tp::assumed_choices({0.0, 3}, 8000, 8, 1)),
             skewed = counts(tp::assumed_choices({1.0, 3}, 8000, 8, 1));
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(static_cast<double>(even[i]), 1000, 120) << "four deviations of 30";
    EXPECT_NEAR(static_cast<double>(skewed[i]), 8000 / 2.717857 / static_cast<double>(i + 1), 180)
        << "1 + 1/2 + ... + 1/8";
  }
  const std::vector<std::int32_t> choices = tp::assumed_choices({2.0, 5}, 50, 8, 3);
  EXPECT_EQ(choices, tp::assumed_choices({2.0, 5}, 50, 8, 3));
  EXPECT_NE(choices, tp::assumed_choices({2.0, 6}, 50, 8, 3));
  for (std::size_t i = 0; i < choices.size(); i += 3)
    EXPECT_EQ(std::set<std::int32_t>(choices.begin() + static_cast<std::ptrdiff_t>(i),
                                     choices.begin() + static_cast<std::ptrdiff_t>(i + 3))
                  .size(),
              3u);
}

}  // namespace
}  // namespace kernbench::testing
