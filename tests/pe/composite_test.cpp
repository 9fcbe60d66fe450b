// composite_gemm: numbers, overlap of engines, its records.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/pe/compute/composite_plan.h"
#include "models/pe/compute/compute_timing.h"
#include "tests/pe/harness.h"

namespace kernbench {
namespace {

using test::Bench;

constexpr Va kLeft = 0x100000, kRight = 0x200000, kProduct = 0x300000, kBias = 0x400000, kResidual = 0x500000;

std::vector<double> values(std::int64_t count, int seed) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<double>((i * 7 + seed) % 13 - 6) / 8.0);
  return list;
}

TEST(PeComposite, ComputesWithBiasActivationAndResidualOnEdgesToo) {
  Bench bench;
  bench.map_hbm(0, 1 << 24);
  const std::int64_t m = 70, n = 45, k = 100, lda = 104, ldb = 48, ldc = 50;
  const auto a = values(m * lda, 1), b = values(k * ldb, 2), bias = values(n, 3), residual = values(m * ldc, 4);
  bench.put(kLeft, DType::f16, a);
  bench.put(kRight, DType::f16, b);
  bench.put(kBias, DType::f16, bias);
  bench.put(kResidual, DType::f16, residual);
  Message& message = bench.launch([&](Tl& tl) {
    tl.composite_gemm(
        {kLeft, kRight, kProduct, m, n, k, DType::f16, lda, ldb, ldc, {kBias, kResidual, Activation::relu}});
  });
  ASSERT_EQ(bench.answers(message, CommandKind::done), 1u);
  EXPECT_EQ(bench.pool.outstanding(), 0u);
  const auto c = bench.get(kProduct, DType::f16, static_cast<std::size_t>(m * ldc));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      if (j >= n) {
        EXPECT_EQ(c[at], 0) << "outside the matrix";
        continue;
      }
      double sum = 0;  // exact: the values are multiples of 1/8
      for (std::int64_t x = 0; x < k; ++x) {
        sum += a[static_cast<std::size_t>(i * lda + x)] * b[static_cast<std::size_t>(x * ldb + j)];
      }
      sum = std::max(sum + bias[static_cast<std::size_t>(j)], 0.0) + residual[at];
      unsigned char rounded[2];
      store_element(rounded, DType::f16, 0, sum);
      ASSERT_EQ(c[at], load_element(rounded, DType::f16, 0)) << i << ", " << j;
    }
  }
}

TEST(PeComposite, EnginesOverlap) {
  Bench::Options options;
  options.latency = 2'000;
  options.memory_latency = 20'000;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  const std::int64_t size = 256;
  Message& message = bench.launch([&](Tl& tl) {
    tl.composite_gemm({kLeft, kRight, kProduct, size, size, size, DType::f16, 0, 0, 0, {0, 0, Activation::gelu}});
  });
  ASSERT_EQ(bench.answers(message, CommandKind::done), 1u);
  std::map<std::string, Ps> busy;
  for (const OpRecord& op : bench.observer.ops) busy[op.component] += op.end - op.start;
  const Ps total = bench.duration(message);
  Ps sum = 0;
  for (const auto& [component, time] : busy) {
    if (component != "sip0.cube0.pe0.composite") sum += time;
  }
  EXPECT_LT(total, sum);
  // The product of tile t runs while the tiles of t + 1 are loaded.
  const auto products = bench.observer.named("gemm"), loads = bench.observer.named("dma_read");
  const auto overlaps = [&](const OpRecord& product) {
    return std::any_of(loads.begin(), loads.end(),
                       [&](const OpRecord& l) { return l.start < product.end && product.start < l.end; });
  };
  const auto count = std::count_if(products.begin(), products.end(), overlaps);
  EXPECT_GE(count, static_cast<std::ptrdiff_t>(products.size()) - 1);  // nothing is left to load beside the last one
}

TEST(PeComposite, HasOneRecordAndOnePerTileWithItsStage) {
  Bench::Options options;
  options.config.gemm.tile_m = options.config.gemm.tile_n = 32;
  options.config.gemm.tile_k = 64;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.launch([](Tl& tl) {
    tl.composite_gemm({kLeft, kRight, kProduct, 64, 32, 128, DType::f16, 0, 0, 0, {kBias, 0, Activation::none}});
  });
  const auto records = bench.observer.named("composite_gemm");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].component, "sip0.cube0.pe0.composite");
  EXPECT_EQ(records[0].params[3].text, "32x32x64");
  EXPECT_EQ(records[0].params[4].text, "bias");
  std::map<std::string, int> stages;
  for (const OpRecord& op : bench.observer.ops) {
    if (op.name == "composite_gemm") continue;
    ++stages[op.stage];
    EXPECT_EQ(op.op, records[0].op);
    EXPECT_GE(op.start, records[0].start);
    EXPECT_LE(op.end, records[0].end);
  }
  // 2 x 1 output tiles of 2 steps: per step a and b, per output tile the bias.
  EXPECT_EQ(stages, (std::map<std::string, int>{{"dma_in", 10}, {"gemm", 4}, {"epilogue", 2}, {"dma_out", 2}}));
}

