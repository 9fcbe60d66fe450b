// One PE that runs kernels: identity, memory, compute, the time each op takes.
#include <array>
#include <limits>

#include "models/pe/compute/compute_timing.h"
#include "tests/pe/harness.h"
#include "tests/support/test_body.h"

namespace kernbench {
namespace {

using test::Bench;

constexpr Va kA = 0x10000, kB = 0x20000, kC = 0x30000;
constexpr std::uint32_t kBurst = 256;

std::vector<double> ramp(std::size_t n, double scale = 1) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(scale * static_cast<double>(i));
  return values;
}

class PeKernel : public ::testing::Test {
 protected:
  explicit PeKernel(const Bench::Options& options = {}) : bench(options) { bench.map_hbm(0, 1 << 24); }

  Ps dispatch() const { return bench.options.config.cpu.dispatch; }
  Ps round_trip() const { return 2 * bench.options.latency + bench.options.memory_latency; }
  Ps tcm_time(std::uint64_t bytes) const { return Rate(bench.options.config.tcm.bytes_per_second).time_for(bytes); }
  Ps start_of(Message& message) { return Bench::body(message).first_start; }
  void expect_ok(const Message& message) {
    EXPECT_TRUE(message.faults.empty()) << message.faults.front().reason;
    EXPECT_EQ(bench.answers(message, CommandKind::done), Bench::body(const_cast<Message&>(message)).targets.size());
    EXPECT_EQ(bench.pool.outstanding(), 0u);
    EXPECT_EQ(bench.stacks.in_use(), 0u);
  }

  Bench bench;
};

TEST_F(PeKernel, LoadsAddsAndStores) {
  bench.put(kA, DType::f16, ramp(64));
  bench.put(kB, DType::f16, ramp(64, 2));
  Message& message = bench.launch([](Tl& tl) {
    tl.store(kC, tl.load(kA, {8, 8}, DType::f16) + tl.load(kB, {8, 8}, DType::f16));
  });
  expect_ok(message);
  EXPECT_EQ(bench.get(kC, DType::f16, 64), ramp(64, 3));
}

TEST_F(PeKernel, AnEmptyKernelEndsAtItsStart) {
  Message& message = bench.launch([](Tl&) {});
  expect_ok(message);
  EXPECT_EQ(bench.duration(message), 0u);
}

TEST_F(PeKernel, LoadTakesDispatchRoundTripAndTcmWrite) {
  const std::uint64_t bytes = 8 * kBurst;
  Message& message = bench.launch([&](Tl& tl) { tl.load(kA, {1, static_cast<std::int64_t>(bytes / 2)}, DType::f16); });
  expect_ok(message);
  EXPECT_EQ(bench.duration(message), dispatch() + round_trip() + tcm_time(bytes));
}

TEST_F(PeKernel, OutstandingBurstsAreARoundTripEach) {
  const std::uint64_t round = std::uint64_t{bench.options.config.dma.outstanding} * kBurst;
  for (const std::uint64_t rounds : {1, 2, 3}) {
    Message& message = bench.launch([&](Tl& tl) {
      tl.load(kA, {1, static_cast<std::int64_t>(rounds * round / 2)}, DType::f16);
    });
    EXPECT_EQ(bench.duration(message), dispatch() + rounds * round_trip() + tcm_time(round));
  }
  Message& one_more = bench.launch([&](Tl& tl) {
    tl.load(kA, {1, static_cast<std::int64_t>(round + kBurst) / 2}, DType::f16);
  });
  EXPECT_EQ(bench.duration(one_more), dispatch() + 2 * round_trip() + tcm_time(kBurst));
}

TEST_F(PeKernel, StoreReadsTcmBurstByBurst) {
  const std::uint64_t bytes = 4 * kBurst;
  Message& message = bench.launch([&](Tl& tl) { tl.store(kC, tl.alloc({1, 512}, DType::f16)); });
  expect_ok(message);
  EXPECT_EQ(bench.duration(message), dispatch() + 4 * tcm_time(kBurst) + round_trip());
  EXPECT_EQ(bytes, 512u * 2);
}

TEST_F(PeKernel, BurstsDoNotCrossAMultipleOfTheirSize) {
  Message& message = bench.launch([](Tl& tl) { tl.load(kA + 200, {1, 256}, DType::f16); });
  expect_ok(message);
  std::vector<std::uint64_t> offsets;
  for (const auto& packet : bench.sent) {
    if (packet.kind == PacketKind::read) offsets.push_back(PhysicalAddress::decode(packet.address).offset);
  }
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{kA + 200, kA + 256, kA + 512}));
}

