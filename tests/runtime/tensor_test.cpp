#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tests/runtime/host_run.h"
#include "tests/support/in_copy.h"

namespace kernbench::testing {
namespace {

std::vector<double> ramp(std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

/// Free bytes of every slice, in the order of (sip, cube, PE).
std::vector<std::uint64_t> free_bytes(const HostRun& host) {
  std::vector<std::uint64_t> list;
  for (std::uint16_t sip = 0; sip < host.machine.map().sips; ++sip) {
    for (const PeCoord pe : host.machine.map().pes(sip)) list.push_back(host.runtime.free_bytes(pe));
  }
  return list;
}
using FreeBytes = std::vector<std::uint64_t>;

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Tensor, ComesBackAsWrittenUnderEveryPolicy) {
  HostRun host({2, 2, 1, 4, 1 << 20});
  int checked = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        for (const CubeSplit cube : {CubeSplit::replicate, CubeSplit::column_wise, CubeSplit::row_wise}) {
          for (const PeSplit pe : {PeSplit::replicate, PeSplit::column_wise, PeSplit::row_wise,
                                   PeSplit::tiled_column_major, PeSplit::tiled_row_major}) {
            for (const Shape shape : {Shape{1, 1}, Shape{1, 13}, Shape{13, 1}, Shape{7, 9}, Shape{16, 32}}) {
              const DPPolicy policy = DPPolicy().cube(cube).pe(pe);
              const std::vector<double> values = ramp(shape.count());
              const Tensor tensor = ctx.from_host(values, shape, DType::f16, policy, "t");
              EXPECT_EQ(tensor.to_host(), values);
              for (std::size_t copy = 1; copy < tensor.copies(); ++copy) {
                EXPECT_EQ(tensor.bytes_to_host(copy), tensor.bytes_to_host(0));
              }
              EXPECT_EQ(tensor.at(shape.rows - 1, shape.cols - 1), values.back());
              for (const ShardSpec& shard : tensor.shards()) EXPECT_EQ(shard.sip, ctx.rank());
              ++checked;
            }
          }
        }
      },
      2);
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(checked, 2 * 3 * 5 * 5);
  EXPECT_EQ(host.machine.pool().outstanding(), 0u);
}

TEST(Tensor, HasOneCopyPerReplica) {
  HostRun host({1, 2, 1, 4, 1 << 20});
  host.run(
      [&](Context& ctx) {
        DPPolicy policy;
        EXPECT_EQ(ctx.zeros({4, 8}, DType::f16, policy, "t").copies(), 8u);
        policy = policy.cube(CubeSplit::row_wise);
        EXPECT_EQ(ctx.zeros({4, 8}, DType::f16, policy, "t").copies(), 4u);
        policy = policy.pe(PeSplit::column_wise);
        EXPECT_EQ(ctx.zeros({4, 8}, DType::f16, policy, "t").copies(), 1u);
      },
      1);
}

