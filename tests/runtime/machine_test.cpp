#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#if defined(__SANITIZE_ADDRESS__)
// Of the allocator interface of the sanitizers, which g++ does not bring along.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

#include "tests/runtime/machine_run.h"
#include "tests/support/test_body.h"

namespace kernbench::testing {
namespace {
using ::testing::HasSubstr;

/// y = 2 x + 1 on every PE's own shard, in steps.
void scale(Va va, Tl& tl) {
  const ShardView shard = tl.shard(va);
  const Shape row{1, shard.cols};
  for (std::int64_t r = 0; r < shard.rows; ++r) {
    const Va at = shard.va + static_cast<Va>(r * shard.cols) * 4;
    const Tile x = tl.load(at, row, DType::f32);
    const Tile one = tl.fill(row, DType::f32, 1);
    tl.store(at, tl.add(tl.add(x, x), one));
  }
}

// The regression that once failed: kernels were children of whoever drove the event loop.
class RingDefaultWs : public ::testing::TestWithParam<BufferCase> {};
INSTANTIATE_TEST_SUITE_P(Runtime, RingDefaultWs, every_buffer_and_scheduling(), &name_of);

TEST_P(RingDefaultWs, GivesThreeEverywhere) {
  MachineRun host(machine_of(2, 2, 2, std::get<0>(GetParam())), scheduled(std::get<1>(GetParam())));
  const int world_size = host.runtime.world_size();
  EXPECT_EQ(world_size, 2) << "the SIP count of the topology";
  int checked = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(ring_algorithm());
        const Tensor tensor = ctx.full(ctx.rank() + 1, {4, 256}, DType::f16, spread(), "t");
        ctx.all_reduce(tensor);
        for (const double value : tensor.to_host()) ASSERT_EQ(value, 3);
        ++checked;
      },
      std::tuple<>(), world_size);
  EXPECT_EQ(checked, 2);
  ASSERT_EQ(host.runtime.host_trace().size(), 2u);
  for (int rank = 0; rank < 2; ++rank) {
    const auto& trace = host.runtime.host_trace();
    EXPECT_EQ(
        std::count_if(trace.begin(), trace.end(), [&](const HostTraceEntry& entry) { return entry.rank == rank; }), 1);
    EXPECT_EQ(trace[static_cast<std::size_t>(rank)].kind, "collective");
    EXPECT_EQ(trace[static_cast<std::size_t>(rank)].name, "ring_allreduce");
  }
  EXPECT_EQ(host.machine.pool().outstanding(), 0u) << "no orphaned kernel";
}