TEST_F(PeKernel, StridedRowsAndGatherTakeTheRowsAskedFor) {
  bench.put(kA, DType::f32, ramp(16 * 10));
  Message& message = bench.launch([](Tl& tl) {
    tl.store(kB, tl.load(kA + 4, {3, 2}, DType::f32, 10));
    tl.store(kC, tl.gather(kA, {7, 0, 7}, 2, DType::f32, 10), 5);
  });
  expect_ok(message);
  EXPECT_EQ(bench.get(kB, DType::f32, 6), (std::vector<double>{1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(bench.get(kC, DType::f32, 12), (std::vector<double>{70, 71, 0, 0, 0, 0, 1, 0, 0, 0, 70, 71}));
}

TEST_F(PeKernel, ComputesOnTiles) {
  bench.put(kA, DType::f32, {1, 2, 3, 4, 5, 6});
  Message& message = bench.launch([](Tl& tl) {
    const Tile a = tl.load(kA, {2, 3}, DType::f32);
    const Tile at = tl.transpose(a);
    tl.store(kB, tl.dot(a, at, tl.fill({2, 2}, DType::f32, 100)));        // [[114, 132], [132, 177]]
    tl.store(kB + 64, tl.reduce(ReduceKind::sum, a, 1));                  // [6, 15]
    tl.store(kB + 128, tl.reduce(ReduceKind::max, a, 0));                 // [4, 5, 6]
    tl.store(kB + 192, tl.slice(a, 1, 1) - tl.arange(3, DType::f32, 1));  // [3, 3, 3]
    tl.store(kB + 256, tl.broadcast(tl.slice(tl.slice(a, 1, 1), 2, 1), {1, 2}));
    tl.store(kB + 320,
             tl.select(tl.math(MathOp::less, {a, tl.fill({1, 1}, DType::f32, 3)}), a, tl.math(MathOp::neg, {a})));
    tl.store(kB + 384, tl.cast(a, DType::i8));
    tl.store(kB + 448, tl.softmax(tl.fill({2, 4}, DType::f32, 1)));
  });
  expect_ok(message);
  EXPECT_EQ(bench.get(kB, DType::f32, 4), (std::vector<double>{114, 132, 132, 177}));
  EXPECT_EQ(bench.get(kB + 64, DType::f32, 2), (std::vector<double>{6, 15}));
  EXPECT_EQ(bench.get(kB + 128, DType::f32, 3), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(bench.get(kB + 192, DType::f32, 3), (std::vector<double>{3, 3, 3}));
  EXPECT_EQ(bench.get(kB + 256, DType::f32, 2), (std::vector<double>{6, 6}));
  EXPECT_EQ(bench.get(kB + 320, DType::f32, 6), (std::vector<double>{1, 2, -3, -4, -5, -6}));
  EXPECT_EQ(bench.get(kB + 384, DType::i8, 6), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(bench.get(kB + 448, DType::f32, 8), std::vector<double>(8, 0.25));
}

TEST_F(PeKernel, ComparesTiles) {
  bench.put(kA, DType::f32, {1, 2, 3});
  Message& message = bench.launch([](Tl& tl) {
    const Tile a = tl.load(kA, {1, 3}, DType::f32), two = tl.fill({1, 1}, DType::f32, 2);
    tl.store(kB, tl.less(a, two));
    tl.store(kB + 64, tl.less_equal(a, two));
    tl.store(kB + 128, tl.equal(a, two));
  });
  expect_ok(message);
  EXPECT_EQ(bench.get(kB, DType::boolean, 3), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(bench.get(kB + 64, DType::boolean, 3), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(bench.get(kB + 128, DType::boolean, 3), (std::vector<double>{0, 1, 0}));
}

/// Less is exact in a double.
TEST_F(PeKernel, ARangeOfIntegersBeginsExactlyWhereItIsToldTo) {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;
  Message& message = bench.launch([](Tl& tl) {
    const Tile begin = tl.arange(2, DType::i64, kOdd), one = tl.fill({1, 2}, DType::i64, 1);
    const Tile even = tl.fill({1, 2}, DType::i64, static_cast<double>(kOdd - 1));
    tl.store(kB, tl.cast(begin - even - one, DType::f64));  // [0, 1]
    const Tile last = tl.arange(2, DType::i64, std::numeric_limits<std::int64_t>::max());
    tl.store(kC, tl.cast(last + one, DType::f64));  // wraps: [least, least + 1]
  });
  expect_ok(message);
  EXPECT_EQ(bench.get(kB, DType::f64, 2), (std::vector<double>{0, 1}));
  EXPECT_EQ(bench.get(kC, DType::f64, 1), (std::vector<double>{-0x1p63}));
}

TEST_F(PeKernel, AnEngineOpTakesItsClosedFormFromTheNextClockEdge) {
  Message& message = bench.launch([](Tl& tl) {
    const Tile a = tl.fill({64, 64}, DType::f16, 1);
    tl.dot(a, a);
  });
  expect_ok(message);
  const PeConfig& config = bench.options.config;
  const Clock math(config.math.clock_hz), gemm(config.gemm.clock_hz);
  const Ps filled =
      math.after(start_of(message) + dispatch(), pe::math_cycles(config.math, MathOp::fill, 64 * 64, DType::f16));
  const Ps product =
      gemm.after(filled, pe::GemmArray(config.gemm).take(0, {64, 64, 64, DType::f16, false, false, false}).done);
  ASSERT_EQ(bench.observer.named("gemm").size(), 1u);
  EXPECT_EQ(bench.observer.named("gemm")[0].start, filled);
  EXPECT_EQ(bench.observer.named("gemm")[0].end, product);
  EXPECT_EQ(Bench::body(message).last_end, product);
}

TEST_F(PeKernel, KnowsWhereItIs) {
  std::vector<std::int64_t> seen;
  Message& message = bench.launch([&](Tl& tl) {
    for (const int axis : {0, 1, 2}) {
      seen.push_back(tl.program_id(axis));
      seen.push_back(tl.num_programs(axis));
    }
  });
  expect_ok(message);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 0, 1, 0, 1}));
}

/// From the arm command to its answer: every packet of it costs PE_CPU `command`.
Ps time_to_arm(Bench& bench, Message& message, std::size_t argument_bytes) {
  message.id = 77;
  LaunchMessage launch;
  launch.kernel = "arguments";
  launch.entry = bind_kernel([](Tl&) {}).entry;
  launch.arguments.resize(argument_bytes);
  launch.targets = {bench.coord(0)};
  message.body = std::move(launch);
  const Ps sent = bench.now();
  bench.send(0, CommandKind::arm, message);
  bench.queue.run_all();
  EXPECT_EQ(bench.answers(message, CommandKind::armed), 1u);
  const Ps time = bench.sent.back().time - sent;
  bench.send(0, CommandKind::abort, message);
  bench.queue.run_all();
  return time;
}

TEST_F(PeKernel, IsRecordedWhenTheLastPacketOfItsArgumentsIsThere) {
  const Ps command = bench.options.config.cpu.command, latency = bench.options.latency;
  std::array<Message, 4> messages;
  EXPECT_EQ(time_to_arm(bench, messages[0], 0), latency + command);
  EXPECT_EQ(time_to_arm(bench, messages[1], 192), latency + command);  // a packet of 256 B with the descriptor of 64 B
  EXPECT_EQ(time_to_arm(bench, messages[2], 193), latency + 2 * command);
  EXPECT_EQ(time_to_arm(bench, messages[3], 4096), latency + 17 * command);
}

struct Mixed {
  std::int32_t small = 0;
  double real = 0;
  friend bool operator==(const Mixed& a, const Mixed& b) { return a.small == b.small && a.real == b.real; }
};

TEST(KernelArguments, AreWhatTheLaunchGaveInOrderAndOfTheKernelsTypes) {
  const auto kernel = [](Va va, std::int64_t count, const Mixed& mixed, bool flag, Direction to, Tl& tl) {
    if (va != 0x1234567890 || count != -7 || !(mixed == Mixed{3, 2.5}) || !flag || to != Direction::local(5))
      throw KernelError("an argument is not what was given");
    tl.fence();
  };
  Bench bench;
  Message message;
  LaunchMessage launch;
  launch.kernel = "k";
  const int count = -7;  // becomes what the parameter is
  const BoundKernel bound = bind_kernel(kernel, Va{0x1234567890}, count, Mixed{3, 2.5}, true, Direction::local(5));
  EXPECT_EQ(bound.arguments.size(), 8u + 8 + 16 + 1 + 2);
  launch.entry = bound.entry;
  launch.arguments = bound.arguments;
  launch.targets = {bench.coord(0)};
  message.body = std::move(launch);
  bench.send(0, CommandKind::arm, message);
  bench.queue.run_all();
  bench.send(0, CommandKind::start, message, bench.now() + 2 * bench.options.latency);
  bench.queue.run_all();
  EXPECT_TRUE(message.faults.empty()) << message.faults.front().str();
  EXPECT_EQ(bench.answers(message, CommandKind::done), 1u);
}

/// What is lost in silence would be found in the results.
TEST(KernelArguments, IntegersThatTheirParameterCannotHoldAreRefused) {
  const auto kernel = [](Va, std::int8_t, std::uint64_t, bool, Tl&) {};
  const auto refused = [&](auto small, auto large) -> std::string {
    try {
      bind_kernel(kernel, Va{0}, small, large, 4);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refused(127, 0), "");
  EXPECT_EQ(refused(-128L, ~std::uint64_t{0}), "");
  EXPECT_EQ(refused(300, 0), "argument 2 is 300; the kernel's parameter holds -128 to 127");
  EXPECT_EQ(refused(1, -1), "argument 3 is -1; the kernel's parameter holds 0 to 18446744073709551615");
}

TEST(KernelArguments, ComeFromFunctionsAndLambdasWithoutCapturesOnly) {
  const int captured = 1;
  const auto free_of = [](Va, int, Tl&) {};
  const auto with = [captured](Tl&) { (void)captured; };
  EXPECT_TRUE(is_kernel_v<decltype(free_of)>);
  EXPECT_TRUE(is_kernel_v<void (*)(double, Tl&)>);
  EXPECT_TRUE(is_kernel_v<void(Tl&)>);
  EXPECT_FALSE(is_kernel_v<decltype(with)>);
  EXPECT_FALSE(is_kernel_v<std::function<void(Tl&)>>);
  EXPECT_FALSE(is_kernel_v<int (*)(Tl&)>);           // returns something
  EXPECT_FALSE((is_kernel_v<void (*)(Tl&, int)>));   // Tl is not the last
  EXPECT_FALSE((is_kernel_v<void (*)(const Tl&)>));  // nothing could be recorded
}

TEST_F(PeKernel, ShardIsThisPesTileOrEmpty) {
  std::vector<ShardView> seen;
  Message& message = bench.prepare({{std::uint16_t{0}, [](Tl&) {}}});
  bench.queue.run_all();
  LaunchMessage launch;
  launch.kernel = "shards";
  launch.targets = {bench.coord(0)};
  launch.tensors = {{kA, {{{0, 0, 1}, 0, 64, 1, 32}, {{0, 0, 0}, 64, 32, 2, 8}}}, {kB, {{{0, 0, 1}, 0, 64, 1, 32}}}};
  BoundKernel kernel = bind_kernel(run_test_body, test_body([&](Tl& tl) { seen = {tl.shard(kA), tl.shard(kB)}; }));
  launch.entry = kernel.entry;
  launch.arguments = std::move(kernel.arguments);
  message.body = launch;
  bench.send(0, CommandKind::arm, message);
  bench.queue.run_all();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].va, kA + 64);
  EXPECT_EQ(seen[0].rows, 2);
  EXPECT_EQ(seen[0].cols, 8);
  EXPECT_EQ(seen[1].count(), 0);
}

TEST_F(PeKernel, EmptyTilesCostTheirDispatchOnly) {
  Message& message = bench.launch([](Tl& tl) { tl.store(kC, tl.load(kA, {0, 16}, DType::f16)); });
  expect_ok(message);
  EXPECT_EQ(bench.duration(message), 2 * dispatch());
}

TEST_F(PeKernel, AReductionWithoutElementsIsEmpty) {
  std::vector<Shape> shapes;
  Message& message = bench.launch([&](Tl& tl) {
    for (const int axis : {0, 1}) {
      const Tile empty = tl.alloc(axis == 0 ? Shape{5, 0} : Shape{0, 5}, DType::f32);
      const Tile sums = tl.reduce(ReduceKind::sum, empty, axis);
      shapes.push_back(sums.shape());
      tl.store(kC, sums);
    }
  });
  expect_ok(message);
  EXPECT_EQ(shapes, (std::vector<Shape>{{1, 0}, {0, 1}}));
  EXPECT_EQ(bench.duration(message), 4 * dispatch());
}

TEST_F(PeKernel, WaitAndFenceStallPeCpu) {
  Message& message = bench.launch([](Tl& tl) {
    const Tile a = tl.load(kA, {1, 128}, DType::f16);
    tl.mark("before");
    tl.wait(a);
    tl.mark("loaded");
    tl.store(kC, a);
    tl.fence();
    tl.mark("stored");
  });
  expect_ok(message);
  const auto marks = bench.observer.named("mark");
  ASSERT_EQ(marks.size(), 3u);
  const Ps loaded = start_of(message) + dispatch() + round_trip() + tcm_time(256);
  const Ps stored = loaded + 2 * dispatch() + tcm_time(256) + round_trip();
  EXPECT_EQ(marks[0].start, start_of(message) + 2 * dispatch());
  EXPECT_EQ(marks[1].start, loaded + dispatch());
  EXPECT_EQ(marks[2].start, stored + dispatch());
  EXPECT_EQ(marks[0].end, marks[1].start);  // a slice lasts until the next mark
  EXPECT_EQ(marks[0].params[0].text, "before");
}

class PeSetup : public PeKernel {
 protected:
  static Bench::Options options() {
    Bench::Options o;
    o.config.dma.setup = 7'000;
    o.config.mmu.walk = 11'000;
    o.config.mmu.page_bytes = 4096;
    o.config.mmu.tlb_entries = 2;
    return o;
  }
  PeSetup() : PeKernel(options()) {}
};

TEST_F(PeSetup, SetupPerOpAndWalkPerMissStopIssue) {
  Message& cold = bench.launch([](Tl& tl) { tl.load(kA, {1, 128}, DType::f16); });
  EXPECT_EQ(bench.duration(cold), dispatch() + 7'000 + 11'000 + round_trip() + tcm_time(256));
  Message& warm = bench.launch([](Tl& tl) { tl.load(kA, {1, 128}, DType::f16); });
  EXPECT_EQ(bench.duration(warm), dispatch() + 7'000 + round_trip() + tcm_time(256));
  Message& next_page = bench.launch([](Tl& tl) { tl.load(kA + 4096 - 256, {1, 256}, DType::f16); });
  // Its first burst is on its way during the walk for the second.
  EXPECT_EQ(bench.duration(next_page), dispatch() + 7'000 + 11'000 + round_trip() + tcm_time(256));
}

/// Ports are pipelined: what leaves TCM is later by its latency, not slower.
class PeTcmLatency : public PeKernel {
 protected:
  static constexpr Ps kLatency = 100'000;
  static Bench::Options options(Ps latency, std::uint16_t pes) {
    Bench::Options o;
    o.pes = pes;
    o.config.tcm.latency = latency;
    return o;
  }
  PeTcmLatency() : PeKernel(options(kLatency, 2)) {}
};

TEST_F(PeTcmLatency, IsPaidOnceByAStoreHoweverManyBurstsItHas) {
  Message& message = bench.launch([](Tl& tl) { tl.store(kC, tl.alloc({1, 4096}, DType::f16)); });
  expect_ok(message);
  std::vector<Ps> bursts;
  for (const auto& packet : bench.sent) {
    if (packet.kind == PacketKind::write) bursts.push_back(packet.time);
  }
  ASSERT_EQ(bursts.size(), 32U);
  for (std::size_t i = 0; i < bursts.size(); ++i)
    EXPECT_EQ(bursts[i], start_of(message) + dispatch() + (i + 1) * tcm_time(kBurst) + kLatency) << i;
  EXPECT_EQ(bench.duration(message), dispatch() + 32 * tcm_time(kBurst) + kLatency + round_trip());
}

TEST_F(PeTcmLatency, OfAStoreHoldsNoMoreBurstsThanMayBeOutstanding) {
  const auto outstanding = std::uint64_t{bench.options.config.dma.outstanding};
  Message& message = bench.launch([&](Tl& tl) {
    tl.store(kC, tl.alloc({1, static_cast<std::int64_t>(outstanding * kBurst)}, DType::f16));
  });
  expect_ok(message);  // two rounds, each with a way from TCM of its own
  EXPECT_EQ(bench.duration(message),
            dispatch() + 2 * (tcm_time(kBurst) + kLatency + round_trip()) + (outstanding - 1) * tcm_time(kBurst));
}

TEST_F(PeTcmLatency, KeepsATileUntilTheLastOfItHasLeft) {
  bench.put(kA, DType::f16, std::vector<double>(2048, 1));
  bench.put(kB, DType::f16, std::vector<double>(2048, 2));
  const auto share =
      static_cast<std::int64_t>(bench.options.config.tcm.bytes / bench.options.config.cpu.kernel_contexts);
  Message& message = bench.launch([share](Tl& tl) {
    // All but so much is taken: the second load gets the place of the first.
    const Tile others = tl.alloc({1, share - 4096}, DType::i8);
    tl.store(kC, tl.load(kA, {1, 2048}, DType::f16));
    tl.store(kC + 0x10000, tl.load(kB, {1, 2048}, DType::f16));
  });
  expect_ok(message);
  EXPECT_EQ(bench.get(kC, DType::f16, 2048), std::vector<double>(2048, 1));
  EXPECT_EQ(bench.get(kC + 0x10000, DType::f16, 2048), std::vector<double>(2048, 2));
  const auto loads = bench.observer.named("dma_read");
  ASSERT_EQ(loads.size(), 2U);
  EXPECT_EQ(loads[1].start, loads[0].end + 16 * tcm_time(kBurst) + kLatency);
}

/// TCM of four tiles of 4 KiB.
Bench::Options four_tiles() {
  Bench::Options options;
  options.config.tcm.bytes = 16 << 10;
  options.config.cpu.kernel_contexts = 1;
  return options;
}
constexpr Shape kQuarter{1, 4096};

TEST(PeTcm, NobodyGetsThePlaceOfATileThatIsHeldWhileThereAreOthers) {
  Bench bench(four_tiles());
  Message& message = bench.launch([](Tl& tl) {
    std::uint64_t held = 0;
    {
      const Tile tile = tl.alloc(kQuarter, DType::i8);
      held = tile.state().tcm;
      tl.hold(tile, 1);
    }
    for (int i = 0; i < 9; ++i) EXPECT_NE(tl.alloc(kQuarter, DType::i8).state().tcm, held);
    tl.hold(tl.alloc(kQuarter, DType::i8), 1, 1);  // another list's
    for (int i = 0; i < 9; ++i) EXPECT_NE(tl.alloc(kQuarter, DType::i8).state().tcm, held);
    tl.hold(tl.alloc(kQuarter, DType::i8), 1);  // the one before is held no longer
    bool free = false;
    for (int i = 0; i < 9; ++i) free = free || tl.alloc(kQuarter, DType::i8).state().tcm == held;
    EXPECT_TRUE(free);
  });
  EXPECT_TRUE(message.faults.empty());
}

TEST(PeTcm, WhatIsHeldIsGivenUpTheOldestFirstWhereNothingElseIsFree) {
  Bench bench(four_tiles());
  Message& message = bench.launch([](Tl& tl) {
    EXPECT_EQ(tl.tcm(), 16u << 10);
    std::vector<std::uint64_t> held;
    for (unsigned list : {1u, 0u}) {
      const Tile tile = tl.alloc(kQuarter, DType::i8);
      held.push_back(tile.state().tcm);
      tl.hold(tile, 4, list);
    }
    const Tile third = tl.alloc(kQuarter, DType::i8), fourth = tl.alloc(kQuarter, DType::i8);
    const Tile first = tl.alloc(kQuarter, DType::i8), second = tl.alloc(kQuarter, DType::i8);
    EXPECT_EQ((std::vector<std::uint64_t>{first.state().tcm, second.state().tcm}), held);
  });
  EXPECT_TRUE(message.faults.empty());
}

}  // namespace
}  // namespace kernbench
