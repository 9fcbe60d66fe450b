#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ccl/run/call_program.h"
#include "tests/runtime/machine_run.h"

/// What the runtime makes of collectives on the whole machine; every element is compared.
namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;

ProcessGroupOptions automatic() { return {}; }

/// A value of its own for every (rank, element); sums over 4 ranks stay exact in i32.
double value(int rank, std::int64_t element) { return 1000 * (rank + 1) + static_cast<double>(element); }

std::vector<double> values(int rank, std::int64_t count) {
  std::vector<double> list(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = value(rank, static_cast<std::int64_t>(i));
  return list;
}

class Collectives : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  static constexpr int kRanks = 3;
  static constexpr std::int64_t kCount = 37;  // divides by nothing

  void run(std::function<void(Context&)> body, int ranks = kRanks) {
    MachineRun host(machine_of(static_cast<std::uint16_t>(ranks), 2, 2), scheduled(GetParam()));
    int ended = 0;
    host.runtime.spawn(
        [&](Context& ctx) {
          ctx.init_process_group(automatic());
          body(ctx);
          ++ended;
        },
        std::tuple<>(), ranks);
    EXPECT_EQ(ended, ranks);
    EXPECT_EQ(host.machine.pool().outstanding(), 0u);
  }
  static Tensor own(Context& ctx, std::int64_t count = kCount) {
    return ctx.from_host(values(ctx.rank(), count), {1, count}, DType::i32, spread(), "in");
  }
  static Tensor blank(Context& ctx, std::int64_t count = kCount) {
    return ctx.full(-1, {1, count}, DType::i32, spread(), "out");
  }
  static double sum(std::int64_t element) {
    double total = 0;
    for (int rank = 0; rank < kRanks; ++rank) total += value(rank, element);
    return total;
  }
};
INSTANTIATE_TEST_SUITE_P(Runtime, Collectives, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return std::string(info.param == SchedulingKind::rounds ? "rounds" : "concurrent");
                         });

TEST_P(Collectives, AllReduceOutOfPlaceLeavesTheInput) {
  run([](Context& ctx) {
    const Tensor in = own(ctx), out = blank(ctx);
    ctx.all_reduce(in, out);
    EXPECT_EQ(in.to_host(), values(ctx.rank(), kCount));
    for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out.at(0, i), sum(i));
  });
}

/// Groups of the same ranks have queues of their own: of two groups one is prepared.
TEST_P(Collectives, PreparationInstallsWhatTheFirstCallWouldInstall) {
  run([](Context& ctx) {
    ProcessGroupOptions named = ring_algorithm();
    named.install_at_once = false;
    for (const ProcessGroupOptions& options : {automatic(), named}) {
      std::vector<Ps> starts;  // of each call, from its submission to its kernels' start
      for (const bool prepared : {false, true}) {
        const Group group = ctx.new_group({0, 1, 2}, options);
        const Tensor t = ctx.full(ctx.rank() + 1, {1, kCount}, DType::i32, spread(), "t");
        if (prepared) {
          ctx.prepare_all_reduce(t, t, ReduceOp::sum, group);
          EXPECT_EQ(t.at(0, kCount - 1), ctx.rank() + 1) << "nothing has moved";
          const Ps before = ctx.now();
          ctx.prepare_all_reduce(t, t, ReduceOp::sum, group);
          EXPECT_EQ(ctx.now(), before) << "there is nothing left to do";
        }
        for (const double expected : {6, 18}) {
          ctx.barrier();
          const Handle handle = ctx.all_reduce(t, ReduceOp::sum, group);
          EXPECT_EQ(t.at(0, kCount - 1), expected);
          starts.push_back(handle.kernel_start() - handle.submitted());
        }
      }
      EXPECT_GT(starts[0], starts[1] + 100'000) << "the tables, ps";
      EXPECT_LT(starts[2], starts[3] + 100'000);
    }
  });
}

TEST_P(Collectives, AllGatherPutsBlocksInOrderOfRank) {
  run([](Context& ctx) {
    const Tensor in = own(ctx), out = blank(ctx, kRanks * kCount);
    ctx.all_gather(in, out);
    for (int rank = 0; rank < kRanks; ++rank) {
      for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out.at(0, rank * kCount + i), value(rank, i));
    }
  });
}

TEST_P(Collectives, AllGatherOfColumnsSetsBlocksSideBySide) {
  run([](Context& ctx) {
    const Shape own{4, 5}, whole{4, kRanks * 5};  // blocks end within a PE's columns, and within copies' rows
    const Tensor in = ctx.from_host(values(ctx.rank(), own.count()), own, DType::i32, spread(), "in");
    for (const DPPolicy& policy : {spread(), DPPolicy()}) {
      const Tensor out = ctx.full(-1, whole, DType::i32, policy, "out");
      ctx.all_gather_columns(in, out);
      for (std::int64_t row = 0; row < own.rows; ++row) {
        for (std::int64_t col = 0; col < whole.cols; ++col) {
          ASSERT_EQ(out.at(row, col), value(static_cast<int>(col / own.cols), row * own.cols + col % own.cols));
        }
      }
    }
  });
}

TEST_P(Collectives, AllGatherInPlaceTakesTheOwnBlock) {
  run([](Context& ctx) {
    const Tensor both = own(ctx, kRanks * kCount);
    ctx.all_gather(both, both);
    for (int rank = 0; rank < kRanks; ++rank) {
      for (std::int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(both.at(0, rank * kCount + i), value(rank, rank * kCount + i));
      }
    }
  });
}

TEST_P(Collectives, ReduceScatterGivesEachRankItsBlock) {
  run([](Context& ctx) {
    const Tensor in = own(ctx, kRanks * kCount), out = blank(ctx);
    ctx.reduce_scatter(in, out);
    for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out.at(0, i), sum(ctx.rank() * kCount + i));
  });
}