class KernelOwnership : public ::testing::TestWithParam<SchedulingKind> {
 protected:
  /// Ends rank 0 after `delay`, from a process that is no worker.
  static void kill_after(MachineRun& host, Ps delay) {
    sc_core::sc_spawn(
        [&host, delay] {
          sc_core::wait(sc_core::sc_time::from_value(delay));
          host.runtime.kill(0);
        },
        sc_core::sc_gen_unique_name("killer"));
  }
};
INSTANTIATE_TEST_SUITE_P(Runtime, KernelOwnership,
                         ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds), [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(KernelOwnership, AKilledWorkerLeavesItsKernelsToFinish) {
  OpCounter counter;
  MachineRun host(machine_of(1, 2, 2), scheduled(GetParam()), &counter);
  Context& main = host.runtime.main();
  std::size_t ops_of_one = 0;
  Ps submitted = 0, completed = 0;  // of the reference, from the beginning of its program
  constexpr int kTimes = 40;
  for (int i = 0; i <= kTimes; ++i) {  // 0: nobody is killed, the reference
    const Tensor tensor = main.full(3, {4, 64}, DType::f32, spread(), "t");
    const std::string name = "scale" + std::to_string(i);
    const Ps begin = main.now();
    if (i > 0) {
      const Ps at = begin + submitted + (completed - submitted) * static_cast<Ps>(i) / (kTimes + 1);
      kill_after(host, at - sc_core::sc_time_stamp().value());
    }
    bool ended = false;
    host.runtime.spawn(
        [&](Context& ctx) {
          const Tensor own = ctx.full(1, {1, 64}, DType::f32, {}, "own");  // goes with the worker's stack
          const Handle handle = ctx.launch_async(
              name, [](Va va, Va, Tl& tl) { scale(va, tl); }, tensor, own);
          ctx.wait(handle);
          if (i == 0) {
            submitted = handle.submitted() - begin;
            completed = handle.completed() - begin;
          }
          ended = true;
        },
        std::tuple<>(), 1);
    EXPECT_EQ(ended, i == 0) << i;
    if (i == 0) ops_of_one = counter.ops.at(name);
    EXPECT_EQ(counter.ops[name], ops_of_one) << "the op log of " << name;
    for (const double value : tensor.to_host()) ASSERT_EQ(value, 7) << name;
  }
  EXPECT_EQ(host.runtime.host_trace().size(), 1u + kTimes);
  EXPECT_EQ(host.machine.pool().outstanding(), 0u);
}

TEST_P(KernelOwnership, AKilledWorkerLeavesItsPartOfACollectiveToFinish) {
  OpCounter counter;
  MachineRun host(machine_of(2, 1, 2), scheduled(GetParam()), &counter);
  std::size_t ops_of_one = 0;
  Ps submitted = 0, completed = 0;  // of the reference, from the beginning of its program
  constexpr int kTimes = 20;
  host.runtime.init_process_group(ring_algorithm());
  for (int i = -1; i <= kTimes; ++i) {  // -1: installs the tables; 0: nobody is killed, the reference
    std::vector<Tensor> tensors(2);
    const Ps begin = host.machine.dispatcher().now();
    if (i > 0) {
      const Ps at = begin + submitted + (completed - submitted) * static_cast<Ps>(i) / (kTimes + 1);
      kill_after(host, at - sc_core::sc_time_stamp().value());
    }
    const std::size_t ops_before = counter.ops["ring_allreduce"];
    int ended = 0;
    host.runtime.spawn(
        [&](Context& ctx) {
          const auto rank = static_cast<std::size_t>(ctx.rank());
          tensors[rank] = ctx.full(ctx.rank() + 1, {1, 4096}, DType::f32, spread(), "t");
          ctx.barrier();
          const Handle handle = ctx.all_reduce_async(tensors[rank]);
          ctx.barrier();
          if (rank == 0) {
            ctx.wait(handle);
            if (i == 0) {
              submitted = handle.submitted() - begin;
              completed = handle.completed() - begin;
            }
          }
          ++ended;
        },
        std::tuple<>(), 2);
    EXPECT_EQ(ended, i > 0 ? 1 : 2) << i;
    const std::size_t ops = counter.ops["ring_allreduce"] - ops_before;
    if (i < 0) ops_of_one = ops;
    EXPECT_EQ(ops, ops_of_one) << "the op log of " << i;
    for (const Tensor& tensor : tensors) {
      for (const double value : tensor.to_host()) ASSERT_EQ(value, 3) << i;
    }
  }
  EXPECT_EQ(host.machine.pool().outstanding(), 0u);
}

TEST_P(KernelOwnership, AWorkerThatThrowsLeavesItsKernelsToFinish) {
  OpCounter counter;
  MachineRun host(machine_of(2, 1, 2), scheduled(GetParam()), &counter);
  std::vector<Tensor> kept(2);
  EXPECT_THROW(host.runtime.spawn(
                   [&](Context& ctx) {
                     const auto rank = static_cast<std::size_t>(ctx.rank());
                     kept[rank] = ctx.full(3, {4, 64}, DType::f32, spread(), "t");
                     ctx.barrier();
                     const Handle handle = ctx.launch_async("scale", scale, kept[rank]);
                     ctx.barrier();
                     if (rank == 1) throw std::runtime_error("made to fail");
                     ctx.wait(handle);
                   },
                   std::tuple<>(), 2),
               SpawnError);
  EXPECT_EQ(counter.ops.at("scale"), 2u * 2 * 4 * 5);  // per row: load, fill, add, add, store
  for (const Tensor& tensor : kept) {
    for (const double value : tensor.to_host()) ASSERT_EQ(value, 7);
  }
}

TEST(HostTrace, StandsInTheOpLogToo) {
  OpCounter counter;
  MachineRun host(machine_of(2, 1, 1), {}, &counter);
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(ring_algorithm());
        const Tensor tensor = ctx.full(1, {1, 64}, DType::f32, {}, "t");
        ctx.launch("scale", scale, tensor);
        ctx.all_reduce(tensor);
      },
      std::tuple<>(), 2);
  const auto& trace = host.runtime.host_trace();
  ASSERT_EQ(trace.size(), 4u);
  ASSERT_EQ(counter.host_calls.size(), 4u);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const OpRecord& record = counter.host_calls[i];
    EXPECT_EQ(record.start, trace[i].t_submit);
    EXPECT_EQ(record.end, trace[i].t_complete);
    EXPECT_EQ(record.kernel, trace[i].name);
    ASSERT_EQ(record.params.size(), 3u);
    EXPECT_EQ(record.params[0].text, trace[i].kind);
    EXPECT_EQ(record.params[1].number, trace[i].rank);
    EXPECT_EQ(record.params[2].number, trace[i].sip);
  }
}

