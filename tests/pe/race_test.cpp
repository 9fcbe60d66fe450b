// --debug: PEs that race on a range of memory, kernels that meet in a queue, tiles that nothing wrote.
#include <algorithm>

#include "models/pe/cpu/race_detector.h"
#include "tests/pe/harness.h"

namespace kernbench {
namespace {

using test::Bench;

constexpr Va kShared = 0x10000, kResult = 0x20000;
const Direction kToEast = Direction::east(), kToWest = Direction::west();

/// Two PEs with a queue pair between them, under --debug; counts the warnings.
struct Races {
  Races() : bench(options()) {
    texts().clear();
    sc_core::sc_report_handler::set_handler([](const sc_core::sc_report& report, const sc_core::sc_actions& actions) {
      if (std::string(report.get_msg_type()) == "kernbench/race") {
        texts().push_back(report.get_msg());
      } else {
        sc_core::sc_report_handler::default_handler(report, actions);
      }
    });
    bench.map_hbm(0, 1 << 24);
    bench.join(0, 1);
    bench.races.share(&kinds);
  }
  ~Races() { sc_core::sc_report_handler::set_handler(nullptr); }
  static Bench::Options options() {
    Bench::Options options;
    options.pes = 2;
    options.run.debug = true;
    return options;
  }
  static std::vector<std::string>& texts() {
    static std::vector<std::string> list;
    return list;
  }
  std::size_t count(std::function<void(Tl&)> first, std::function<void(Tl&)> second) {
    texts().clear();
    kinds.clear();
    Message& message = bench.launch({{std::uint16_t{0}, std::move(first)}, {std::uint16_t{1}, std::move(second)}});
    EXPECT_EQ(bench.answers(message, CommandKind::done), 2u);
    return texts().size();
  }
  std::vector<RaceKind> kinds;  ///< of the last launch
  Bench bench;
};

Tile value(Tl& tl) { return tl.fill({1, 32}, DType::f16, 1); }
void put(Tl& tl, Va va) { tl.store(va, value(tl)); }
void get(Tl& tl, Va va) {
  tl.store(kResult + 0x1000 * static_cast<Va>(tl.program_id(0)), tl.load(va, {1, 32}, DType::f16));
}

TEST(PeRaces, TwoWritersOfAByteAreReportedWithTheirOpsAndTheRange) {
  Races races;
  EXPECT_EQ(races.count([](Tl& tl) { put(tl, kShared); }, [](Tl& tl) { put(tl, kShared + 62); }), 1u);
  const std::string& text = Races::texts().at(0);
  EXPECT_NE(text.find("kernel 'k': sip0.cube0.pe"), std::string::npos) << text;
  EXPECT_NE(text.find("store(0x10000, 1x32 f16)"), std::string::npos) << text;
  EXPECT_NE(text.find("store(0x1003e, 1x32 f16)"), std::string::npos) << text;
  EXPECT_NE(text.find("race on 2 B at"), std::string::npos) << text;
}

TEST(PeRaces, TheSameMistakeIsSaidOnceAndCounted) {
  Races races;
  const auto writer = [](Tl& tl) {
    for (Va at = 0; at < 128; ++at) put(tl, kShared + 0x100 * at);
  };
  EXPECT_EQ(races.count(writer, writer), 1u);
  ASSERT_EQ(races.kinds.size(), 1u);
  EXPECT_EQ(races.kinds[0].races, 128u);
  EXPECT_EQ(races.kinds[0].kernel, "k");
  EXPECT_EQ(races.kinds[0].first_op, "store(..., 1x32 f16)");
  EXPECT_NE(Races::texts().at(0).find("a fence() behind the store, then a send(); on the other PE wait() for what "
                                      "recv() gives"),
            std::string::npos)
      << Races::texts().at(0);
}

// A PE with nothing to do may have ended before another one's first access.
TEST(RaceDetector, ForgetsALaunchWhenAllOfItsPesHaveEndedInWhateverOrder) {
  RaceDetector detector;
  const PeCoord idle{0, 0, 0}, busy{0, 0, 1};
  Message message;
  message.id = 1;
  LaunchMessage launch;
  launch.targets = {idle, busy};
  message.body = launch;
  const auto text = std::make_shared<const std::string>("op");
  const PhysicalAddress at = PhysicalAddress::hbm(busy, 0);
  std::vector<RaceDetector::Race> races;
  detector.ended(message, idle);
  detector.access(message, busy, text, at, 64, true, races);
  detector.ended(message, busy);
  detector.access(message, idle, text, at, 64, false, races);
  EXPECT_TRUE(races.empty()) << "a launch after it";
  detector.access(message, busy, text, at, 64, true, races);
  EXPECT_EQ(races.size(), 1U) << "in one";
}

TEST(PeRaces, NeighbouringRangesReadersAndLaunchesOneAfterTheOtherAreFine) {
  Races races;
  EXPECT_EQ(races.count([](Tl& tl) { put(tl, kShared); }, [](Tl& tl) { put(tl, kShared + 64); }), 0u);
  EXPECT_EQ(races.count([](Tl& tl) { get(tl, kShared); }, [](Tl& tl) { get(tl, kShared); }), 0u);
  EXPECT_EQ(races.count([](Tl& tl) { put(tl, kShared + 64); }, [](Tl& tl) { put(tl, kShared); }), 0u);
}

TEST(PeRaces, AFenceThenAMessageOrdersAStoreAndAMessageAloneDoesNot) {
  Races races;
  const auto reader = [](Tl& tl) {
    tl.wait(tl.recv(kToWest, {1, 32}, DType::f16));
    get(tl, kShared);
  };
  const auto fenced = [](Tl& tl) {
    put(tl, kShared);
    tl.fence();
    tl.send(kToEast, value(tl));
  };
  const auto hasty = [](Tl& tl) {
    put(tl, kShared);
    tl.send(kToEast, value(tl));
  };
  const auto late = [](Tl& tl) {
    tl.send(kToEast, value(tl));
    tl.fence();
    put(tl, kShared);
  };
  EXPECT_EQ(races.count(fenced, reader), 0u);
  EXPECT_EQ(races.count(hasty, reader), 1u);
  EXPECT_EQ(races.count(late, reader), 1u);
}

TEST(PeRaces, AMessageAfterAReadOrdersTheWriteBehindIt) {
  Races races;
  const auto reader = [](Tl& tl) { tl.send(kToEast, tl.load(kShared, {1, 32}, DType::f16)); };
  const auto writer = [](Tl& tl) {
    tl.wait(tl.recv(kToWest, {1, 32}, DType::f16));
    put(tl, kShared);
  };
  EXPECT_EQ(races.count(reader, writer), 0u);
  EXPECT_EQ(races.count(reader,
                        [](Tl& tl) {
                          put(tl, kShared);
                          tl.recv(kToWest, {1, 32}, DType::f16);
                        }),
            1u);
}

/// The second kernel's message is what the first one's peer takes: nothing in a queue says whose it is.
TEST(PeRaces, KernelsOfTwoStreamsInOneQueueAreReportedWithBothNames) {
  Races races;
  const auto number = [](Tl& tl) { return tl.fill({1, 4}, DType::f16, 1); };
  races.bench.ending = Bench::Ending::waiting;
  Message& first = races.bench.launch({{std::uint16_t{0},
                                        [&](Tl& tl) {
                                          tl.send(kToEast, number(tl));
                                          tl.wait(tl.recv(kToEast, {1, 4}, DType::f16));
                                        }},
                                       {std::uint16_t{1},
                                        [&](Tl& tl) {
                                          for (int i = 0; i < 2; ++i) tl.wait(tl.recv(kToWest, {1, 4}, DType::f16));
                                          tl.send(kToWest, number(tl));
                                        }}},
                                      "first");
  EXPECT_TRUE(Races::texts().empty());
  Message& second = races.bench.launch({{std::uint16_t{0}, [&](Tl& tl) { tl.send(kToEast, number(tl)); }}}, "second");
  EXPECT_TRUE(races.bench.completed(first));
  EXPECT_TRUE(races.bench.completed(second));
  ASSERT_EQ(Races::texts().size(), 1U);
  EXPECT_EQ(Races::texts()[0],
            "kernel 'second' of stream " + std::to_string(second.stream) +
                " on sip0.cube0.pe0: send(E, 1x4 f16) sends to sip0.cube0.pe1 in the queue of group 0 that kernel "
                "'first' of stream " +
                std::to_string(first.stream) +
                " uses meanwhile: whose message is whose depends on timing. Launch them in one stream, or give them "
                "groups of their own");
  ASSERT_EQ(races.kinds.size(), 1U);
  EXPECT_EQ(races.kinds[0].kernel, "second");
}

TEST(PeRaces, KernelsThatUseAQueueOneAfterTheOtherAreFine) {
  Races races;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(races.count([](Tl& tl) { tl.send(kToEast, value(tl)); },
                          [](Tl& tl) {
                            tl.recv(kToWest, {1, 32}, DType::f16);
                          }),
              0U);
  }
}

// ---- What nobody has written ----

/// The warnings of a launch on one PE.
std::vector<std::string> unwritten(Bench& bench, std::function<void(Tl&)> body) {
  static std::vector<std::string> texts;
  texts.clear();
  sc_core::sc_report_handler::set_handler([](const sc_core::sc_report& report, const sc_core::sc_actions&) {
    if (std::string(report.get_msg_type()) == "kernbench/unwritten") texts.push_back(report.get_msg());
  });
  bench.launch(std::move(body));
  sc_core::sc_report_handler::set_handler(nullptr);
  return texts;
}

TEST(PeUnwritten, AnOpThatReadsATileOfAllocIsReportedInDebug) {
  Bench::Options options;
  options.run.debug = true;
  Bench bench(options), silent;
  bench.map_hbm(0, 1 << 24);
  silent.map_hbm(0, 1 << 24);
  const auto store = [](Tl& tl) { tl.store(kShared, tl.alloc({1, 64}, DType::f32)); };
  EXPECT_EQ(unwritten(bench, store),
            std::vector<std::string>{"kernel 'k' on sip0.cube0.pe0: store(0x10000, 1x64 f32) reads a tile of alloc, "
                                     "which no op has written"});
  EXPECT_EQ(unwritten(bench,
                      [](Tl& tl) {
                        const Tile part = tl.slice(tl.alloc({2, 64}, DType::f32), 1, 1);
                        tl.store(kShared, part + tl.fill({1, 64}, DType::f32, 1));
                      })
                .size(),
            1U)
      << "the sum is written";
  EXPECT_TRUE(unwritten(bench, [](Tl& tl) {
                const Tile never_read = tl.alloc({2, 64}, DType::f32);
                tl.store(kShared, tl.alloc({1, 0}, DType::f32));
                tl.store(kShared, tl.load(kShared, {1, 64}, DType::f32));
              }).empty());
  EXPECT_LE(unwritten(bench,
                      [&](Tl& tl) {
                        for (int i = 0; i < 20; ++i) store(tl);
                      })
                .size(),
            10U);
  EXPECT_TRUE(unwritten(silent, store).empty());
}

TEST(PeUnwritten, ALoadOfAnotherPesTcmIsReportedInDebug) {
  Bench bench(Races::options());
  constexpr Va kRemote = 0x7000000;
  bench.map_hbm(0, 1 << 24);
  bench.pages.map({kRemote, 4096, PhysicalAddress::tcm(bench.coord(1), 0x800000), {}});
  const auto load = [](Tl& tl) { tl.store(kShared, tl.load(kRemote, {1, 64}, DType::f16)); };
  EXPECT_EQ(unwritten(bench, load), std::vector<std::string>{"sip0.cube0.pe1.tcm: a read of 128 B at " +
                                                             PhysicalAddress::tcm(bench.coord(1), 0x800000).str() +
                                                             " returns bytes that nobody wrote"});
  EXPECT_TRUE(unwritten(bench, [&](Tl& tl) {
                tl.store(kRemote, tl.fill({1, 64}, DType::f16, 1));
                load(tl);
              }).empty());
}

}  // namespace
}  // namespace kernbench