TEST_P(Collectives, ReduceScatterInPlaceLeavesOtherBlocks) {
  run([](Context& ctx) {
    const Tensor both = own(ctx, kRanks * kCount);
    ctx.reduce_scatter(both, both);
    for (std::int64_t i = 0; i < kRanks * kCount; ++i) {
      ASSERT_EQ(both.at(0, i), i / kCount == ctx.rank() ? sum(i) : value(ctx.rank(), i));
    }
  });
}

TEST_P(Collectives, ReduceWritesTheRootOnly) {
  run([](Context& ctx) {
    const Tensor both = own(ctx);
    ctx.reduce(both, both, 1);
    for (std::int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(both.at(0, i), ctx.rank() == 1 ? sum(i) : value(ctx.rank(), i));
    }
    const Tensor in = own(ctx), out = ctx.rank() == 2 ? blank(ctx) : Tensor();
    ctx.reduce(in, out, 2, ReduceOp::max);
    if (!out) return;
    for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out.at(0, i), value(kRanks - 1, i));
  });
}

TEST_P(Collectives, BroadcastGivesAllTheRootsData) {
  run([](Context& ctx) {
    const Tensor both = own(ctx);
    ctx.broadcast(both, 2);
    EXPECT_EQ(both.to_host(), values(2, kCount));
    const Tensor in = ctx.rank() == 1 ? own(ctx) : Tensor(), out = blank(ctx);
    ctx.broadcast(in, out, 1);
    EXPECT_EQ(out.to_host(), values(1, kCount));
  });
}

TEST_P(Collectives, AllToAllTransposesBlocks) {
  run([](Context& ctx) {
    const Tensor in = own(ctx, kRanks * kCount), out = blank(ctx, kRanks * kCount);
    ctx.all_to_all(in, out);
    for (int from = 0; from < kRanks; ++from) {
      for (std::int64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(out.at(0, from * kCount + i), value(from, ctx.rank() * kCount + i));
      }
    }
  });
}

TEST_P(Collectives, GatherAndScatterAreEachOthersReverse) {
  run([](Context& ctx) {
    constexpr int kRoot = 1;
    const Tensor in = own(ctx), whole = ctx.rank() == kRoot ? blank(ctx, kRanks * kCount) : Tensor();
    ctx.gather(in, whole, kRoot);
    if (whole) {
      for (std::int64_t i = 0; i < kRanks * kCount; ++i) {
        ASSERT_EQ(whole.at(0, i), value(static_cast<int>(i / kCount), i % kCount));
      }
    }
    const Tensor back = blank(ctx);
    ctx.scatter(whole, back, kRoot);
    EXPECT_EQ(back.to_host(), values(ctx.rank(), kCount));
  });
}

