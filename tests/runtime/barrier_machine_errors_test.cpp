#include <gmock/gmock.h>

#include <stdexcept>

#include "tests/runtime/barrier_machine.h"

// Host reads that cannot be served: what the error says, and what comes after it.
namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_P(BarrierOnMachine, AReadWhoseCollectiveIsNeverCalledIsADeadlockThatSaysSo) {
  build();
  Handle own;
  std::string text;
  try {
    run([&](Context& ctx) {
      const Tensor tensor = make(ctx, 1, "grad");
      if (ctx.rank() == 0) {
        own = ctx.all_reduce_async(tensor);
        tensor.at(0, 0);
      }
      ctx.barrier();
    });
  } catch (const Deadlock& error) {
    text = error.what();
  }
  EXPECT_THAT(text, StartsWith(fmt::format(
                        "deadlock at {}: nothing is left to happen, and 2 ranks have not finished\n"
                        "\n"
                        "  rank waits for\n"
                        "  0    collective 'ring_allreduce' on sip0, submitted at {}, to use tensor 'grad' by "
                        "at(row, col); process group 0, collective 0: not called by rank 1\n"
                        "  1    barrier; not reached by rank 0\n"
                        "\n",
                        ns_of(host_->machine.dispatcher().latest()), ns_of(own.submitted()))));
}

TEST_P(BarrierOnMachine, RanksThatWaitForEachOtherThroughTheirStreamsAreACycleThatTheReportNames) {
  build();
  std::string text;
  try {
    run([&](Context& ctx) {
      const Tensor tensor = make(ctx, 1);
      const Group other = ctx.new_group({0, 1});
      const std::vector<Group> order = ctx.rank() == 0 ? std::vector{other, Group()} : std::vector{Group(), other};
      const Handle first = ctx.all_reduce_async(tensor, ReduceOp::sum, order[0]);
      if (ctx.rank() == 1) ctx.wait(first);
      ctx.all_reduce(tensor, ReduceOp::sum, order[1]);
    });
  } catch (const Deadlock& error) {
    text = error.what();
  }
  EXPECT_THAT(text, Not(HasSubstr("no wait cycle")));
  EXPECT_THAT(text, HasSubstr("\nwait cycle of ranks and what they submitted:\n  rank 1 waits for collective "));
  EXPECT_THAT(text, HasSubstr(" (process group 0, collective 0) waits for what stands before it in its stream\n"));
  EXPECT_THAT(text,
              HasSubstr(" (process group 1, collective 0) waits for rank 1, which has not called it\n  <- rank 1\n"));
}

TEST_P(BarrierOnMachine, AReadOfWhatStandsBehindACollectiveThatIsNeverCalledIsADeadlockThatSaysSo) {
  build();
  Handle behind;
  std::string text;
  try {
    run([&](Context& ctx) {
      const Tensor tensor = make(ctx, 1, "grad"), loss = make(ctx, 1, "loss");
      if (ctx.rank() == 0) {
        ctx.all_reduce_async(tensor);
        behind = ctx.launch_async("step", add_to, loss, 1);
        loss.to_host();
      }
      ctx.barrier();
    });
  } catch (const Deadlock& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr(fmt::format("\n  0    launch 'step' on sip0, submitted at {}, to use tensor 'loss' by "
                                          "to_host(); process group 0, collective 0: not called by rank 1\n",
                                          ns_of(behind.submitted()))));
}

TEST_P(BarrierOnMachine, AReadWhoseCollectiveAPeerEndsWithoutIsAMismatchThatSaysSo) {
  build();
  std::string text;
  try {
    run([&](Context& ctx) {
      const Tensor tensor = make(ctx, 1);
      if (ctx.rank() == 1) return;
      ctx.all_reduce_async(tensor);
      tensor.to_host();
      FAIL() << "no value is right";
    });
  } catch (const SpawnError& error) {
    text = error.what();
  }
  EXPECT_THAT(text, HasSubstr("rank 1 has ended without calling"));
}

TEST_P(BarrierOnMachine, ATensorThatIsFreedWhileAReadWaitsIsAnErrorOfTheReader) {
  build();
  std::vector<Tensor> tensors(2);
  std::string text;
  run([&](Context& ctx) {
    const auto rank = static_cast<std::size_t>(ctx.rank());
    tensors[rank] = make(ctx, 1);
    ctx.barrier();
    const Handle own = rank == 0 ? ctx.all_reduce_async(tensors[0]) : Handle();
    if (rank == 0) {
      try {
        tensors[0].at(0, 0);
      } catch (const std::logic_error& error) {
        text = error.what();
      }
    } else {
      tensors[0].free();
      ctx.all_reduce(tensors[1]);
    }
    ctx.barrier();
    tensors[rank] = Tensor();
  });
  EXPECT_EQ(text, "tensor 't' was freed while rank 0 waited to use it by at(row, col)");
}

TEST_P(BarrierOnMachine, AfterAFailedProgramNothingIsWaitedFor) {
  build();
  std::vector<Tensor> tensors(2);
  EXPECT_THROW(run([&](Context& ctx) {
                 const auto rank = static_cast<std::size_t>(ctx.rank());
                 tensors[rank] = make(ctx, 4);
                 ctx.barrier();
                 if (rank == 1) throw std::runtime_error("made to fail");
                 ctx.all_reduce_async(tensors[rank]);
                 tensors[rank].to_host();  // is ended here
                 FAIL();
               }),
               SpawnError);
  const std::uint64_t before = waits();
  EXPECT_EQ(tensors[0].at(0, 0), 4);
  EXPECT_EQ(tensors[1].at(0, 0), 4);
  EXPECT_EQ(waits(), before);
}

}  // namespace
}  // namespace kernbench::testing