TEST(Tensor, EachPeSeesItsOwnCopyAndEverySharedRange) {
  HostRun host({1, 2, 1, 2, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const Tensor replicated = ctx.zeros({1, 8}, DType::f16, {}, "r");
        const PageTable& pages = host.machine.pages(0);
        for (std::size_t i = 0; i < replicated.shards().size(); ++i) {
          const ShardSpec& shard = replicated.shards()[i];
          const PeCoord owner{0, static_cast<std::uint16_t>(shard.cube), static_cast<std::uint16_t>(shard.pe)};
          ASSERT_TRUE(pages.translate(replicated.va(), owner).has_value());
          EXPECT_EQ(pages.translate(replicated.va(), owner)->target, replicated.pa(i));
        }
        const DPPolicy split = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
        const Tensor sharded = ctx.zeros({1, 8}, DType::f16, split, "s");
        for (std::size_t i = 0; i < sharded.shards().size(); ++i) {
          for (const PeCoord viewer : ctx.map().pes(0)) {
            const auto seen = pages.translate(sharded.va() + sharded.shards()[i].offset_bytes, viewer);
            ASSERT_TRUE(seen.has_value());
            EXPECT_EQ(seen->target, sharded.pa(i));
            EXPECT_EQ(seen->bytes, 4u);  // byte-exact, smaller than any page
          }
        }
        const DPPolicy between = DPPolicy().pe(
            PeSplit::column_wise);  // a copy per cube, split over its PEs: a PE sees the copy of its own cube
        const Tensor mixed = ctx.zeros({1, 8}, DType::f16, between, "m");
        for (std::uint16_t cube = 0; cube < 2; ++cube) {
          for (std::uint16_t pe = 0; pe < 2; ++pe) {
            const auto seen = pages.translate(mixed.va() + mixed.shards()[1].offset_bytes, {0, cube, pe});
            EXPECT_EQ(seen->target, mixed.pa(cube * 2u + 1));
          }
        }
        const DPPolicy first = DPPolicy().cubes(1);  // only the first cube holds it: the others see that copy
        const Tensor one = ctx.zeros({1, 8}, DType::f16, first, "o");
        EXPECT_EQ(pages.translate(one.va(), {0, 1, 1})->target, one.pa(0));
      },
      1);
}

TEST(Tensor, CreationTakesTheTimeOfItsMapMessage) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
        EXPECT_GT(ctx.now(), 2 * host.machine.pcie_config().latency);
        const Ps now = ctx.now();
        EXPECT_EQ(tensor.shape(), (Shape{1, 8}));
        EXPECT_EQ(tensor.bytes(), 16u);
        tensor.to_host();
        EXPECT_EQ(ctx.now(), now);  // nothing pending, untimed
      },
      1);
}

TEST(Tensor, ReadsWaitForWhatIsPendingOnItsSip) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  host.machine.effect = [&](PeCoord pe, const LaunchMessage& launch) {
    const float value = 42;
    const auto target = host.machine.pages(pe.sip).translate(launch.tensors.at(0).base, pe)->target;
    host.machine.write(target, &value, sizeof value);
  };
  Tensor shared;
  int reads = 0;
  const auto outcome = host.run(
      [&](Context& ctx) {
        if (ctx.rank() == 0) {
          shared = ctx.zeros({1, 1}, DType::f32, {}, "t");
          const std::array<std::function<double()>, 4> entry_points = {
              [&] { return shared.to_host()[0]; }, [&] { return shared.data()[0]; }, [&] { return shared.at(0, 0); },
              [&] { return shared(0, 0); }};
          for (const auto& read : entry_points) {
            shared.write_bytes({0, 0, 0, 0});
            const Handle handle = ctx.launch_async("store", kNoBodyOf, shared);
            EXPECT_EQ(shared.shape().count(), 1);
            EXPECT_FALSE(handle.done());
            EXPECT_EQ(read(), 42);
            EXPECT_TRUE(handle.done());
            ++reads;
          }
          const Handle handle = ctx.launch_async("store", kNoBodyOf, shared);
          shared.write_bytes({0, 0, 0, 0});  // overwrites what the launch stored
          EXPECT_TRUE(handle.done());
          EXPECT_EQ(shared.at(0, 0), 0);
          ctx.launch_async("store", kNoBodyOf, shared);
          ctx.barrier();
        } else {
          ctx.barrier();
          Tensor copy = ctx.zeros({1, 1}, DType::f32, {}, "copy");
          copy.copy_from(shared);  // rank 0's tensor, with rank 0's launch pending or done
          EXPECT_EQ(copy.at(0, 0), 42);
          ++reads;
        }
      },
      2);
  EXPECT_TRUE(outcome.finished) << (outcome.failures.empty() ? "" : "failed");
  EXPECT_EQ(reads, 5);
}