TEST_P(Collectives, AFormSaysHowTheRootsTensorLies) {
  run([](Context& ctx) {
    const DPPolicy rows = DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::replicate);
    const Shape shape{kRanks, kCount};
    const Tensor in = own(ctx), out = ctx.rank() == 0 ? ctx.full(-1, shape, DType::i32, rows, "out") : Tensor();
    ctx.gather(in, out, 0, {}, TensorForm{shape, rows});
    if (!out) return;
    for (int rank = 0; rank < kRanks; ++rank) {
      for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(out.at(rank, i), value(rank, i));
    }
  });
}

TEST_P(Collectives, ShiftGoesRoundAndBack) {
  run([](Context& ctx) {
    const Tensor in = own(ctx), out = blank(ctx), home = blank(ctx);
    ctx.shift(in, out, 1);
    EXPECT_EQ(out.to_host(), values((ctx.rank() + kRanks - 1) % kRanks, kCount));
    ctx.shift(out, home, -1);
    EXPECT_EQ(home.to_host(), values(ctx.rank(), kCount));
  });
}

TEST_P(Collectives, TransfersConcernTwoMembersAlone) {
  run([](Context& ctx) {
    const Tensor in = own(ctx), out = blank(ctx);
    if (ctx.rank() == 0) {
      ctx.send(in, 2);
      ctx.recv(out, 2);
      EXPECT_EQ(out.to_host(), values(2, kCount));
    } else if (ctx.rank() == 2) {
      ctx.recv(out, 0);
      EXPECT_EQ(out.to_host(), values(0, kCount));
      ctx.send(in, 0);
    }
    ctx.all_reduce(in);
    for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(in.at(0, i), sum(i));
  });
}

TEST_P(Collectives, SeveralAreInFlightAndKeepTheirOrder) {
  run([](Context& ctx) {
    const Tensor a = own(ctx), b = own(ctx), gathered = blank(ctx, kRanks * kCount), out = blank(ctx);
    std::vector<Handle> handles;
    handles.push_back(ctx.all_reduce_async(a));
    handles.push_back(ctx.all_gather_async(a, gathered));  // of what the first one leaves
    handles.push_back(ctx.all_reduce_async(b, ReduceOp::max));
    handles.push_back(ctx.reduce_scatter_async(gathered, out));
    for (auto handle = handles.rbegin(); handle != handles.rend(); ++handle) ctx.wait(*handle);
    for (std::int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(a.at(0, i), sum(i));
      ASSERT_EQ(gathered.at(0, 2 * kCount + i), sum(i));
      ASSERT_EQ(b.at(0, i), value(kRanks - 1, i));
      ASSERT_EQ(out.at(0, i), kRanks * sum(i));
    }
  });
}

TEST_P(Collectives, OfOverlappingGroupsGoOnAtTheSameTime) {
  struct Span {
    Ps start = kNever, end = 0;
  };
  std::vector<Span> spans(4);
  run(
      [&](Context& ctx) {
        // Every rank is in two of four groups.
        std::vector<Group> groups;
        for (int first = 0; first < 4; ++first) groups.push_back(ctx.new_group({first, (first + 1) % 4}));
        const int r = ctx.rank();
        std::vector<Tensor> tensors(4);
        std::map<std::size_t, Handle> handles;
        for (std::size_t g = 0; g < 4; ++g) {  // what a first call installs takes time of its own
          if (ctx.group_rank(groups[g]) >= 0) ctx.all_reduce(own(ctx), ReduceOp::sum, groups[g]);
        }
        ctx.barrier();
        for (std::size_t g = 0; g < 4; ++g) {
          if (ctx.group_rank(groups[g]) < 0) continue;
          tensors[g] = own(ctx);
          handles[g] = ctx.all_reduce_async(tensors[g], ReduceOp::sum, groups[g]);
        }
        EXPECT_EQ(handles.size(), 2u);
        for (const auto& [g, handle] : handles) {
          ctx.wait(handle);
          spans[g].start = std::min(spans[g].start, handle.kernel_start());
          spans[g].end = std::max(spans[g].end, handle.kernel_end());
        }
        for (const int g : {r, (r + 3) % 4}) {
          const std::vector<double> result = tensors[static_cast<std::size_t>(g)].to_host();
          for (std::int64_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(result[static_cast<std::size_t>(i)], value(g, i) + value((g + 1) % 4, i));
          }
        }
      },
      4);
  // No rank is in both of the groups 0 and 2. A drain of the rounds takes one collective after the other.
  const bool together = spans[0].start < spans[2].end && spans[2].start < spans[0].end;
  EXPECT_EQ(together, GetParam() == SchedulingKind::concurrent);
}

