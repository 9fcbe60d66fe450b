#include "runtime/tp/gemm_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "runtime/tp/launch_bound.h"
#include "runtime/tp/own_shard.h"
#include "tests/support/test_folder.h"
#include "tests/tp/gemm_cases.h"

namespace kernbench::testing {
namespace {

TEST(TpGemmMapping, ItsTextIsReadBack) {
  for (const std::string text : {"stream", "passed", "split", "ring", "vector", "lanes",
                                 "stream:32x112x512,rows=4,chains=1", "vector:1x8x4096,rows=2,chains=2"}) {
    EXPECT_EQ(tp::parse_gemm_mapping(text).str(), text);
  }
}

TEST(TpGemmMapping, OtherTextIsRefused) {
  for (const std::string text : {"Stream", "straem", "stream2:1x2x3,rows=1,chains=1"}) {
    EXPECT_EQ(error_text([&] { tp::parse_gemm_mapping(text); }), "mapping '" + text + "': did you mean 'stream'?");
  }
  for (const std::string text : {"", "stream:1x2", "stream:0x1x1,rows=1,chains=1", "circle"}) {
    EXPECT_EQ(
        error_text([&] { tp::parse_gemm_mapping(text); }),
        "mapping '" + text +
            "': give stream, passed, split, ring, vector or lanes, alone or followed by :MxNxK,rows=R,chains=C with "
            "numbers from 1");
  }
}

/// What --explain prints is a file that gives the same mapping; what is wrong in one is said with its place.
TEST(TpGemmMapping, AFileIsReadBack) {
  const TestFolder folder;
  const std::string file = folder.file("mapping.yaml");
  for (const std::string text : {"split", "stream:32x112x512,rows=4,chains=1"}) {
    std::ofstream(file) << tp::parse_gemm_mapping(text).yaml();
    EXPECT_EQ(tp::load_gemm_mapping(file).str(), text);
  }
  const auto error_of = [&](const std::string& text) {
    std::ofstream(file) << text;
    const std::string error = error_text([&] { tp::load_gemm_mapping(file); });
    EXPECT_EQ(error.rfind(file, 0), 0u) << error;
    return error.substr(std::min(error.size(), file.size()));
  };
  const auto says = [&](const std::string& text, const std::string& what) {
    EXPECT_NE(error_of(text).find(what), std::string::npos) << error_of(text);
  };
  says("mapping: spilt\n", ":1:10: error: mapping is 'spilt'\n  hint: did you mean 'split'?");
  says("mapping: split\ntile_m: 0\n", ":2:9: error: tile_m is '0'");
  says("mapping: split\ntile_m: 8\n", "missing key 'tile_n'");
  says("tile_m: 8\ntiles: 3\n", "missing key 'mapping'");
}

TEST(TpGemmCases, StreamGivesTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::stream, 1, 20); }
TEST(TpGemmCases, PassedGivesTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::passed, 2, 20); }
TEST(TpGemmCases, SplitGivesTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::split, 4, 20); }
TEST(TpGemmCases, RingOnALineGivesTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::ring, 6, 20); }
TEST(TpGemmCases, RingGivesTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::ring, 7, 20, 2, 2); }
TEST(TpGemmCases, LanesGiveTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::lanes, 5, 20); }
TEST(TpGemmCases, VectorGivesTheExactSums) { check_gemm_cases(tp::GemmMapping::Kind::vector, 3, 20); }

/// Of three rows of b one of four PEs has none: it receives the sums of the others in their order, which is another one
/// in each cube.
TEST(TpGemmCases, APeWithoutAPartOfKHoldsTheSameSums) {
  MachineRun host(machine_of(1, 3, 4));
  const std::int64_t m = 7, n = 11, k = 3;
  const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
  host.runtime.spawn(
      [&](Context& ctx) {
        for (const char* mapping : {"lanes:1x11x1,rows=7,chains=1", "split:2x11x2,rows=2,chains=1"}) {
          const tp::GemmOperands operands{
              ctx.from_host(x, {m, k}, DType::f16, policy_of(CubeSplit::replicate, PeSplit::tiled_row_major), "a"),
              ctx.from_host(w, {k, n}, DType::f16, policy_of(CubeSplit::replicate, PeSplit::row_wise), "b"), Tensor(),
              ctx.empty({m, n}, DType::f16, policy_of(CubeSplit::replicate, PeSplit::replicate), "c"),
              Activation::none};
          ctx.wait(tp::gemm(ctx, "g", operands, tp::plan_gemm(ctx.map(), "g", operands, mapping)));
          EXPECT_EQ(operands.c.to_host(), in_f16(product(x, w, m, k, n))) << mapping;
          EXPECT_EQ(operands.c.copies(), 12U);
          for (std::size_t copy = 1; copy < operands.c.copies(); ++copy)
            EXPECT_EQ(operands.c.bytes_to_host(copy), operands.c.bytes_to_host(0)) << mapping << ", copy " << copy;
        }
      },
      std::tuple<>(), 1);
}

