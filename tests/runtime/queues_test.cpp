// Queues of kernels that are no collectives': what a program asks for, and what it leaves in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>

#include "ccl/contract/contract.h"
#include "ccl/select/choice.h"
#include "tests/runtime/machine_run.h"

namespace kernbench::testing {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;

const Shape kShape{1, 32};
const LaunchOptions kBoth{{{0, 0, 0}, {0, 0, 1}}, 0, true};  // two PEs of a cube, and its queues

void talk(std::int64_t received, Tl& tl) {
  if (tl.program_id(0) == 0) {
    for (int i = 0; i < 2; ++i) tl.send(Direction::local(1), tl.fill(kShape, DType::f16, i));
  } else {
    for (std::int64_t i = 0; i < received; ++i) tl.recv(Direction::local(0), kShape, DType::f16);
  }
}

void send_to_other(Tl& tl) {
  const auto other = static_cast<unsigned>(1 - tl.program_id(2));
  tl.send(Direction::global(other), tl.fill(kShape, DType::f16, 7));
}
void recv_from_other(Va at, Tl& tl) {
  const auto other = static_cast<unsigned>(1 - tl.program_id(2));
  tl.store(at, tl.recv(Direction::global(other), kShape, DType::f16));
}

/// Address space for `bytes` more than the process has. Returns the limit before.
rlimit64 limit_memory_to(std::uint64_t bytes) {
  rlimit64 before{};
  ::getrlimit64(RLIMIT_AS, &before);
  std::ifstream pages("/proc/self/statm");
  std::uint64_t used = 0;
  pages >> used;
  rlimit64 limit = before;
  limit.rlim_cur = used * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  EXPECT_EQ(::setrlimit64(RLIMIT_AS, &limit), 0);
  return before;
}

TEST(Leftover, OfALaunchIsAFaultThatSaysWhoSentHowMany) {
  MachineRun host(machine_of(1, 1, 2));
  const std::string text = failure_of(
      [&] { host.runtime.spawn([](Context& ctx) { ctx.launch("talk", kBoth, talk, 1); }, std::tuple<>(), 1); });
  EXPECT_THAT(text, HasSubstr("sip0.cube0.pe0.ipcq: IPCQ error in kernel 'talk', op send(local(1)), at "));
  EXPECT_THAT(text, HasSubstr("1 message to sip0.cube0.pe1 was never received: each send needs its recv"));
}

TEST(Leftover, ThereIsNoneWhereEachSendHasItsRecv) {
  MachineRun host(machine_of(1, 1, 2));
  EXPECT_EQ(failure_of([&] {
              host.runtime.spawn(
                  [](Context& ctx) {
                    for (int i = 0; i < 3; ++i) ctx.launch("talk", kBoth, talk, 2);
                  },
                  std::tuple<>(), 1);
            }),
            "");
}

ProcessGroupOptions with_peers() {
  ProcessGroupOptions options;  // auto: it has no queues of its own before the first collective
  options.directions = ccl::kGlobalPeers;
  return options;
}

/// A launch of another SIP may receive, also later: only the end of the program tells that nobody does.
TEST(Leftover, BetweenLaunchesIsLookedForAtTheEndOfTheProgram) {
  MachineRun host(machine_of(2, 1, 1));
  const auto program = [](Context& ctx, bool receives) {
    ctx.init_process_group(with_peers());
    const auto sip = static_cast<std::uint16_t>(ctx.rank());
    const Tensor out = ctx.zeros(kShape, DType::f16, {}, "out");
    if (ctx.rank() == 0) ctx.launch("send", LaunchOptions{{{sip, 0, 0}}}, send_to_other);
    ctx.barrier();
    if (ctx.rank() == 1 && receives) {
      ctx.launch("recv", LaunchOptions{{{sip, 0, 0}}}, recv_from_other, out.va());
      EXPECT_EQ(out.at(0, 31), 7);
    }
    ctx.barrier();
  };
  EXPECT_EQ(failure_of([&] { host.runtime.spawn(program, std::tuple(true), 2); }), "");
  const std::string text = failure_of([&] {
    host.runtime.spawn(
        [](Context& ctx) {
          if (ctx.rank() == 0) ctx.launch("send", LaunchOptions{{{0, 0, 0}}}, send_to_other);
        },
        std::tuple<>(), 2);
  });
  EXPECT_THAT(text, AllOf(HasSubstr("messages are left in queues at the end of the program"),
                          HasSubstr("sip0.cube0.pe0: kernel 'send', send(global(1)): 1 message to sip1.cube0.pe0")));
}

/// Rank 0 sends what nobody receives, then both reduce `shape`.
std::string failure_of_collective_behind_a_send(Shape shape) {
  MachineRun host(machine_of(2, 1, 1));
  const auto program = [](Context& ctx, Shape reduced) {
    ctx.init_process_group(with_peers());
    const Tensor t = ctx.full(1, reduced, DType::f16, spread(), "t");
    if (ctx.rank() == 0) ctx.launch("sends", LaunchOptions{{{0, 0, 0}}}, send_to_other);
    ctx.barrier();
    ctx.all_reduce(t);
    ADD_FAILURE() << "rank " << ctx.rank() << " goes on with " << t.at(0, 0);
  };
  return failure_of([&] { host.runtime.spawn(program, std::tuple(shape), 2); });
}

const auto kFound = AllOf(
    HasSubstr("sip1.cube0.pe0.ipcq_recv: IPCQ error in kernel '"),
    HasSubstr("the next message is not the collective's, it was left in the queue: sip0.cube0.pe0: kernel 'sends', "
              "send(global(1)): each send needs its recv"));

TEST(Leftover, OfAKernelIsNotTakenByACollectiveThatWouldTakeItForItsOwn) {
  EXPECT_THAT(failure_of_collective_behind_a_send(kShape), kFound);
}
TEST(Leftover, OfAKernelIsNamedWhereItHasAnotherSizeThanTheCollectives) {
  EXPECT_THAT(failure_of_collective_behind_a_send({64, 64}), kFound);
}

TEST(Leftover, ACollectivesMessageIsNotForAnotherKernel) {
  MachineRun host(machine_of(2, 1, 1));
  const auto program = [](Context& ctx) {
    ctx.init_process_group(with_peers());
    const Tensor t = ctx.full(1, kShape, DType::f16, spread(), "t"), out = ctx.zeros(kShape, DType::f16, {}, "out");
    const LaunchOptions beside{{{1, 0, 0}}, ctx.new_stream()};
    if (ctx.rank() == 1) ctx.launch_async("early", beside, recv_from_other, out.va());
    ctx.all_reduce(t);
  };
  EXPECT_THAT(failure_of([&] { host.runtime.spawn(program, std::tuple<>(), 2); }),
              AllOf(HasSubstr("IPCQ error in kernel 'early', op recv(global(0)"),
                    HasSubstr("the next message from sip0.cube0.pe0 is a collective's: no other kernel may take it")));
}

void touch_nothing(Va at, Tl& tl) { tl.load(at, kShape, DType::f16); }

TEST(Leftover, IsSaidOfAProgramBehindOneThatCaughtAFault) {
  MachineRun host(machine_of(2, 1, 1));
  const auto fails = [](Context& ctx) {
    ctx.init_process_group(with_peers());
    if (ctx.rank() != 0) return;
    EXPECT_THROW(ctx.launch("unmapped", LaunchOptions{{{0, 0, 0}}}, touch_nothing, Va{1}), DeviceFault);
  };
  EXPECT_EQ(failure_of([&] { host.runtime.spawn(fails, std::tuple<>(), 2); }), "");
  const auto leaves = [](Context& ctx) {
    if (ctx.rank() == 0) ctx.launch("send", LaunchOptions{{{0, 0, 0}}}, send_to_other);
  };
  EXPECT_THAT(failure_of([&] { host.runtime.spawn(leaves, std::tuple<>(), 2); }),
              HasSubstr("messages are left in queues at the end of the program"));
}

/// More ops than are recorded at once: the kernel is suspended, and its locals are taken down with the machine.
TEST(KernelOfADeadlock, IsTakenDownWhenItsLaunchIsGone) {
  MachineRun host(machine_of(1, 1, 2));
  const auto waits = [](Tl& tl) {
    if (tl.program_id(0) == 0) return;
    tl.wait(tl.recv(Direction::local(0), kShape, DType::f16));
    for (int i = 0; i < 1000; ++i) tl.fill(kShape, DType::f16, i);
  };
  EXPECT_THAT(
      failure_of([&] {
        host.runtime.spawn(
            [&](Context& ctx) { ctx.launch("a kernel whose name does not fit into a small string", kBoth, +waits); },
            std::tuple<>(), 1);
      }),
      HasSubstr("a kernel whose name does not fit into a small string"));
}

TEST(GroupDirections, AreThereForKernelsAndForCollectivesUnderAuto) {
  MachineRun host(machine_of(2, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        ctx.init_process_group(with_peers());
        const auto sip = static_cast<std::uint16_t>(ctx.rank());
        const Tensor t = ctx.full(1, kShape, DType::f16, spread(), "t"), out = ctx.zeros(kShape, DType::f16, {}, "out");
        for (int i = 0; i < 2; ++i) {
          const LaunchOptions here{{{sip, 0, 0}}};
          const Handle send = ctx.launch_async("send", here, send_to_other);
          ctx.launch("recv", here, recv_from_other, out.va());
          ctx.wait(send);
          EXPECT_EQ(out.at(0, 0), 7);
          ctx.all_reduce(t);
          EXPECT_EQ(t.at(0, 0), 2 << i) << "its queues are its own, or shared in turn";
        }
      },
      std::tuple<>(), 2);
}

TEST(GroupDirections, WithoutThemAKernelIsToldWhichThereAre) {
  MachineRun host(machine_of(2, 1, 1));
  const std::string text = failure_of([&] {
    host.runtime.spawn(
        [](Context& ctx) {
          ctx.init_process_group();
          if (ctx.rank() == 0) ctx.launch("send", LaunchOptions{{{0, 0, 0}}}, send_to_other);
        },
        std::tuple<>(), 2);
  });
  EXPECT_THAT(text, HasSubstr("group 0 has no neighbour in direction global(1); it has none"));
}

TEST(GroupDirections, UnknownBitsAreRefused) {
  MachineRun host(machine_of(1, 1, 1));
  ProcessGroupOptions options;
  options.directions = 1u << 20;
  EXPECT_THAT(failure_of([&] { host.runtime.init_process_group(options); }),
              HasSubstr("directions is 0x100000: bits of 0x3f have a meaning"));
}

/// What throws of an empty handle, and the call that its text names.
TEST(Handles, OfWhatHasNoKernelHaveNoKernelTimes) {
  MachineRun host(machine_of(1, 1, 1));
  const auto program = [](Context& ctx) {
    const Tensor tensor = ctx.zeros(kShape, DType::f16, {}, "t");
    const Handle promise = ctx.promise("p");
    ctx.fulfil(promise);
    const Handle read = ctx.submit(MemoryReadMessage{PhysicalAddress::hbm({0, 0, 0}, 0), {}, 8});
    ctx.wait(read);
    for (const Handle& handle : {promise, read}) {
      EXPECT_THROW(handle.kernel_start(), std::logic_error);
      EXPECT_THROW(handle.kernel_end(), std::logic_error);
    }
  };
  EXPECT_EQ(failure_of([&] { host.runtime.spawn(program, std::tuple<>(), 1); }), "");
}

/// What a tensor holds, and the host's copy from which it is filled.
TEST(HostMemory, IsAskedBeforeARankFillsALargeTensor) {
  MachineRun host(machine_of(1, 1, 1));
  constexpr std::int64_t kRows = 1 << 15, kColumns = 1 << 12;  // 256 MiB in f16
  const auto program = [](Context& ctx) {
    const rlimit64 before = limit_memory_to(128 << 20);
    EXPECT_THAT(failure_of([&] {
                  ctx.full(1, {kRows, kColumns}, DType::f16, {}, "large");
                }),
                AllOf(HasSubstr("contents of tensor 'large': needs 512 MiB of this computer's memory, "),
                      HasSubstr("MiB are left (ulimit -v): --data off needs none of it")));
    ::setrlimit64(RLIMIT_AS, &before);
    ctx.full(1, {kRows, kColumns}, DType::f16, {}, "large");
  };
  EXPECT_EQ(failure_of([&] { host.runtime.spawn(program, std::tuple<>(), 1); }), "");
}

/// 2 TiB: the device is asked first, and no contents are made for what it refuses.
TEST(HostMemory, IsNotUsedForATensorThatTheDeviceHasNoRoomFor) {
  MachineRun host(machine_of(1, 1, 1));
  const auto program = [](Context& ctx) {
    const rlimit64 before = limit_memory_to(64 << 20);
    EXPECT_THAT(failure_of([&] {
                  ctx.full(1, {1 << 20, 1 << 20}, DType::f16, {}, "vast");
                }),
                HasSubstr("out of device memory: tensor 'vast' asks for "));
    ::setrlimit64(RLIMIT_AS, &before);
  };
  EXPECT_EQ(failure_of([&] { host.runtime.spawn(program, std::tuple<>(), 1); }), "");
}

TEST(EmptyHandles, EveryCallSaysWhichItWas) {
  const Tensor tensor;
  const Handle handle;
  Tensor writable;
  const std::map<std::string, std::function<void()>> calls{
      {"Tensor::shape: ", [&] { tensor.shape(); }},
      {"Tensor::dtype: ", [&] { tensor.dtype(); }},
      {"Tensor::name: ", [&] { tensor.name(); }},
      {"Tensor::va: ", [&] { tensor.va(); }},
      {"Tensor::sip: ", [&] { tensor.sip(); }},
      {"Tensor::policy: ", [&] { tensor.policy(); }},
      {"Tensor::shards: ", [&] { tensor.shards(); }},
      {"Tensor::pa: ", [&] { tensor.pa(0); }},
      {"Tensor::bytes: ", [&] { tensor.bytes(); }},
      {"Tensor::copies: ", [&] { tensor.copies(); }},
      {"Tensor::to_host(): ", [&] { tensor.to_host(); }},
      {"Tensor::data(): ", [&] { tensor.data(); }},
      {"Tensor::bytes_to_host(copy): ", [&] { tensor.bytes_to_host(); }},
      {"Tensor::at(row, col): ", [&] { tensor.at(0, 0); }},
      {"Tensor::operator()(row, col): ", [&] { tensor(0, 0); }},
      {"Tensor::to_string(tensor): ", [&] { to_string(tensor); }},
      {"Tensor::copy_from: ", [&] { writable.copy_from(tensor); }},
      {"Tensor::write_bytes: ", [&] { writable.write_bytes({}); }},
      {"Tensor::free: ", [&] { writable.free(); }},
      {"Handle::done: ", [&] { handle.done(); }},
      {"Handle::name: ", [&] { handle.name(); }},
      {"Handle::choice: ", [&] { handle.choice(); }},
      {"Handle::submitted: ", [&] { handle.submitted(); }},
      {"Handle::completed: ", [&] { handle.completed(); }},
      {"Handle::kernel_start: ", [&] { handle.kernel_start(); }},
      {"Handle::kernel_end: ", [&] { handle.kernel_end(); }},
      {"Handle::message: ", [&] { handle.message(); }}};
  for (const auto& [text, call] : calls) {
    EXPECT_THROW(call(), std::invalid_argument) << text;
    EXPECT_THAT(failure_of(call), HasSubstr(text));
  }
}

/// What two ranks do is chosen as if no algorithm were named: its parameters say nothing of others.
TEST(Auto, TransfersOfANamedGroupKnowNoParameters) {
  MachineRun host(machine_of(2, 1, 1));
  host.runtime.spawn(
      [](Context& ctx) {
        ProcessGroupOptions options;
        options.algorithm = "ring";
        options.parameters = {{"chunk_bytes", 64}};
        ctx.init_process_group(options);
        const Tensor tensor = ctx.full(ctx.rank(), {1, 8}, DType::i32, {}, "t");
        const Handle call = ctx.rank() == 0 ? ctx.send_async(tensor, 1) : ctx.recv_async(tensor, 0);
        ctx.wait(call);
        for (const ccl::Candidate& candidate : call.choice()->candidates) {
          EXPECT_THAT(candidate.unfit, ::testing::Not(HasSubstr("parameter"))) << candidate.name;
        }
      },
      std::tuple<>(), 2);
}

/// What has room changes with the queues of other calls, and what was bound first is forgotten after some.
TEST(Auto, AllMembersTakeWhatTheFirstOneChose) {
  constexpr int kRanks = 4, kCalls = 20;
  topology::SystemSpec spec = machine_of(kRanks, 1, 1);
  spec.topology = SipTopology::fully_connected;
  spec.cube.pe.tcm.bytes = 4 * 4 * 4096;  // four rings: three do not fit half of them, but lie there from call 0 on
  std::array<std::multiset<std::string>, kCalls> chosen;
  MachineRun host(spec);
  host.runtime.spawn(
      [&](Context& ctx) {
        ctx.init_process_group();
        std::vector<std::pair<Tensor, Tensor>> tensors;
        for (std::int64_t count = 1; count <= kCalls; ++count) {
          tensors.emplace_back(ctx.full(ctx.rank(), {1, count}, DType::i32, {}, "in"),
                               ctx.full(-1, {1, kRanks * count}, DType::i32, {}, "out"));
        }
        std::vector<Handle> calls;
        for (const auto& [in, out] : tensors) calls.push_back(ctx.all_gather_async(in, out));
        for (std::size_t i = 0; i < kCalls; ++i) {
          ctx.wait(calls[i]);
          chosen[i].insert(calls[i].choice()->algorithm);
        }
      },
      std::tuple<>(), kRanks);
  EXPECT_EQ(chosen[0].count("direct"), 4U);
  for (std::size_t i = 1; i < kCalls; ++i) EXPECT_EQ(chosen[i].count("point_to_point"), 4U) << i;
}

}  // namespace
}  // namespace kernbench::testing