std::string deadlock_of(MachineRun& host, const std::function<void(Tl&, int rank)>& exchange) {
  try {
    host.runtime.spawn(
        [&](Context& ctx) {
          ctx.init_process_group(ring_algorithm());
          const int rank = ctx.rank();
          ctx.launch("exchange", LaunchOptions{{{static_cast<std::uint16_t>(rank), 0, 0}}}, run_test_body,
                     test_body([exchange, rank](Tl& tl) { exchange(tl, rank); }));
        },
        std::tuple<>(), 2);
  } catch (const Deadlock& error) {
    return error.what();
  }
  return "no deadlock";
}

TEST(Deadlock, NamesTheSendThatIsMissing) {
  const auto begin = std::chrono::steady_clock::now();
  MachineRun host(machine_of(2, 1, 1));
  const std::string text = deadlock_of(host, [](Tl& tl, int rank) {
    if (rank == 0) tl.recv(Direction::global_w(), {1, 8}, DType::f16);  // rank 1 does not send
  });
  EXPECT_THAT(text, HasSubstr("1 rank has not finished"));
  EXPECT_THAT(text, HasSubstr("0    launch 'exchange' on sip0"));
  EXPECT_THAT(text, HasSubstr("recv(global_W, 1x8 f16)"));
  EXPECT_THAT(text, HasSubstr("and sip1.cube0.pe0 is not blocked: its kernel has ended or was never launched"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Deadlock, NamesTheCycle) {
  MachineRun host(machine_of(2, 1, 1));
  const std::string text = deadlock_of(host, [](Tl& tl, int) {
    tl.send(Direction::global_e(), tl.recv(Direction::global_w(), {1, 8}, DType::f16));
  });
  EXPECT_THAT(text, HasSubstr("2 ranks have not finished"));
  EXPECT_THAT(text, HasSubstr("wait cycle of 2 PEs:\n  sip0.cube0.pe0 waits for data"));
  EXPECT_THAT(text, HasSubstr("<- sip1.cube0.pe0 waits for data"));
}

class TalkingKernels : public ::testing::TestWithParam<SchedulingKind> {};
INSTANTIATE_TEST_SUITE_P(Runtime, TalkingKernels, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(TalkingKernels, OfWhichOneIsLaunchedLaterDoNotHang) {
  // In rounds, the wait of rank 0 cannot drain before rank 1 has had two more turns; nobody can know that beforehand.
  MachineRun host(machine_of(2, 1, 1), scheduled(GetParam()));
  int ended = 0;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group(ring_algorithm());
        const Tensor tensor = ctx.full(ctx.rank(), {1, 8}, DType::f32, {}, "t");
        if (ctx.rank() == 0) {
          ctx.launch(
              "receive",
              [](Va va, Tl& tl) {
                tl.store(va, tl.recv(Direction::global_w(), {1, 8}, DType::f32));
              },
              tensor);
          EXPECT_EQ(tensor.at(0, 7), 7);
        } else {
          for (int i = 0; i < 2; ++i) ctx.launch("scale", scale, tensor);
          ctx.launch(
              "send",
              [](Va va, Tl& tl) {
                tl.send(Direction::global_e(), tl.load(va, {1, 8}, DType::f32));
              },
              tensor);
        }
        ++ended;
      },
      std::tuple<>(), 2);
  EXPECT_EQ(ended, 2);
}

TEST(DeviceFault, NamesPeKernelOpAndTime) {
  MachineRun host(machine_of(1, 1, 2));
  try {
    host.runtime.spawn(
        [](Context& ctx) {
          ctx.launch("stray", LaunchOptions{{{0, 0, 1}}}, [](Tl& tl) {
            tl.load(0xdead'0000'0000, {1, 8}, DType::f16);
          });
        },
        std::tuple<>(), 1);
    FAIL();
  } catch (const SpawnError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 of 1 failed; first reason: launch 'stray' on sip0"));
    EXPECT_THAT(error.what(), HasSubstr("sip0.cube0.pe1.dma_r: MMU fault in kernel 'stray', op load("));
    EXPECT_THAT(error.what(), HasSubstr(" ns: "));
    EXPECT_THROW(std::rethrow_exception(error.failures.at(0)), DeviceFault);
  }
}

std::uint64_t allocated_bytes() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

/// The one thing that may grow: it is the result.
std::uint64_t bytes_of(const std::vector<HostTraceEntry>& trace) {
  std::uint64_t bytes = trace.capacity() * sizeof(HostTraceEntry);
  for (const HostTraceEntry& entry : trace) {
    const std::size_t text = entry.name.capacity();
    if (text > std::string().capacity()) bytes += (text + 1 + 8 + 15) / 16 * 16;  // on the heap, as malloc rounds
  }
  return bytes;
}

class Memory : public ::testing::TestWithParam<SchedulingKind> {};
INSTANTIATE_TEST_SUITE_P(Runtime, Memory, ::testing::Values(SchedulingKind::concurrent, SchedulingKind::rounds),
                         [](const auto& info) {
                           return info.param == SchedulingKind::rounds ? "rounds" : "concurrent";
                         });

TEST_P(Memory, IsFlatOver100AllReducesOf64Ranks) {
  topology::SystemSpec spec = topology::grid_machine(SipTopology::torus_2d, 8, 8);  // few steps for so many ranks
  spec.cube.pes = 1;
  MachineRun host(std::move(spec), scheduled(GetParam()));
  std::vector<std::uint64_t> bytes;
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        const Tensor tensor = ctx.zeros({1, 64}, DType::f16, {}, "t");
        for (int i = 0; i < 100; ++i) {
          ctx.all_reduce(tensor);
          ctx.barrier();
          if (ctx.rank() != 0) continue;
          bytes.push_back(allocated_bytes() - bytes_of(host.runtime.host_trace()));
        }
      },
      std::tuple<>(), 64);
  ASSERT_EQ(bytes.size(), 100u);
  EXPECT_EQ(host.runtime.host_trace().size(), 6400u);
  constexpr std::uint64_t kSmallestBlock = 32;  // what malloc takes at least
  EXPECT_LT(bytes[99], bytes[69] + 30 * 64 * kSmallestBlock) << "less than one block for each rank and all_reduce";
}

}  // namespace
}  // namespace kernbench::testing