/// Blocks of dozens of messages through queues of one: no cube waits for another in a circle.
TEST(TpGemmCases, RingNeedsNoQueueThatHoldsABlock) {
  topology::SystemSpec spec = topology::small_machine(1, 2, 2);
  spec.cube.pes = 2;
  spec.cube.pe.ipcq.slots = 1;
  spec.cube.pe.ipcq.queue_depth = 1;
  MachineRun host(spec);
  const std::int64_t m = 16, n = 40, k = 24;
  const Values x = values_of({m, k}, input_at), w = values_of({k, n}, weight_at);
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::GemmOperands operands{
            ctx.from_host(x, {m, k}, DType::f16, policy_of(CubeSplit::row_wise, PeSplit::column_wise), "a"),
            ctx.from_host(w, {k, n}, DType::f16, policy_of(CubeSplit::column_wise, PeSplit::row_wise), "b"), Tensor(),
            ctx.empty({m, n}, DType::f16, policy_of(CubeSplit::row_wise, PeSplit::row_wise), "c"), Activation::none};
        ctx.wait(tp::gemm(ctx, "g", operands, tp::plan_gemm(ctx.map(), "g", operands, "ring:2x1x2,rows=1,chains=1")));
        EXPECT_EQ(operands.c.to_host(), in_f16(product(x, w, m, k, n)));
      },
      std::tuple<>(), 1);
}

/// 64 x 64 x 256 in f16 over 4 PEs: 2 x 2 of them have 32 rows and 32 columns each, one fold of 256 cycles. All
/// operands are 72 KiB.
TEST(TpGemmBound, IsTheBestSplitOrTheBytesAndWhatNothingHides) {
  MachineRun host(machine_of(1, 2, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy columns = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
        const Tensor a = ctx.zeros({64, 256}, DType::f16, {}, "a"), b = ctx.zeros({256, 64}, DType::f16, columns, "b");
        const Tensor c = ctx.zeros({64, 64}, DType::f16, columns, "c");
        const tp::GemmPlan plan = tp::plan_gemm(ctx.map(), "g", {a, b, Tensor(), c, Activation::none});
        const PeEngines& engines = ctx.map().engines;
        ASSERT_EQ(engines.gemm_rows, 32u);
        EXPECT_EQ(plan.bound.array, Clock(engines.gemm_hz).at(256));
        ASSERT_GE(engines.hbm_write_queue, 64 * 64 * 2 / 4) << "the result may wait there";
        const double bytes = (64 * 256 + 256 * 64) * 2.0 / 4;
        EXPECT_NEAR(static_cast<double>(plan.bound.memory),
                    bytes * 1e12 / static_cast<double>(ctx.map().hbm_slice.peak.bytes_per_second()), 1);
        EXPECT_EQ(plan.bound.time,
                  std::max({plan.bound.array, plan.bound.memory, plan.bound.ucie}) + plan.bound.latency);
        EXPECT_GT(plan.bound.latency, engines.hbm_hit);
      },
      std::tuple<>(), 1);
}