TEST(Tensor, FreeingReturnsMemoryAndUnmaps) {
  HostRun host({1, 1, 1, 2, 4096});
  host.run(
      [&](Context& ctx) {
        const FreeBytes all{4096, 4096};
        Va old = 0;
        for (int i = 0; i < 20; ++i) {  // more than fits at once
          EXPECT_EQ(free_bytes(host), all);
          const Tensor tensor = ctx.full(1, {1, 1024}, DType::f16, {}, "t");
          EXPECT_EQ(free_bytes(host), (FreeBytes{2048, 2048})) << "a copy in each slice";
          EXPECT_NE(tensor.va(), old);
          old = tensor.va();
        }
        EXPECT_EQ(free_bytes(host), all);
        const Tensor zero = ctx.zeros({1, 1024}, DType::f16, {}, "z");  // in memory that held ones
        EXPECT_EQ(zero.at(0, 5), 0);
        EXPECT_FALSE(host.machine.pages(0).translate(old, {0, 0, 0}).has_value());
      },
      1);
  EXPECT_EQ(free_bytes(host), (FreeBytes{4096, 4096})) << "the program has ended, and its tensors with it";
}

TEST(Tensor, EachShardTakesItsGrainsOfItsOwnSliceUntilItIsFreed) {
  HostRun host({2, 2, 1, 2, 4096});
  const FreeBytes all(8, 4096);
  host.run(
      [&](Context& ctx) {
        if (ctx.rank() == 0) return;
        DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
        EXPECT_EQ(free_bytes(host), all);
        {
          // 225 columns of 8 B: one PE has 57 of them, three have 56; two grains of 256 B each.
          Tensor tensor = ctx.zeros({1, 225}, DType::f64, policy, "t");
          EXPECT_EQ(free_bytes(host), (FreeBytes{4096, 4096, 4096, 4096, 3584, 3584, 3584, 3584}));
          {
            policy = policy.cubes(1);
            const Tensor first =
                ctx.zeros({1, 65}, DType::f64, policy, "first");  // 33 and 32 columns: two grains, and one
            EXPECT_EQ(free_bytes(host), (FreeBytes{4096, 4096, 4096, 4096, 3072, 3328, 3584, 3584}));
          }
          EXPECT_EQ(free_bytes(host), (FreeBytes{4096, 4096, 4096, 4096, 3584, 3584, 3584, 3584}));
          tensor.free();
          EXPECT_EQ(free_bytes(host), all) << "at once, though a handle is left";
        }
        EXPECT_EQ(free_bytes(host), all) << "and once only";
      },
      2);
  EXPECT_EQ(free_bytes(host), all);
}

TEST(Tensor, ThatDoesNotFitOnOnePeKeepsNothingOfTheOthers) {
  HostRun host({1, 1, 1, 2, 4096});
  host.run(
      [&](Context& ctx) {
        const DPPolicy first = DPPolicy().pe(PeSplit::column_wise);  // one column: PE 0 alone
        Tensor low = ctx.zeros({1, 64}, DType::f64, {}, "low");  // 512 B, a copy on each PE as where nothing is said
        Tensor more = ctx.zeros({1, 1}, DType::f64, first, "more");
        const Tensor wall = ctx.zeros({1, 32}, DType::f64, {}, "wall");
        low.free();
        more.free();
        const Tensor rest = ctx.zeros({1, 384}, DType::f64, {}, "rest");
        // PE 0 has a hole of 768 B, PE 1 holes of 512 and 256 B.
        EXPECT_EQ(free_bytes(host), (FreeBytes{768, 768}));
        EXPECT_THROW(ctx.zeros({1, 96}, DType::f64, {}, "large"), OutOfDeviceMemory);
        EXPECT_EQ(free_bytes(host), (FreeBytes{768, 768}));
        EXPECT_NO_THROW(ctx.zeros({1, 64}, DType::f64, {}, "small"));
      },
      1);
}