TEST_P(Collectives, FollowTheLaunchesBeforeThem) {
  run([](Context& ctx) {
    const Tensor in = own(ctx), out = blank(ctx, kRanks * kCount);
    ctx.launch_async(
        "negate",
        [](Va va, Tl& tl) {
          const ShardView shard = tl.shard(va);
          if (shard.count() == 0) return;
          const Tile x = tl.load(shard.va, {shard.rows, shard.cols}, DType::i32);
          tl.store(shard.va, tl.fill({shard.rows, shard.cols}, DType::i32, 0) - x);
        },
        in);
    ctx.all_gather(in, out);
    for (int rank = 0; rank < kRanks; ++rank) ASSERT_EQ(out.at(0, rank * kCount), -value(rank, 0));
  });
}

/// Programs that the host sent, and the bytes of them.
class ProgramCounter final : public OpObserver {
 public:
  void op(const OpRecord& record) override {
    if (record.name != "host" || record.params.front().text != "program") return;
    ++programs;
    bytes += record.params.back().number;
  }
  int programs = 0;
  std::int64_t bytes = 0;
};

/// Of all module kinds: schedule, PE to PE, kernel.
class Programs : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Runtime, Programs, ::testing::Values("direct", "point_to_point", "ring_allreduce"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Programs, AreInstalledOnceForCallsOfOneShapeAndOftenerThanAPeHasRoomFor) {
  constexpr int kRanks = 3;
  const std::string algorithm = GetParam();
  ProgramCounter counter;
  MachineRun host(machine_of(kRanks, 2, 2), {}, &counter);
  std::vector<int> programs;
  host.runtime.spawn(
      [&](Context& ctx) {
        ProcessGroupOptions options;
        options.algorithm = algorithm;
        ctx.init_process_group(options);
        const auto call = [&](std::int64_t count) {
          const Tensor in = ctx.from_host(values(ctx.rank(), count), {1, count}, DType::i32, spread(), "in");
          if (algorithm == "point_to_point") {
            const Tensor out = ctx.full(-1, {1, kRanks * count}, DType::i32, spread(), "out");
            ctx.all_gather(in, out);
            for (std::int64_t i = 0; i < kRanks * count; ++i)
              ASSERT_EQ(out.at(0, i), value(static_cast<int>(i / count), i % count));
          } else {
            ctx.all_reduce(in);
            for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(in.at(0, i), value(0, i) + value(1, i) + value(2, i));
          }
          ctx.barrier();
          if (ctx.rank() == 0) programs.push_back(counter.programs);
          ctx.barrier();
        };
        call(37);
        call(37);  // other tensors, the same shape
        call(12);
        call(37);
        for (std::int64_t count = 40; count < 56; ++count) call(count);  // 16 others
        call(37);
      },
      std::tuple<>(), kRanks);
  ASSERT_EQ(programs.size(), 21u);
  EXPECT_EQ(programs[0], kRanks);
  EXPECT_EQ(programs[1], kRanks) << "a second call of the shape only launches";
  EXPECT_EQ(programs[2], 2 * kRanks);
  EXPECT_EQ(programs[3], 2 * kRanks);
  EXPECT_EQ(programs[19], 18 * kRanks);
  EXPECT_EQ(programs[20], 19 * kRanks) << "16 others have taken the place";
}

/// It serves no transfers, and cannot move copies, but is not asked to.
TEST(Transfers, AreChosenForAsIfNoAlgorithmWereNamed) {
  MachineRun host(machine_of(3, 2, 2));
  host.runtime.spawn(
      [](Context& ctx) {
        ProcessGroupOptions options;
        options.algorithm = "point_to_point";
        ctx.init_process_group(options);
        const DPPolicy copies = DPPolicy().cube(CubeSplit::replicate).pe(PeSplit::replicate);
        const Tensor data = ctx.from_host(values(ctx.rank(), 24), {1, 24}, DType::i32, copies, "data");
        if (ctx.rank() == 0) ctx.wait(ctx.send(data, 2));
        if (ctx.rank() == 2) ctx.wait(ctx.recv(data, 0));
        for (std::int64_t i = 0; i < 24; ++i) ASSERT_EQ(data.at(0, i), value(ctx.rank() == 1 ? 1 : 0, i));
      },
      std::tuple<>(), 3);
}