/// Three cubes in a row share the columns of a, b and c: each needs the other two thirds of a. Those at the ends have
/// one link for them, the one in the middle two; a copy of a in every cube needs none.
TEST(TpGemmBound, HasWhatMustCrossUcieIntoACubeAtTheRateOfItsLinks) {
  topology::SystemSpec spec = machine_of(1, 3, 2);
  spec.cube.ucie.transfers_per_second /= 8;
  MachineRun host(spec);
  host.runtime.spawn(
      [&](Context& ctx) {
        const MachineMap& map = ctx.map();
        ASSERT_EQ(map.cube_links.front().capacity.bytes_per_second(), map.cube_links.at(1).capacity.bytes_per_second());
        const DPPolicy columns = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
        const auto bound = [&](const DPPolicy& of_a) {
          const Tensor a = ctx.zeros({30, 600}, DType::f16, of_a, "a"),
                       b = ctx.zeros({600, 6}, DType::f16, columns, "b"),
                       c = ctx.zeros({30, 6}, DType::f16, columns, "c");
          return tp::gemm_bound(map, {a, b, Tensor(), c, Activation::none}, tp::parse_gemm_mapping("stream"));
        };
        const tp::GemmBound cut = bound(columns), copied = bound(DPPolicy());
        const double rate = static_cast<double>(map.cube_links.front().capacity.bytes_per_second());
        EXPECT_NEAR(static_cast<double>(cut.ucie), 30 * 400 * 2 / rate * 1e12, 1);
        EXPECT_STREQ(cut.binds(), "UCIe");
        EXPECT_EQ(cut.time, cut.ucie + cut.latency);
        EXPECT_EQ(copied.ucie, 0u);
      },
      std::tuple<>(), 1);
}

/// A row cut over three cubes: its farthest part may come while the PE works on the near ones, so that the longer of
/// the two counts, not their sum.
TEST(TpGemmBound, AFarPartComesBesideTheWorkOnNearOnes) {
  MachineRun host(machine_of(1, 3, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy columns = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
        const MachineMap& map = ctx.map();
        const Ps near = tp::least_access(map, {0, 0, 0}), far = tp::one_way(map, {0, 0, 0}, {0, 2, 0});
        ASSERT_GT(far, near);
        const auto bound = [&](std::int64_t k) {
          const Tensor a = ctx.zeros({1, k}, DType::f16, columns, "a"), b = ctx.zeros({k, 6}, DType::f16, columns, "b"),
                       c = ctx.zeros({1, 6}, DType::f16, columns, "c");
          return tp::gemm_bound(map, {a, b, Tensor(), c, Activation::none}, tp::parse_gemm_mapping("stream"));
        };
        const tp::GemmBound small = bound(6), large = bound(60000);
        const Ps fixed = large.latency - near;
        EXPECT_EQ(large.time, fixed + near + std::max({large.array, large.memory, large.ucie}));
        EXPECT_EQ(small.time, fixed + far) << "all work is done before the far part is there";
      },
      std::tuple<>(), 1);
}

/// Three cubes of two PEs, k over the PEs of each. PE 0 of the last one sums over the first half of k, of which cube 1
/// has the nearest columns of a; so does PE 1 of the first one, for the second half.
TEST(TpGemmBound, OfASplitKHasTheWayOfTheFirstOperandsTheWorkBehindItAndTheSums) {
  MachineRun host(machine_of(1, 3, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy columns = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
        const MachineMap& map = ctx.map();
        const PeEngines& e = map.rates({0, 0, 0}).engines;
        const Tensor a = ctx.zeros({8, 6000}, DType::f16, columns, "a"),
                     b = ctx.zeros({6000, 6}, DType::f16, tp::LinearPlacement::packed(), "b"),
                     c = ctx.zeros({8, 6}, DType::f16, tp::LinearPlacement::packed(), "c");
        const auto bound = [&](const char* mapping) {
          return tp::gemm_bound(map, {a, b, Tensor(), c, Activation::none}, tp::parse_gemm_mapping(mapping));
        };
        const Ps way = std::max(tp::one_way(map, {0, 1, 0}, {0, 2, 0}), tp::one_way(map, {0, 1, 1}, {0, 0, 1}));
        const Ps fixed = e.dispatch + tp::fill_and_drain(e) + tp::way_there_and_back(map, {0, 0, 0});
        const Ps message = tp::least_message(map, {0, 0, 0}, {0, 0, 1});
        const Ps sums = message + Clock(e.math_hz).at(2 * (e.math_fill + 1));  // an addition, and f16 of f32

        const tp::GemmBound at_once = bound("split:8x2x3000,rows=1,chains=1");
        EXPECT_EQ(at_once.spread, way);
        EXPECT_EQ(at_once.sums, sums);
        EXPECT_EQ(at_once.time, fixed + way + at_once.array + sums);
        EXPECT_EQ(at_once.latency, at_once.time - std::max(at_once.array, at_once.memory));
        // The last rows may be those of the PE that is last, which waits for no message then.
        EXPECT_EQ(bound("split:4x2x3000,rows=1,chains=1").sums, 0u);
        EXPECT_EQ(bound("stream").spread + bound("stream").sums, 0u);
      },
      std::tuple<>(), 1);
}