TEST(Tensor, IsKeptWhileALaunchUsesIt) {
  HostRun host({1, 1, 1, 1, 4096});
  bool mapped = false;
  host.machine.effect = [&](PeCoord pe, const LaunchMessage& launch) {
    mapped = host.machine.pages(0).translate(launch.tensors.at(0).base, pe).has_value();
  };
  host.run(
      [&](Context& ctx) {
        Handle handle;
        {
          const Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "t");
          handle = ctx.launch_async("work", kNoBodyOf, tensor);
        }
        EXPECT_EQ(free_bytes(host), FreeBytes{4096 - 256}) << "the launch holds it";
        ctx.wait(handle);
        EXPECT_EQ(free_bytes(host), FreeBytes{4096});
      },
      1);
  EXPECT_TRUE(mapped);
}

TEST(Tensor, MisuseIsNamed) {
  HostRun host({1, 1, 1, 1, 4096});
  host.run(
      [&](Context& ctx) {
        Tensor tensor = ctx.zeros({1, 8}, DType::f16, {}, "weights");
        EXPECT_EQ(error_of([&] { tensor.write_bytes({1, 2}); }), "tensor 'weights' has 16 bytes, the data 2");
        EXPECT_EQ(error_of([&] { tensor.at(0, 8); }), "tensor 'weights': element (0, 8) is outside of 1x8");
        EXPECT_EQ(error_of([&] { tensor.bytes_to_host(1); }), "tensor 'weights': copy 1 does not exist: give 0 to 0");
        EXPECT_EQ(error_of([&] {
                    ctx.zeros({0, 8}, DType::f16, {}, "none");
                  }),
                  "tensor 'none': shape 0x8 is empty: give at least 1x1");
        EXPECT_EQ(error_of([&] {
                    ctx.from_host({1, 2, 3}, {1, 2}, DType::f16, {}, "short");
                  }),
                  "tensor 'short': 1x2 f16 has 4 bytes, the data 6");
        const DPPolicy policy = DPPolicy().pes(4);
        EXPECT_EQ(error_of([&] {
                    ctx.zeros({1, 8}, DType::f16, policy, "p");
                  }),
                  "tensor 'p': policy.num_pes is 4: give 1 to 1");
        EXPECT_THROW(ctx.zeros({1, 4096}, DType::f16, {}, "large"), OutOfDeviceMemory);
        // Before any of it: no computer has so much.
        EXPECT_THROW(ctx.full(1, {1 << 20, 1 << 20}, DType::f64, {}, "huge"), OutOfDeviceMemory);
        EXPECT_THROW(ctx.zeros({1 << 20, 1 << 20}, DType::f64, {}, "huge"), OutOfDeviceMemory);
        const Tensor other = ctx.zeros({1, 4}, DType::f16, {}, "other");
        EXPECT_EQ(error_of([&] { tensor.copy_from(other); }),
                  "copy from tensor 'other' (1x4 f16) to tensor 'weights' (1x8 f16): shapes or dtypes differ");
        tensor.free();
        EXPECT_EQ(error_of([&] { tensor.free(); }), "tensor 'weights' is freed twice");
        EXPECT_EQ(error_of([&] { tensor.to_host(); }), "tensor 'weights' is used after it was freed");
        EXPECT_EQ(error_of([&] { ctx.launch_async("k", kNoBodyOf, tensor); }),
                  "launch 'k': tensor 'weights' is used after it was freed");
      },
      1);
}