/// Bytes of the programs of one collective, without the commands that bring them, on a group of `ranks` SIPs with one
/// PE each.
std::int64_t program_bytes(int ranks, const std::string& algorithm,
                           const std::function<void(Context&, const Tensor&)>& collective) {
  ProgramCounter counter;
  MachineRun host(machine_of(ranks, 1, 1), {}, &counter);
  host.runtime.spawn(
      [&](Context& ctx) {
        ProcessGroupOptions options;
        options.algorithm = algorithm;
        ctx.init_process_group(options);
        collective(ctx, ctx.from_host(values(ctx.rank(), 8), {1, 8}, DType::i32, spread(), "t"));
        ctx.barrier();
      },
      std::tuple<>(), ranks);
  EXPECT_EQ(counter.programs, ranks);
  return counter.bytes - counter.programs * static_cast<std::int64_t>(kCommandBytes);
}

// The table of docs/collective_algorithms.md, "bytes of a program".
class ProgramBytes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ProgramBytes, ::testing::Values(2, 3, 5));

TEST_P(ProgramBytes, OfAScheduleAreItsHeaderStepsBlocksIntervalsAndRuns) {
  constexpr std::int64_t kStep = 16, kBlock = 32, kInterval = 24, kSegment = 32, kRun = 16;
  // One block in one interval and segment, which is one run of addresses in the tensor and one in its result.
  constexpr std::int64_t kRank = ccl::kProgramHeaderBytes + kBlock + kInterval + kSegment + 2 * kRun;
  // The root sends to each of the others, which receive once.
  EXPECT_EQ(program_bytes(GetParam(), "direct", [](Context& ctx, const Tensor& t) { ctx.broadcast(t, 0); }),
            GetParam() * kRank + 2 * (GetParam() - 1) * kStep);
}

TEST_P(ProgramBytes, OfAModulesKernelAreTheSameWhateverTheNumberOfRanks) {
  EXPECT_EQ(program_bytes(GetParam(), "ring_allreduce", [](Context& ctx, const Tensor& t) { ctx.all_reduce(t); }),
            GetParam() * 2 * ccl::kProgramHeaderBytes);
}

/// An observer keeps SIPs in step; else they are ahead of each other as far as launches promise.
class EarlyFailure : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Runtime, EarlyFailure, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "in_step" : "in_windows"); });

TEST_P(EarlyFailure, OfALaunchThatPromisedToTakeLongIsHeardLongBeforeItsLeastTime) {
  OpCounter observer;
  topology::SystemSpec spec = machine_of(4, 2, 2);
  spec.links.link.bytes_per_second = 500'000'000;  // so slow that links decide how long it takes
  MachineRun host(std::move(spec), {}, GetParam() ? &observer : nullptr);
  const std::int64_t count = 1 << 18;
  Message seen;
  const auto program = [&](Context& ctx) {
    ProcessGroupOptions options;
    options.algorithm = "ring";
    ctx.init_process_group(options);
    const Tensor in = ctx.from_host(values(ctx.rank(), count), {1, count}, DType::i32, spread(), "in");
    if (ctx.rank() == 1) ctx.wait(ctx.submit(MmuUnmapMessage{in.va() + count * 4 - 0x1000, 0x1000}));
    const Handle handle = ctx.all_reduce_async(in);
    try {
      ctx.wait(handle);
    } catch (const DeviceFault&) {
      seen = handle.message();
      throw;
    }
  };
  EXPECT_THROW(host.runtime.spawn(program, std::tuple<>(), 4), SpawnError);
  ASSERT_FALSE(seen.faults.empty());
  const Ps least = std::get<LaunchMessage>(seen.body).least, failed = seen.faults.front().time;
  EXPECT_GT(failed, seen.submitted + least / 2) << "SIPs are far ahead of each other by then";
  const Ps late = GetParam() ? 0 : 1'500'000;  // decision 0440
  EXPECT_LE(seen.completed, failed + 1'000'000 + late);
  EXPECT_LT(seen.completed, seen.submitted + least);
}

}  // namespace
}  // namespace kernbench::testing