/// One row over columns that 112 PEs' arrays fold badly costs the array 32 rows' time, the math engine one's.
TEST(TpGemmPlanner, ChoosesTheLeastEstimateAndSaysOfWhat) {
  MachineRun host(machine_of(1, 2, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy columns = policy_of(CubeSplit::column_wise, PeSplit::column_wise);
        const auto plan = [&](std::int64_t m, std::int64_t n, std::int64_t k, const DPPolicy& of_a) {
          const tp::GemmOperands operands{ctx.empty({m, k}, DType::f16, of_a, "a"),
                                          ctx.empty({k, n}, DType::f16, columns, "b"), Tensor(),
                                          ctx.empty({m, n}, DType::f16, columns, "c"), Activation::none};
          const tp::GemmPlan made = tp::plan_gemm(ctx.map(), "g", operands);
          for (const tp::GemmCandidate& one : made.considered) EXPECT_GE(one.estimate.time, made.best.estimate.time);
          return made;
        };
        EXPECT_EQ(plan(1, 32, 4096, DPPolicy()).best.mapping.kind, tp::GemmMapping::Kind::vector);
        EXPECT_EQ(plan(256, 512, 1024, DPPolicy()).best.mapping.kind, tp::GemmMapping::Kind::stream);
        EXPECT_EQ(plan(256, 512, 1024, DPPolicy()).best.estimate.binds(), "array");
      },
      std::tuple<>(), 1);
}

/// A SIP of 16 cubes of 8 PEs.
topology::SystemSpec large_sip() {
  topology::SystemSpec spec = topology::small_machine(1, 4, 4);
  spec.cube.pes = 8;
  return spec;
}

/// Each of a cube's 8 PEs has 1792 rows of b. By whole parts of these all read from different slices, by others two
/// from one, for which 256 columns of b take twice as long and 64 rows of a do not.
TEST(TpGemmPlanner, StreamTakesStepsByWhichPesDoNotMeetAtOneSlice) {
  MachineRun host(large_sip());
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy packed = tp::LinearPlacement::packed();
        const tp::GemmOperands operands{ctx.empty({512, 14336}, DType::f16, {}, "a"),
                                        ctx.empty({14336, 4096}, DType::f16, packed, "b"), Tensor(),
                                        ctx.empty({512, 4096}, DType::f16, packed, "c"), Activation::none};
        const auto memory = [&](int step) {
          const std::string mapping = "stream:32x256x" + std::to_string(step) + ",rows=2,chains=1";
          return static_cast<double>(tp::plan_gemm(ctx.map(), "g", operands, mapping).best.estimate.memory);
        };
        EXPECT_NEAR(memory(1024) / memory(1792), (64 + 2 * 256.0) / (64 + 256.0), 0.001);
        const tp::GemmMapping best = tp::plan_gemm(ctx.map(), "g", operands, "stream").best.mapping;
        EXPECT_EQ(1792 % best.tile_k, 0) << best.str();
      },
      std::tuple<>(), 1);
}

/// As a column layer leaves a: the first whose estimate is least asks more of ports than one that takes as long.
TEST(TpGemmPlanner, OfNearKindsAnAFromAfarTakesTheOneThatHidesMost) {
  MachineRun host(large_sip());
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy packed = tp::LinearPlacement::packed();
        const auto plan = [&](const DPPolicy& of_a) {
          const tp::GemmOperands operands{ctx.empty({512, 7168}, DType::f16, of_a, "a"),
                                          ctx.empty({7168, 4096}, DType::f16, packed, "b"), Tensor(),
                                          ctx.empty({512, 4096}, DType::f16, packed, "c"), Activation::none};
          return tp::plan_gemm(ctx.map(), "g", operands);
        };
        const auto asked = [](const tp::GemmCandidate& one) {
          return std::max(one.estimate.memory, one.estimate.port);
        };
        const tp::GemmPlan near = plan({}), far = plan(packed);
        for (const tp::GemmCandidate& one : near.considered) EXPECT_LE(near.best.estimate.time, one.estimate.time);
        EXPECT_EQ(far.best.mapping.str(), far.considered.front().mapping.str());
        ASSERT_GE(far.considered.size(), 2U);
        EXPECT_LT(far.considered[1].estimate.time, far.best.estimate.time);
        EXPECT_LE(asked(far.best), asked(far.considered[1]));
        EXPECT_LE(static_cast<double>(far.best.estimate.time),
                  1.04 * static_cast<double>(far.considered[1].estimate.time));
      },
      std::tuple<>(), 1);
}