/// A PE whose memory is never in the way: the array alone decides.
Bench::Options array_alone() {
  Bench::Options options;
  options.latency = options.memory_latency = 0;
  options.config.dma.outstanding = 4096;
  options.config.tcm.bytes_per_second = 1'000'000'000'000'000;
  options.config.tcm.banks = 1024;
  return options;
}

/// From the first operand in the array to the last result out of it.
std::uint64_t array_cycles(const Bench& bench) {
  Ps begin = kNever, end = 0;
  for (const OpRecord& op : bench.observer.named("gemm")) {
    begin = std::min(begin, op.start);
    end = std::max(end, op.end);
  }
  const Clock clock(bench.options.config.gemm.clock_hz);
  return clock.tick_at_or_after(end) - clock.tick_at_or_after(begin);
}

TEST(PeComposite, FillsTheArrayOnceAndDrainsItOnceHoweverManyStepsAlongK) {
  Bench::Options options = array_alone();
  options.config.gemm.tile_m = options.config.gemm.tile_n = 32;
  options.config.gemm.tile_k = 64;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.launch([](Tl& tl) { tl.composite_gemm({kLeft, kRight, kProduct, 32, 32, 1024, DType::f16, 0, 0, 0, {}}); });
  EXPECT_EQ(bench.observer.named("gemm").size(), 16u);
  EXPECT_EQ(array_cycles(bench), 1024u + 62 + 32);  // as one product of that depth
}

TEST(PeComposite, OutputTilesFollowEachOtherWithoutAGap) {
  Bench::Options options = array_alone();
  options.config.gemm.tile_m = options.config.gemm.tile_n = 32;
  options.config.gemm.tile_k = 64;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.launch([](Tl& tl) { tl.composite_gemm({kLeft, kRight, kProduct, 128, 128, 256, DType::f16, 0, 0, 0, {}}); });
  EXPECT_EQ(array_cycles(bench), 16u * 256 + 62 + 32);
}

TEST(PeComposite, TilesWiderThanTheArrayBringTheirSumsBackBetweenFolds) {
  Bench::Options options = array_alone();
  options.config.gemm.tile_m = options.config.gemm.tile_n = 64;
  options.config.gemm.tile_k = 128;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.launch([](Tl& tl) { tl.composite_gemm({kLeft, kRight, kProduct, 64, 64, 512, DType::f16, 0, 0, 0, {}}); });
  EXPECT_EQ(array_cycles(bench), 4u * 512 + 62 + 32);  // steps of 128 hide 32 cycles in and 32 out
}

TEST(PeComposite, WeightStationaryLoadsWeightsBehindTheWorkBefore) {
  Bench::Options options = array_alone();
  options.config.gemm.dataflow = GemmDataflow::weight_stationary;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.put(kLeft, DType::f16, std::vector<double>(256 * 256, 1));
  bench.put(kRight, DType::f16, std::vector<double>(256 * 256, 0.5));
  bench.launch([](Tl& tl) { tl.composite_gemm({kLeft, kRight, kProduct, 256, 256, 256, DType::f16, 0, 0, 0, {}}); });
  // 8 x 8 blocks of weights, each for all 256 rows; the first one's load and the last one's skew show.
  EXPECT_EQ(array_cycles(bench), 32u + 64 * 256 + 62);
  EXPECT_EQ(bench.get(kProduct, DType::f16, 256 * 256), std::vector<double>(256 * 256, 128));
}

TEST(PeComposite, AnotherKernelsProductDoesNotDisturbSumsInTheArray) {
  Bench::Options options;
  options.config.gemm.tile_m = options.config.gemm.tile_n = 32;
  options.config.gemm.tile_k = 64;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.put(kLeft, DType::f16, std::vector<double>(64 * 512, 1));
  bench.put(kRight, DType::f16, std::vector<double>(512 * 64, 1));
  Message& streamed =
      bench.prepare({{0, [](Tl& tl) {
                        tl.composite_gemm({kLeft, kRight, kProduct, 64, 64, 512, DType::f16, 0, 0, 0, {}});
                      }}});
  Message& other = bench.prepare({{0,
                                   [](Tl& tl) {
                                     Tile sum = tl.fill({32, 32}, DType::f32, 0);
                                     const Tile one = tl.fill({32, 32}, DType::f32, 1);
                                     for (int i = 0; i < 20; ++i) sum = tl.dot(one, one, sum);
                                     tl.store(kResidual, sum);
                                   }}},
                                 "other");
  bench.queue.run_all();
  ASSERT_EQ(bench.answers(streamed, CommandKind::done), 1u);
  ASSERT_EQ(bench.answers(other, CommandKind::done), 1u);
  EXPECT_EQ(bench.get(kProduct, DType::f16, 64 * 64), std::vector<double>(64 * 64, 512));
  EXPECT_EQ(bench.get(kResidual, DType::f32, 32 * 32), std::vector<double>(32 * 32, 640));
  // No product of the other kernel runs between the first and the last step of an output tile.
  std::vector<OpRecord> products = bench.observer.named("gemm");
  std::sort(products.begin(), products.end(), [](const OpRecord& a, const OpRecord& b) { return a.start < b.start; });
  int steps = 0;
  for (const OpRecord& product : products) {
    if (product.stage == "gemm") {
      steps = (steps + 1) % 8;
    } else {
      EXPECT_EQ(steps, 0);
    }
  }
}

