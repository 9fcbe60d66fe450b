// What waits for what: hazards, queues, contexts, the recorder's window.
#include <algorithm>

#include "tests/pe/harness.h"

namespace kernbench {
namespace {

using test::Bench;

constexpr Va kFirst = 0x10000, kSecond = 0x20000, kThird = 0x30000, kFourth = 0x40000;

std::vector<OpRecord> of(const Bench& bench, const std::string& name) {
  auto list = bench.observer.named(name);
  std::stable_sort(list.begin(), list.end(), [](const OpRecord& a, const OpRecord& b) { return a.op < b.op; });
  return list;
}

std::string param(const OpRecord& record, const std::string& name) {
  for (const OpRecord::Param& p : record.params) {
    if (p.name == name) return p.text;
  }
  return "";
}

TEST(PeOrder, AnOpStartsWhenItsOperandsAreComplete) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.launch([](Tl& tl) { tl.store(kSecond, tl.math(MathOp::neg, {tl.load(kFirst, {1, 128}, DType::f16)})); });
  EXPECT_EQ(of(bench, "math")[0].start, of(bench, "dma_read")[0].end);
  EXPECT_EQ(of(bench, "dma_write")[0].start, of(bench, "math")[0].end);
}

TEST(PeOrder, IndependentOpsOverlap) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.launch([](Tl& tl) {
    const Tile a = tl.load(kFirst, {1, 128}, DType::f16), b = tl.load(kSecond, {1, 128}, DType::f16);
  });
  const auto loads = of(bench, "dma_read");
  EXPECT_EQ(loads[1].start, loads[0].start + bench.options.config.cpu.dispatch);
  EXPECT_LT(loads[1].start, loads[0].end);
}

TEST(PeOrder, AStoreIsSeenByALaterLoadOfTheSameBytes) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.launch([](Tl& tl) {
    tl.store(kFirst, tl.fill({1, 4}, DType::f32, 5));
    tl.store(kSecond, tl.load(kFirst + 8, {1, 1}, DType::f32));
    tl.load(kFirst + 16, {1, 1}, DType::f32);  // next to it: no hazard
  });
  const auto loads = of(bench, "dma_read");
  EXPECT_EQ(loads[0].start, of(bench, "dma_write")[0].end);
  EXPECT_EQ(bench.get(kSecond, DType::f32, 1)[0], 5);
}

TEST(PeOrder, AStoreWaitsForAnEarlierLoadOfTheSameBytes) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.put(kFirst, DType::f32, {1, 2, 3, 4});
  bench.launch([](Tl& tl) {
    const Tile zero = tl.fill({1, 4}, DType::f32, 0);
    tl.wait(zero);
    const Tile old = tl.load(kFirst, {1, 4}, DType::f32);
    tl.store(kFirst, zero);
    tl.store(kSecond, old);
  });
  EXPECT_EQ(of(bench, "dma_write")[0].start, of(bench, "dma_read")[0].end);
  EXPECT_EQ(bench.get(kSecond, DType::f32, 4), (std::vector<double>{1, 2, 3, 4}));
}

TEST(PeOrder, AReusedTcmRangeWaitsForItsReadersButNotForTheirAcknowledgements) {
  Bench bench;
  bench.map_hbm(0, 1 << 20);
  bench.put(kFirst, DType::f32, {1, 2});
  bench.put(kSecond, DType::f32, {3, 4});
  const PeConfig& config = bench.options.config;
  const auto share = static_cast<std::int64_t>(config.tcm.bytes / config.cpu.kernel_contexts);
  bench.launch([share](Tl& tl) {
    const Tile all_but_one_line = tl.alloc({1, share - 64}, DType::i8);
    {
      const Tile a = tl.load(kFirst, {1, 2}, DType::f32);
      tl.store(kThird, a);
    }
    tl.store(kFourth, tl.load(kSecond, {1, 2}, DType::f32));
  });
  const auto loads = of(bench, "dma_read"), stores = of(bench, "dma_write");
  EXPECT_EQ(param(loads[0], "dst"), param(loads[1], "dst"));
  Ps source_read = 0;
  for (const auto& packet : bench.sent) {
    if (packet.kind == PacketKind::write && source_read == 0) source_read = packet.time;
  }
  EXPECT_EQ(loads[1].start, source_read);
  EXPECT_LT(loads[1].start, stores[0].end);
  EXPECT_EQ(bench.get(kThird, DType::f32, 2), (std::vector<double>{1, 2}));
  EXPECT_EQ(bench.get(kFourth, DType::f32, 2), (std::vector<double>{3, 4}));
}

/// When the op after `ops` fills was issued: one runs, two wait in the queue, the next one does not fit.
void fill_and_mark(Bench& bench, int ops) {
  bench.launch([ops](Tl& tl) {
    for (int i = 0; i < ops; ++i) tl.fill({512, 512}, DType::f16, 0);
    tl.mark("issued");
  });
}