/// Rows that lie over the cubes are multiplied there, whether a cube's PEs hold columns or whole rows of the result:
/// half of b goes over each link of the ring once, less than what reads of it from everywhere put on the links.
/// Also where the 112 columns of a cube leave cells of the array idle, which the 224 of a PE would not.
TEST(TpGemmPlanner, BGoesRoundTheCubesWhereRowsStay) {
  MachineRun host(large_sip());
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy packed = tp::LinearPlacement::packed(), rows = tp::rows_over_cubes();
        for (const auto& [n, of_c] : {std::pair(1024, tp::rows_over_cubes()), std::pair(1024, tp::dense_rows()),
                                      std::pair(1792, tp::rows_over_cubes())}) {
          const tp::GemmOperands operands{ctx.empty({2048, 4096}, DType::f16, rows, "a"),
                                          ctx.empty({4096, n}, DType::f16, packed, "b"), Tensor(),
                                          ctx.empty({2048, n}, DType::f16, of_c, "c"), Activation::none};
          const tp::GemmPlan plan = tp::plan_gemm(ctx.map(), "g", operands);
          EXPECT_EQ(plan.best.mapping.kind, tp::GemmMapping::Kind::ring) << to_string(of_c);
          double rate = 0;
          for (const LinkBundle& link : ctx.map().cube_links) {
            if (link.a != kIoChiplet && link.b != kIoChiplet)
              rate = static_cast<double>(link.capacity.bytes_per_second());
          }
          EXPECT_EQ(plan.best.estimate.cut, static_cast<Ps>(4096.0 * n * 2 / 2 / rate * 1e12));
          for (const tp::GemmCandidate& one : plan.considered) {
            EXPECT_TRUE(one.mapping.kind == tp::GemmMapping::Kind::ring || one.estimate.cut > plan.best.estimate.cut);
            if (one.mapping.kind == tp::GemmMapping::Kind::stream) {  // b comes a step ahead: nothing hides its way
              EXPECT_GE(one.estimate.time, one.estimate.array + one.estimate.cut);
            }
          }
        }
      },
      std::tuple<>(), 1);
}

/// A lies over the cubes as the layer before leaves it, and PE i of every cube needs the parts of cubes 2i and 2i + 1.
/// Packets go E or W first, and N or S by the connection nearest to the column of their destination: the one of PE 0's
/// column out of a cube in the first row carries the parts of cubes 0 and 1 to the three cubes below.
TEST(TpGemmPlanner, LinksAreAsBusyAsTheirBusiestWire) {
  MachineRun host(large_sip());
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy packed = tp::LinearPlacement::packed();
        const std::int64_t m = 512, n = 512, k = 4096;
        const tp::GemmOperands operands{ctx.empty({m, k}, DType::f16, packed, "a"),
                                        ctx.empty({k, n}, DType::f16, packed, "b"), Tensor(),
                                        ctx.empty({m, n}, DType::f16, packed, "c"), Activation::none};
        double rate = 0;  // of one of four connections
        for (const LinkBundle& link : ctx.map().cube_links) {
          if (link.a != kIoChiplet && link.b != kIoChiplet)
            rate = static_cast<double>(link.capacity.bytes_per_second()) / 4;
        }
        const double part = static_cast<double>(m * (k / 16) * 2);
        const tp::GemmPlan split = tp::plan_gemm(ctx.map(), "g", operands, "split");
        constexpr double kWireShare = 0.6;  // gemm_estimate.cpp
        EXPECT_NEAR(static_cast<double>(split.best.estimate.cut), 6 * part / rate / kWireShare * 1e12, 1e4);
        EXPECT_EQ(tp::plan_gemm(ctx.map(), "g", operands).best.mapping.kind, tp::GemmMapping::Kind::stream);
      },
      std::tuple<>(), 1);
}

