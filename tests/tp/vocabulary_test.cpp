#include "runtime/tp/vocabulary.h"

#include <gtest/gtest.h>

#include "runtime/tp/embedding.h"
#include "runtime/tp/own_shard.h"
#include "tests/tp/tp_case.h"

namespace kernbench::testing {
namespace {

constexpr std::int64_t kVocabulary = 36, kWidth = 10;

/// Scheduling and number of ranks.
class Vocabulary : public ::testing::TestWithParam<std::tuple<SchedulingKind, int>> {
 protected:
  int ranks() const { return std::get<1>(GetParam()); }
  RunOptions options() const { return scheduled(std::get<0>(GetParam())); }
};

tp::ParallelState vocabulary_state(Context& ctx) {
  ctx.init_process_group();
  return tp::initialize_model_parallel(ctx, ctx.world_size());
}

/// First and last row of every rank, tokens twice, and one alone; more than one launch.
TEST_P(Vocabulary, EmbeddingGivesEveryRankTheRowsOfAllTokens) {
  MachineRun host(machine_of(ranks(), 2, 2), options());
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = vocabulary_state(ctx);
        for (const tp::LinearPlacement& placement : two_placements()) {
          tp::EmbeddingOptions wanted;
          wanted.weight = placement.weight;
          wanted.placement.output = placement.output;
          tp::VocabParallelEmbedding embedding(state, kVocabulary, kWidth, wanted);
          embedding.load_weight(weight_at);
          const std::int64_t own = kVocabulary / ranks();
          EXPECT_EQ(embedding.weight().to_host(), values_of({own, kWidth}, weight_at, ctx.rank() * own, 0));
          std::vector<std::int64_t> many;
          for (std::int64_t i = 0; i < tp::VocabParallelEmbedding::kMostTokens + 3; ++i) many.push_back(i * 5 % 36);
          for (const std::vector<std::int64_t>& tokens :
               {std::vector<std::int64_t>{0, 8, 9, 17, 18, 26, 27, 35, 9, 9, 1}, {30}, many}) {
            Values expected;
            for (const std::int64_t token : tokens) {
              const Values row = values_of({1, kWidth}, weight_at, token, 0);
              expected.insert(expected.end(), row.begin(), row.end());
            }
            // Whatever the output held before.
            const tp::ForwardTensors tensors = embedding.place(static_cast<std::int64_t>(tokens.size()));
            embedding.forward(std::vector<std::int64_t>(tokens.size(), ctx.rank() * own), tensors);
            EXPECT_EQ(embedding.forward(tokens, tensors).to_host(), expected);
            ++checked;
          }
        }
      },
      std::tuple<>(), ranks());
  EXPECT_EQ(checked, 2 * 3 * ranks());
}

/// Values that differ along rows and columns; rows whose largest stands on each rank, twice on different ranks, at the
/// ends, and in the padding, where it does not count.
double logit_at(std::int64_t row, std::int64_t col) {
  if (row == 5) return col == 3 || col == 30 ? 9 : 0;        // two equal ones: the first
  if (row == 6) return -100 - static_cast<double>(col % 7);  // all far below zero
  const bool largest = col == (row * 9 + 4) % 34;
  return largest ? 6 : weight_at(row, col) * 4;
}

TEST_P(Vocabulary, SoftMaxAndArgMaxAreThoseOfTheWholeRow) {
  MachineRun host(machine_of(ranks(), 2, 2), options());
  const std::int64_t rows = 7, valid = 34, own = kVocabulary / ranks();  // two columns are padding
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::ParallelState state = vocabulary_state(ctx);
        const auto padded = [&](std::int64_t row, std::int64_t col) { return col < valid ? logit_at(row, col) : 50.0; };
        const std::int64_t first = ctx.rank() * own;
        for (const DPPolicy& policy : {spread(), DPPolicy(), policy_of(CubeSplit::column_wise, PeSplit::replicate)}) {
          const Tensor logits =
              ctx.from_host(values_of({rows, own}, padded, 0, first), {rows, own}, DType::f16, policy, "logits");
          const tp::VocabParallelLogits last(state, "last", logits, valid);
          last.prepare();
          const Tensor probabilities = ctx.empty({rows, own}, DType::f32, policy, "probabilities");
          for (int pass = 0; pass < 2; ++pass) {  // nothing of the pass before is left
            last.soft_max(logits, probabilities);
            const Values got = probabilities.to_host();
            const Values index = last.arg_max(logits).to_host();
            for (std::int64_t row = 0; row < rows; ++row) {
              double sum = 0;
              std::int64_t largest = 0;
              for (std::int64_t col = 0; col < valid; ++col) {
                sum += std::exp(logit_at(row, col));
                if (logit_at(row, col) > logit_at(row, largest)) largest = col;
              }
              EXPECT_EQ(index[static_cast<std::size_t>(row)], static_cast<double>(largest)) << "row " << row;
              for (std::int64_t col = 0; col < own; ++col) {
                const double expected = first + col < valid ? std::exp(logit_at(row, first + col)) / sum : 0;
                EXPECT_NEAR(got[static_cast<std::size_t>(row * own + col)], expected, 1e-6 + 1e-5 * expected);
              }
            }
            ++checked;
          }
        }
      },
      std::tuple<>(), ranks());
  EXPECT_EQ(checked, 3 * 2 * ranks());
}

INSTANTIATE_TEST_SUITE_P(Ranks, Vocabulary,
                         ::testing::Combine(::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                                            ::testing::Values(1, 2, 4)));

TEST(VocabularyErrors, NameLayerAndNumbers) {
  MachineRun host(machine_of(2, 1, 2));
  host.runtime.spawn(
      [](Context& ctx) {
        const tp::ParallelState state = vocabulary_state(ctx);
        EXPECT_EQ(error_text([&] { tp::VocabParallelEmbedding(state, 35, 4); }),
                  "VocabParallelEmbedding 'embedding': vocabulary is 35: give a positive multiple of the "
                  "tensor-parallel world size 2");
        const tp::VocabParallelEmbedding embedding(state, 36, 4);
        EXPECT_EQ(error_text([&] {
                    embedding.forward({0, 36});
                  }),
                  "VocabParallelEmbedding 'embedding': token 1 is 36: give 0 to 35");
        EXPECT_EQ(error_text([&] {
                    tp::VocabParallelLogits(state, "last", ctx.zeros({4, 8}, DType::f16, tp::dense_rows(), "x"), 16);
                  }),
                  "VocabParallelLogits 'last': the logits are placed cube=row_wise,pe=row_wise, which splits rows: "
                  "place them by columns");
        EXPECT_EQ(error_text([&] {
                    tp::VocabParallelLogits(state, "last", ctx.zeros({4, 8}, DType::f16, {}, "x"), 17);
                  }),
                  "VocabParallelLogits 'last': vocabulary is 17: give 1 to 16, the columns of all ranks");
      },
      std::tuple<>(), 2);
}

}  // namespace
}  // namespace kernbench::testing