TEST(PeComposite, ChoosesATileOfFourArraysAndWideRowsThatFitsAQuarterOfItsShareOfTcm) {
  PeConfig config;  // 32 x 32, 16 MiB for two kernels
  const auto tile = [&](std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
    const pe::CompositePlan plan(config, {kLeft, kRight, kProduct, m, n, k, dtype, 0, 0, 0, {}}, 0);
    return std::array<std::int64_t, 3>{plan.tile_m(), plan.tile_n(), plan.tile_k()};
  };
  EXPECT_EQ(tile(1024, 1024, 1024, DType::f16), (std::array<std::int64_t, 3>{128, 256, 256}));
  EXPECT_EQ(tile(1024, 1024, 1024, DType::f8e4m3), (std::array<std::int64_t, 3>{128, 512, 512}));
  EXPECT_EQ(tile(1024, 1024, 1024, DType::f64), (std::array<std::int64_t, 3>{128, 128, 64}));
  EXPECT_EQ(tile(32, 64, 100, DType::f16), (std::array<std::int64_t, 3>{32, 64, 100}));
  config.gemm.tile_n = 32;
  EXPECT_EQ(tile(1024, 1024, 1024, DType::f16), (std::array<std::int64_t, 3>{128, 32, 256}));
  config.gemm.tile_n = 0;
  // Twice a of 64 KiB, b and sums of 128 KiB each, a result of 64 KiB: 768 KiB.
  config.tcm.bytes = std::uint64_t{2 * 4 * 768} << 10;
  EXPECT_EQ(tile(1024, 1024, 1024, DType::f16), (std::array<std::int64_t, 3>{128, 256, 256}));
  config.tcm.bytes -= 1 << 10;
  EXPECT_EQ(tile(1024, 1024, 1024, DType::f16), (std::array<std::int64_t, 3>{128, 128, 256}));
}

TEST(PeComposite, LaterOpsWaitForItsResultOnly) {
  Bench bench;
  bench.map_hbm(0, 1 << 24);
  bench.put(kLeft, DType::f16, std::vector<double>(64 * 64, 1));
  bench.put(kRight, DType::f16, std::vector<double>(64 * 64, 1));
  bench.launch([](Tl& tl) {
    tl.composite_gemm({kLeft, kRight, kProduct, 64, 64, 64, DType::f16, 0, 0, 0, {}});
    tl.load(kBias, {1, 8}, DType::f16);                            // independent
    tl.store(kResidual, tl.load(kProduct, {64, 64}, DType::f16));  // needs the product
  });
  const Ps done = bench.observer.named("composite_gemm")[0].end;
  Ps independent = 0, dependent = 0;
  for (const OpRecord& op : bench.observer.named("dma_read")) {
    if (op.params[0].text == "va:0x400000") independent = op.start;
    if (op.params[0].text == "va:0x300000") dependent = op.start;
  }
  EXPECT_LT(independent, done);
  EXPECT_EQ(dependent, done);
  EXPECT_EQ(bench.get(kResidual, DType::f16, 64 * 64), std::vector<double>(64 * 64, 64));
}

TEST(PeComposite, AccumulatesAllTypesInTheirAccumulator) {
  Bench bench;
  bench.map_hbm(0, 1 << 24);
  for (const DType dtype : {DType::bf16, DType::f32, DType::i8, DType::i32, DType::f64, DType::f8e4m3}) {
    bench.put(kLeft, dtype, std::vector<double>(4 * 100, 1));
    bench.put(kRight, dtype, std::vector<double>(100 * 4, 1));
    Message& message = bench.launch([dtype](Tl& tl) {
      tl.composite_gemm({kLeft, kRight, kProduct, 4, 4, 100, dtype, 0, 0, 0, {}});
    });
    ASSERT_TRUE(message.faults.empty()) << message.faults[0].reason;
    unsigned char expected[8];
    store_element(expected, dtype, 0, 100);
    EXPECT_EQ(bench.get(kProduct, dtype, 16), std::vector<double>(16, load_element(expected, dtype, 0)))
        << to_string(dtype);
  }
}

}  // namespace
}  // namespace kernbench