/// Instants of a program that makes, launches on, reads, copies and frees tensors.
std::vector<Ps> tensor_times(bool data) {
  RunOptions options;
  options.data = data;
  HostRun host({1, 2, 1, 2, 1 << 20}, options);
  std::vector<Ps> times;
  host.run(
      [&](Context& ctx) {
        const DPPolicy policy = DPPolicy().pe(PeSplit::column_wise);
        const Tensor tensor = ctx.full(3, {4, 8}, DType::f16, policy, "t");
        times.push_back(ctx.now());
        EXPECT_EQ(tensor.to_host(), std::vector<double>(32, data ? 3.0 : 0.0));
        times.push_back(ctx.now());
        ctx.launch("work", kNoBodyOf, tensor);
        times.push_back(ctx.now());
        Tensor copy = ctx.zeros({4, 8}, DType::f16, policy, "copy");
        times.push_back(ctx.now());
        copy.copy_from(tensor);
        copy.free();
        ctx.launch("work", kNoBodyOf, tensor);  // behind the unmapping, in its stream
        times.push_back(ctx.now());
      },
      1);
  return times;
}

TEST(Tensor, WithoutDataTakesTheSameTime) {
  const std::vector<Ps> with = in_copy([] { return tensor_times(true); });
  ASSERT_EQ(with.size(), 5u);
  EXPECT_GT(with.front(), 0u);
  EXPECT_LT(with[3], with[4]);
  EXPECT_EQ(tensor_times(false), with);
}

TEST(Tensor, RandnIsTheSameForTheSameSeed) {
  HostRun host({1, 1, 1, 1, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const auto a = ctx.randn(7, {10, 100}, DType::f32, {}, "a").to_host();
        EXPECT_EQ(a, ctx.randn(7, {10, 100}, DType::f32, {}, "b").to_host());
        EXPECT_NE(a, ctx.randn(8, {10, 100}, DType::f32, {}, "c").to_host());
        double sum = 0, squares = 0;
        for (const double v : a) {
          sum += v;
          squares += v * v;
        }
        EXPECT_NEAR(sum / 1000, 0, 0.15);
        EXPECT_NEAR(squares / 1000, 1, 0.15);
      },
      1);
}

TEST(Tensor, EveryDtypeRoundsToNearestEven) {
  // Two ties between neighbours of each type: one goes down, one up, to the even neighbour; and an exact value.
  const std::map<DType, std::array<std::pair<double, double>, 3>> cases = {
      {DType::f64, {{{0.1, 0.1}, {0x1p53 + 1, 0x1p53}, {-3, -3}}}},
      {DType::f32, {{{16777217, 16777216}, {16777219, 16777220}, {0.5, 0.5}}}},
      {DType::f16, {{{2049, 2048}, {2051, 2052}, {-1.5, -1.5}}}},
      {DType::bf16, {{{257, 256}, {259, 260}, {-1.5, -1.5}}}},
      {DType::f8e4m3, {{{17, 16}, {19, 20}, {-1.5, -1.5}}}},
      {DType::f8e5m2, {{{9, 8}, {11, 12}, {-1.5, -1.5}}}},
      {DType::i64, {{{2.5, 2}, {3.5, 4}, {-7, -7}}}},
      {DType::i32, {{{2.5, 2}, {3.5, 4}, {1e12, 2147483647}}}},
      {DType::i16, {{{2.5, 2}, {3.5, 4}, {-1e6, -32768}}}},
      {DType::i8, {{{2.5, 2}, {3.5, 4}, {300, 127}}}},
      {DType::boolean, {{{0, 0}, {2, 1}, {1, 1}}}}};
  ASSERT_EQ(cases.size(), static_cast<std::size_t>(kDTypes));
  HostRun host({1, 1, 1, 2, 1 << 20});
  host.run(
      [&](Context& ctx) {
        for (const auto& [dtype, values] : cases) {
          std::vector<double> given, expected;
          for (const auto& [value, rounded] : values) {
            given.push_back(value);
            expected.push_back(rounded);
          }
          EXPECT_EQ(ctx.from_host(given, {1, 3}, dtype, {}, "t").to_host(), expected) << to_string(dtype);
        }
      },
      1);
}