TEST(PeOrder, OnlyAFullQueueStallsPeCpu) {
  Bench::Options options;
  options.config.math.queue_depth = 2;
  Bench fits(options), full(options);
  fill_and_mark(fits, 3);
  fill_and_mark(full, 4);
  const Ps dispatch = options.config.cpu.dispatch;
  const Ps start = fits.observer.named("math")[0].start - dispatch;
  EXPECT_EQ(fits.observer.named("mark")[0].start, start + 4 * dispatch);
  EXPECT_EQ(full.observer.named("mark")[0].start, full.observer.named("math")[0].end + 2 * dispatch);
}

/// One context: a launch that runs, one of another stream that waits for the context, and one that follows the first.
struct Successors {
  static Bench::Options one_context() {
    Bench::Options options;
    options.config.cpu.kernel_contexts = 1;
    return options;
  }
  static void nothing(Tl&) {}
  Bench bench{one_context()};
  Message& first = bench.prepare({{0, [](Tl& tl) { tl.fill({512, 512}, DType::f16, 0); }}}, "first");
  Message& other = bench.message({{0, nothing}}, "other");
  Message& next = bench.message({{0, nothing}}, "next");
  Successors() {
    next.stream = first.stream;
    bench.send(0, CommandKind::arm, other);
    bench.send(0, CommandKind::arm, next);
  }
  void start(Message& message) {
    bench.send(0, CommandKind::start, message, bench.now() + 2 * bench.options.latency);
    bench.queue.run_all();
  }
};

TEST(PeOrder, ALaunchBehindOneOfItsStreamIsArmedWhileThatOneRunsAndGetsItsContext) {
  Successors pe;
  pe.bench.queue.run_all();
  EXPECT_EQ(pe.bench.answers(pe.first, CommandKind::done), 1u);
  EXPECT_EQ(pe.bench.answers(pe.next, CommandKind::armed), 1u);
  EXPECT_EQ(pe.bench.answers(pe.other, CommandKind::armed), 0u);
  ASSERT_EQ(pe.bench.sent.size(), 3u);  // armed, armed, done
  EXPECT_LT(pe.bench.sent[1].time, Bench::body(pe.first).last_end);
  std::vector<Blocked> blocked;
  pe.bench.pe(0).explain(blocked);
  EXPECT_TRUE(blocked.empty()) << "it waits for the PEs where the first still runs: they are in the list";
  EXPECT_EQ(pe.bench.sent[2].time, Bench::body(pe.first).last_end);
  pe.start(pe.next);
  EXPECT_EQ(pe.bench.answers(pe.next, CommandKind::done), 1u);
  EXPECT_EQ(pe.bench.answers(pe.other, CommandKind::armed), 1u);
  pe.start(pe.other);
  EXPECT_EQ(pe.bench.answers(pe.other, CommandKind::done), 1u);
}

TEST(PeOrder, ALaunchThatIsAbortedBehindOneOfItsStreamLeavesTheContextToOthers) {
  Successors pe;
  pe.bench.send(0, CommandKind::abort, pe.next);
  pe.bench.queue.run_all();
  EXPECT_EQ(pe.bench.answers(pe.next, CommandKind::failed), 1u);
  EXPECT_EQ(pe.bench.answers(pe.other, CommandKind::armed), 1u);
  pe.start(pe.other);
  EXPECT_EQ(pe.bench.answers(pe.other, CommandKind::done), 1u);
}

/// Something of everything, for comparisons of whole runs.
void everything(Tl& tl) {
  const bool left = tl.program_id(0) == 0;
  const Direction peer = left ? Direction::east() : Direction::west();
  tl.mark("load");
  Tile sum = tl.load(kFirst, {16, 32}, DType::f16);
  for (int i = 0; i < 6; ++i) {
    tl.send(peer, sum);
    const Tile other = tl.recv_async(peer, {16, 32}, DType::f16);
    const Tile product = tl.dot(sum, tl.transpose(sum));
    tl.wait(other);
    sum = sum + other;
    tl.store(kSecond + 4096 * static_cast<Va>(i) + (left ? 0 : 0x40000), tl.softmax(product));
  }
  tl.fence();
  tl.mark("composite");
  CompositeGemm gemm;
  gemm.a = kFirst;
  gemm.b = kFirst;
  gemm.c = left ? 0x200000 : 0x300000;
  gemm.m = gemm.n = gemm.k = 96;
  gemm.epilogue.activation = Activation::relu;
  tl.composite_gemm(gemm);
  tl.store(left ? kThird : kFourth, sum);
}

void run_everything(Bench& bench) {
  bench.map_hbm(0, 1 << 24);
  std::vector<double> values;
  for (int i = 0; i < 96 * 96; ++i) values.push_back((i * 7 % 13 - 6) / 8.0);
  bench.put(kFirst, DType::f16, values);
  bench.join(0, 1);
  Message& message = bench.launch({{std::uint16_t{0}, everything}, {std::uint16_t{1}, everything}});
  EXPECT_TRUE(message.faults.empty()) << message.faults.front().reason;
  EXPECT_EQ(bench.answers(message, CommandKind::done), 2u);
}