TEST(TpGemmPlanner, SaysWhereARingDoesNotServe) {
  MachineRun host(machine_of(1, 2, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const auto error = [&](std::int64_t n, const DPPolicy& of_b, const DPPolicy& of_c) {
          const tp::GemmOperands operands{ctx.empty({8, 64}, DType::f16, {}, "a"),
                                          ctx.empty({64, n}, DType::f16, of_b, "b"), Tensor(),
                                          ctx.empty({8, n}, DType::f16, of_c, "c"), Activation::none};
          return error_text([&] { tp::plan_gemm(ctx.map(), "g", operands, "ring"); });
        };
        const DPPolicy packed = tp::LinearPlacement::packed(), rows = tp::rows_over_cubes();
        EXPECT_EQ(error(32, packed, rows), "nothing was thrown");
        for (const std::string& text :
             {error(32, packed, rows.pe(PeSplit::replicate)), error(32, packed, packed), error(1, packed, rows),
              error(32, tp::LinearPlacement::split(), rows), error(32, DPPolicy().pe(PeSplit::row_wise), rows)}) {
          EXPECT_EQ(text,
                    "gemm 'g': mapping ring does not serve these operands: all cubes have to hold columns of b and "
                    "rows of the result, cut alike over their PEs");
        }
      },
      std::tuple<>(), 1);
}

/// Four blocks of rows, two steps: 8 loads of a, 2 of b, which is kept, 8 products, 4 casts and stores, and a zero.
TEST(TpGemmKernel, AllSumsBeginWithTheSameZeros) {
  OpCounter counter;
  MachineRun host(machine_of(1, 1, 1), {}, &counter);
  host.runtime.spawn(
      [&](Context& ctx) {
        const tp::GemmOperands operands{ctx.zeros({128, 128}, DType::f16, {}, "a"),
                                        ctx.zeros({128, 32}, DType::f16, {}, "b"), Tensor(),
                                        ctx.zeros({128, 32}, DType::f16, {}, "c"), Activation::none};
        const tp::GemmPlan plan = tp::plan_gemm(ctx.map(), "g", operands, "stream:32x32x64,rows=1,chains=1");
        ctx.wait(tp::gemm(ctx, "g", operands, plan));
      },
      std::tuple<>(), 1);
  EXPECT_EQ(counter.ops["g"], 27U);
}

TEST(TpGemmPlanner, SaysWhyLanesDoNotServe) {
  MachineRun host(machine_of(1, 2, 2));
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy packed = tp::LinearPlacement::packed(), columns = tp::LinearPlacement::split();
        const auto error = [&](std::int64_t m, const DPPolicy& policy) {
          const tp::GemmOperands operands{ctx.empty({m, 64}, DType::f16, {}, "a"),
                                          ctx.empty({64, 32}, DType::f16, policy, "b"), Tensor(),
                                          ctx.empty({m, 32}, DType::f16, policy, "c"), Activation::none};
          return error_text([&] { tp::plan_gemm(ctx.map(), "g", operands, "lanes"); });
        };
        EXPECT_EQ(error(8, packed), "nothing was thrown");
        EXPECT_EQ(error(9, packed),
                  "gemm 'g': mapping lanes makes at most 8 rows of a cube's result one by one; these have 9");
        EXPECT_EQ(
            error(8, columns),
            "gemm 'g': mapping lanes does not serve these operands: the PEs of a cube have to hold different rows "
            "of b, and the same columns of b and of the result");
      },
      std::tuple<>(), 1);
}

/// 50 ms of CPU a shape, at a SIP's full size: 16 cubes of 8 PEs; shapes of language models, whole and as 8 ranks share
/// them, few rows and many, operands as layers leave them.
TEST(TpGemmPlanner, TakesAtMost50MsAShape) {
  MachineRun host(large_sip());
  host.runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy packed = tp::LinearPlacement::packed(), split = tp::LinearPlacement::split();
        double longest = 0;
        for (const auto& [n, k] : {std::pair(14336, 4096), std::pair(512, 4096), std::pair(4096, 1792)}) {
          for (const int m : {1, 128, 2048}) {
            for (const auto& [a, bc] :
                 {std::pair(DPPolicy(), packed), std::pair(packed, packed), std::pair(split, split)}) {
              const tp::GemmOperands operands{ctx.empty({m, k}, DType::f16, a, "a"),
                                              ctx.empty({k, n}, DType::f16, bc, "b"), Tensor(),
                                              ctx.empty({m, n}, DType::f16, bc, "c"), Activation::none};
              const std::clock_t before = std::clock();
              tp::plan_gemm(ctx.map(), "g", operands);
              longest = std::max(longest, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
            }
          }
        }
        RecordProperty("longest_us", static_cast<int>(longest * 1e6));
        EXPECT_LE(longest, 0.050);
      },
      std::tuple<>(), 1);
}

}  // namespace
}  // namespace kernbench::testing