TEST(Tensor, PrintsItsNameShapeTypeAndContents) {
  HostRun host({1, 1, 1, 2, 1 << 20});
  host.run(
      [&](Context& ctx) {
        const Tensor t = ctx.from_host({1, 2, 3, 4.5}, {2, 2}, DType::f16, {}, "t");
        EXPECT_EQ(to_string(t), "t (2x2 f16): [1, 2; 3, 4.5]");
        const Tensor wide = ctx.zeros({1, 9}, DType::i8, {}, "w");
        EXPECT_EQ(to_string(wide), "w (1x9 i8): [0, 0, 0, 0, 0, 0, 0, 0, ...]");
      },
      1);
}

TEST(Tensor, UnderSpawnEveryShardIsOnItsRanksSip) {
  HostRun host({4, 2, 1, 2, 1 << 20});
  int checked = 0;
  host.run(
      [&](Context& ctx) {
        const DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
        const Tensor tensor = ctx.zeros({1, 128}, DType::f16, policy, "t");
        for (const ShardSpec& shard : tensor.shards()) {
          EXPECT_EQ(shard.sip, ctx.rank());
          ++checked;
        }
      },
      4);
  EXPECT_EQ(checked, 4 * 4);
}

TEST(Tensor, WithoutADeviceGoesToSip0AndDebugSaysSo) {
  RunOptions options;
  options.debug = true;
  HostRun host({2, 1, 1, 1, 1 << 20}, options);
  ::testing::internal::CaptureStderr();
  host.runtime.drive([](Context& ctx) {
    EXPECT_EQ(ctx.zeros({1, 8}, DType::f16, {}, "first").sip(), 0);
    ctx.set_device(1);
    EXPECT_EQ(ctx.zeros({1, 8}, DType::f16, {}, "second").sip(), 1);
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "kernbench: warning: tensor 'first' of rank 0 goes to sip0, for no current device is set: set_device(rank) "
            "was probably forgotten\n");
}

TEST(Tensor, TheEnvironmentAsksForDebugWarningsToo) {
  setenv("KERNBENCH_DEBUG", "1", 1);
  HostRun host({2, 1, 1, 1, 1 << 20});
  ::testing::internal::CaptureStderr();
  host.runtime.drive([](Context& ctx) { ctx.zeros({1, 8}, DType::f16, {}, "t"); });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("set_device(rank) was probably forgotten"),
            std::string::npos);
}

TEST(Tensor, WithoutDebugTheFallbackIsSilent) {
  HostRun host({2, 1, 1, 1, 1 << 20});
  ::testing::internal::CaptureStderr();
  host.runtime.drive([](Context& ctx) { EXPECT_EQ(ctx.zeros({1, 8}, DType::f16, {}, "t").sip(), 0); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Tensor, FreeingReturnsExactlyTheBytesOfEachShard) {
  HostRun host({1, 2, 1, 2, 4096});
  const FreeBytes all(4, 4096);
  host.run(
      [&](Context& ctx) {
        const DPPolicy policy = DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::column_wise);
        for (int i = 0; i < 50; ++i) {  // uneven shards, one of them empty, filling what there is
          Tensor fill = ctx.zeros({3, 1}, DType::f64, policy, "fill");
          EXPECT_EQ(free_bytes(host), (FreeBytes{4096 - 256, 4096, 4096 - 256, 4096})) << "2 rows, and 1";
          Tensor most = ctx.zeros({2, 900}, DType::f64, policy, "most");  // 3600 of 4096 B a PE
          EXPECT_EQ(free_bytes(host), (FreeBytes{0, 256, 0, 256}));
          most.free();
          EXPECT_EQ(free_bytes(host), (FreeBytes{4096 - 256, 4096, 4096 - 256, 4096}));
          fill.free();
          EXPECT_EQ(free_bytes(host), all);
        }
        EXPECT_NO_THROW(ctx.zeros({2, 1024}, DType::f64, policy, "all"));
      },
      1);
  EXPECT_EQ(free_bytes(host), all);
}

}  // namespace
}  // namespace kernbench::testing