TEST(PeOrder, TheRecordersWindowChangesNothing) {
  Bench::Options options;
  options.pes = 2;
  options.run.recorder_window = 1;
  Bench narrow(options);
  options.run.recorder_window = 4096;
  Bench wide(options);
  run_everything(narrow);
  run_everything(wide);
  EXPECT_GT(narrow.observer.ops.size(), 100u);
  EXPECT_EQ(narrow.observer.lines(), wide.observer.lines());
  EXPECT_EQ(narrow.get(kThird, DType::f16, 512), wide.get(kThird, DType::f16, 512));
  EXPECT_EQ(narrow.get(0x200000, DType::f16, 96 * 96), wide.get(0x200000, DType::f16, 96 * 96));
}

TEST(PeOrder, TimesDoNotDependOnData) {
  Bench::Options options;
  options.pes = 2;
  Bench with(options);
  options.run.data = false;
  Bench without(options);
  run_everything(with);
  run_everything(without);
  EXPECT_EQ(with.observer.lines(), without.observer.lines());
}

TEST(PeOrder, PublishingChangesNothing) {
  Bench::Options options;
  options.pes = 2;
  Bench observed(options);
  options.observe = false;
  Bench silent(options);
  run_everything(observed);
  run_everything(silent);
  EXPECT_EQ(observed.now(), silent.now());
  EXPECT_TRUE(silent.observer.ops.empty());
}

TEST(PeOrder, OneKernelRunsWhileAnotherWaits) {
  Bench::Options options;
  options.pes = 2;
  Bench bench(options);
  bench.map_hbm(0, 1 << 20);
  bench.join(0, 1);
  const auto receive = [](Tl& tl) { tl.recv(Direction::east(), {1, 8}, DType::f16); };
  bench.ending = Bench::Ending::waiting;
  Message& waiting = bench.launch({{std::uint16_t{0}, receive}}, "waiting");
  EXPECT_FALSE(bench.completed(waiting));
  Message& other = bench.launch({{std::uint16_t{0}, [](Tl& tl) { tl.fill({1, 8}, DType::f16, 1); }}}, "other");
  EXPECT_TRUE(bench.completed(other));
  Message& sender = bench.launch({{std::uint16_t{1},
                                   [](Tl& tl) {
                                     tl.send(Direction::west(), tl.fill({1, 8}, DType::f16, 1));
                                   }}},
                                 "sender");
  EXPECT_TRUE(bench.completed(sender));
  EXPECT_TRUE(bench.completed(waiting));
}

TEST(PeOrder, AThirdLaunchIsArmedWhenAContextIsFree) {
  Bench::Options options;
  options.pes = 2;
  Bench bench(options);
  bench.join(0, 1);
  const auto receive = [](Tl& tl) { tl.recv(Direction::east(), {1, 8}, DType::f16); };
  bench.ending = Bench::Ending::waiting;
  bench.launch({{std::uint16_t{0}, receive}}, "first");
  bench.ending = Bench::Ending::waiting;
  bench.launch({{std::uint16_t{0}, receive}}, "second");
  Message third;
  LaunchMessage launch;
  launch.kernel = "third";
  launch.entry = bind_kernel([](Tl&) {}).entry;
  launch.targets = {bench.coord(0)};
  third.body = launch;
  bench.send(0, CommandKind::arm, third);
  bench.queue.run_all();
  EXPECT_EQ(bench.answers(third, CommandKind::armed), 0u);
  bench.launch({{std::uint16_t{1}, [](Tl& tl) { tl.send(Direction::west(), tl.fill({1, 8}, DType::f16, 1)); }}});
  EXPECT_EQ(bench.answers(third, CommandKind::armed), 1u);
}

TEST(PeOrder, AllPesOfALaunchStartInOneInstant) {
  Bench::Options options;
  options.pes = 4;
  Bench bench(options);
  Bench::Bodies bodies;
  for (std::uint16_t pe = 0; pe < 4; ++pe) bodies[pe] = [](Tl& tl) { tl.fill({1, 8}, DType::f16, 1); };
  bench.launch(bodies);
  const auto fills = bench.observer.named("math");
  ASSERT_EQ(fills.size(), 4u);
  for (const OpRecord& fill : fills) EXPECT_EQ(fill.start, fills[0].start);
}

TEST(PeOrder, ASuspendedKernelIsUnwoundAtTeardown) {
  struct Counter {
    int& alive;
    explicit Counter(int& alive) : alive(alive) { ++alive; }
    ~Counter() { --alive; }
  };
  int alive = 0;
  {
    Bench::Options options;
    options.pes = 2;
    options.run.recorder_window = 1;
    Bench bench(options);
    bench.map_hbm(0, 1 << 20);
    bench.join(0, 1);
    bench.ending = Bench::Ending::waiting;
    bench.launch([&alive](Tl& tl) {
      const Counter counter(alive);
      const Tile a = tl.recv(Direction::east(), {1, 8}, DType::f16);
      tl.wait(a);
      tl.store(kFirst, a);
      tl.store(kSecond, a);
    });
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(bench.stacks.in_use(), 1u);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace kernbench
