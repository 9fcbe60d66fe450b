// The PE's plain rules: TCM allocation, IPCQ rings and credits, MMU and page table, engine formulas.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "models/pe/compute/compute_timing.h"
#include "models/pe/dma/mmu.h"
#include "models/pe/ipcq/ipcq_rules.h"
#include "models/pe/tcm/tcm_arena.h"
#include "models/pe/tcm/tcm_timing.h"

namespace kernbench::pe {
namespace {

// ---- TCM ----

TEST(TcmArena, WalksThroughItsWindowBeforeItReusesARange) {
  constexpr std::uint64_t kTile = 16 << 10, kTiles = TcmArena::kWindow / kTile;
  TcmArena arena(0, 1 << 20);
  std::set<std::uint64_t> offsets;
  for (std::uint64_t i = 0; i < 3 * kTiles; ++i) {  // as a loop does whose tile dies with each turn
    const auto at = arena.allocate(kTile, {});
    EXPECT_EQ(at, i % kTiles * kTile);
    offsets.insert(*at);
    arena.release(*at, kTile);
  }
  EXPECT_EQ(offsets.size(), kTiles);
}

TEST(TcmArena, TheWindowIsTwiceWhatIsInUse) {
  constexpr std::uint64_t kTile = 16 << 10, kLong = TcmArena::kWindow;
  TcmArena arena(0, 4 << 20);
  ASSERT_EQ(arena.allocate(kLong, {}), 0u);  // lives on
  std::set<std::uint64_t> offsets;
  for (int i = 0; i < 100; ++i) {
    const auto at = arena.allocate(kTile, {});
    EXPECT_GE(*at, kLong);
    EXPECT_LE(*at + kTile, 2 * (kLong + kTile));
    offsets.insert(*at);
    arena.release(*at, kTile);
  }
  // As many places to walk through as without it.
  EXPECT_GE(offsets.size(), TcmArena::kWindow / kTile);
  arena.release(0, kLong);
  for (int i = 0; i < 100; ++i) {
    const auto at = arena.allocate(kTile, {});
    EXPECT_LE(*at + kTile, TcmArena::kWindow);
    arena.release(*at, kTile);
  }
}

TEST(TcmArena, TakesTheLowestFreeRangeOnceTheWindowIsFullAndMergesNeighbours) {
  TcmArena arena(0, 1024);
  const TcmArena::Label label{"load", {1, 8}, DType::f16};
  const auto a = arena.allocate(100, label), b = arena.allocate(64, label), c = arena.allocate(1, label);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 128u);
  EXPECT_EQ(c, 192u);
  EXPECT_EQ(arena.free_bytes(), 1024u - 256);
  arena.release(*a, 100);
  EXPECT_EQ(arena.allocate(1024 - 256, label), 256u);
  EXPECT_EQ(arena.allocate(128, label), 0u);
  EXPECT_EQ(arena.allocate(1, label), std::nullopt);
  arena.release(0, 128);
  arena.release(*b, 64);
  arena.release(*c, 1);
  arena.release(256, 1024 - 256);
  EXPECT_EQ(arena.largest_free(), 1024u);
  EXPECT_EQ(arena.allocate(1025, label), std::nullopt);
  EXPECT_EQ(arena.allocate(1024, label), 0u);
}

TEST(TcmArena, ReservesWhatLiesInItAndRefusesWhatIsInUse) {
  TcmArena arena(1024, 4096);
  EXPECT_TRUE(arena.reserve(0, 1024));  // outside
  EXPECT_EQ(arena.capacity(), 3072u);
  EXPECT_TRUE(arena.reserve(3072, 8192));
  EXPECT_EQ(arena.capacity(), 2048u);
  EXPECT_EQ(arena.allocate(2049, {}), std::nullopt);
  EXPECT_EQ(arena.allocate(64, {}), 1024u);
  EXPECT_FALSE(arena.reserve(1024, 1025));
  EXPECT_TRUE(arena.reserve(1088, 1152));
  EXPECT_EQ(arena.allocate(64, {}), 1152u);
}

TEST(TcmArena, NeverHandsOutAByteTwice) {
  std::mt19937 random(3);
  TcmArena arena(0, 1 << 16);
  std::map<std::uint64_t, std::uint64_t> live;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || live.empty()) {
      const std::uint64_t bytes = 1 + random() % 5000;
      const auto at = arena.allocate(bytes, {});
      if (!at) continue;
      const auto next = live.lower_bound(*at);
      ASSERT_TRUE(next == live.end() || *at + bytes <= next->first);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= *at);
      live.emplace(*at, bytes);
    } else {
      const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      arena.release(victim->first, victim->second);
      live.erase(victim);
    }
  }
  for (const auto& [at, bytes] : live) arena.release(at, bytes);
  EXPECT_EQ(arena.largest_free(), std::uint64_t{1} << 16);
}

// ---- IPCQ ----

TEST(SendCredits, SlotsComeInTurnAndRunOut) {
  SendCredits credits(2);
  EXPECT_EQ(credits.take(), 0);
  EXPECT_EQ(credits.take(), 1);
  EXPECT_EQ(credits.available(), 0);
  EXPECT_TRUE(credits.give_back());
  EXPECT_EQ(credits.take(), 0);
  EXPECT_TRUE(credits.give_back());
  EXPECT_TRUE(credits.give_back());
  EXPECT_FALSE(credits.give_back());  // more than there are
}

TEST(ReceiveRing, AMessageIsVisibleWhenAllOfItAndAllBeforeItAreThere) {
  ReceiveRing ring(3, 512);
  EXPECT_TRUE(ring.arrive(1, 512, 512, 512));
  EXPECT_EQ(ring.visible(), 0);  // slot 0 is not complete
  EXPECT_TRUE(ring.arrive(0, 256, 512, 512));
  EXPECT_EQ(ring.visible(), 0);
  EXPECT_TRUE(ring.arrive(0, 256, 512, 512));
  EXPECT_EQ(ring.visible(), 2);
  EXPECT_EQ(ring.high_water(), 2);
  ring.pop();
  EXPECT_EQ(ring.head(), 1);
  EXPECT_TRUE(ring.arrive(0, 0, 0, 0));  // an empty message, in the slot that is free again
  EXPECT_EQ(ring.visible(), 1);          // slot 2 is between
}

TEST(ReceiveRing, RefusesWhatDoesNotFit) {
  ReceiveRing ring(2, 512);
  EXPECT_FALSE(ring.arrive(2, 1, 1, 1));
  EXPECT_FALSE(ring.arrive(0, 256, 513, 513));
  EXPECT_FALSE(ring.arrive(0, 256, 255, 255));
  EXPECT_TRUE(ring.arrive(1, 4, 4, 4));
  EXPECT_FALSE(ring.arrive(1, 4, 8, 8));  // full already, however long the next message is
  EXPECT_FALSE(ring.arrive(1, 4, 4, 4));
  EXPECT_EQ(ring.high_water(), 1);
}

// ---- Addresses ----

TEST(PageTable, RangesAreByteExactAndCopiesArePerViewer) {
  PageTable pages;
  const PeCoord a{0, 0, 0}, b{0, 0, 1};
  pages.map({0x1000, 100, PhysicalAddress::hbm(a, 0), {}});
  pages.map({0x1064, 8, PhysicalAddress::hbm(a, 500), {a}});
  pages.map({0x1064, 8, PhysicalAddress::hbm(b, 700), {b}});
  EXPECT_EQ(pages.translate(0x1063, a)->target, PhysicalAddress::hbm(a, 99));
  EXPECT_EQ(pages.translate(0x1063, a)->bytes, 1u);
  EXPECT_EQ(pages.translate(0x1065, a)->target, PhysicalAddress::hbm(a, 501));
  EXPECT_EQ(pages.translate(0x1065, b)->target, PhysicalAddress::hbm(b, 701));
  EXPECT_FALSE(pages.translate(0x1065, {0, 0, 2}));
  EXPECT_FALSE(pages.translate(0x0FFF, a));
  EXPECT_FALSE(pages.translate(0x106C, a));
}

TEST(PageTable, AgreesWithAByteMap) {
  std::mt19937 random(5);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  PageTable pages;
  const PeCoord viewers[] = {{0, 0, 0}, {0, 0, 1}};
  std::map<std::pair<std::uint64_t, std::uint16_t>, std::uint64_t> bytes;  // (va, viewer) -> offset
  for (int i = 0; i < 2'000; ++i) {
    const std::uint64_t va = below(300), n = below(60), offset = below(100'000);
    const auto what = below(4);
    if (what == 0) {
      pages.unmap(va, n);
    } else {
      std::vector<PeCoord> seen_by;
      if (what == 2) seen_by = {viewers[below(2)]};
      pages.map({va, n, PhysicalAddress::hbm({0, 0, 0}, offset), seen_by});
      for (std::uint64_t k = 0; k < n; ++k) {
        for (const PeCoord v : viewers) {
          if (seen_by.empty() || seen_by[0] == v) bytes[{va + k, v.pe}] = offset + k;
        }
      }
    }
    if (what == 0) {
      for (std::uint64_t k = 0; k < n; ++k) {
        for (const PeCoord v : viewers) bytes.erase({va + k, v.pe});
      }
    }
    for (int probe = 0; probe < 10; ++probe) {
      const std::uint64_t at = below(400);
      const PeCoord v = viewers[below(2)];
      const auto expected = bytes.find({at, v.pe});
      const auto found = pages.translate(at, v);
      ASSERT_EQ(found.has_value(), expected != bytes.end()) << at;
      if (!found) continue;
      ASSERT_EQ(found->target.offset, expected->second);
      for (std::uint64_t k = 0; k < found->bytes; ++k) {  // contiguous as far as it says
        const auto next = bytes.find({at + k, v.pe});
        ASSERT_TRUE(next != bytes.end() && next->second == expected->second + k);
      }
    }
  }
}

TEST(Mmu, TheTlbDropsTheLeastRecentlyUsedPage) {
  MmuConfig config;
  config.tlb_entries = 2;
  config.walk = 100;
  PageTable pages;
  Mmu mmu(config, pages, {0, 0, 0});
  EXPECT_EQ(mmu.look_up(1), 100u);
  EXPECT_EQ(mmu.look_up(2), 100u);
  EXPECT_EQ(mmu.look_up(1), 0u);
  EXPECT_EQ(mmu.look_up(3), 100u);  // 2 goes
  EXPECT_EQ(mmu.look_up(1), 0u);
  EXPECT_EQ(mmu.look_up(2), 100u);
  mmu.invalidate(config.page_bytes * 2 + 5, 1);
  EXPECT_EQ(mmu.look_up(2), 100u);
}

// ---- Engines ----

/// Of a product alone on an idle array.
std::uint64_t gemm_cycles(const GemmConfig& config, std::uint64_t m, std::uint64_t n, std::uint64_t k, DType dtype) {
  return GemmArray(config).take(0, {m, n, k, dtype, false, false, false}).done;
}

TEST(GemmCycles, OutputStationaryFollowsItsClosedForm) {
  GemmConfig config;  // 32 x 32
  EXPECT_EQ(gemm_cycles(config, 32, 32, 128, DType::f16), 128u + 62 + 32);
  EXPECT_EQ(gemm_cycles(config, 33, 32, 128, DType::f16), 2u * 128 + 62 + 32);     // both sides of a fold
  EXPECT_EQ(gemm_cycles(config, 64, 64, 16, DType::f16), 3u * 32 + 16 + 62 + 32);  // folds shorter than the drain
  EXPECT_EQ(gemm_cycles(config, 32, 32, 128, DType::f8e4m3), 64u + 62 + 32);
  EXPECT_EQ(gemm_cycles(config, 32, 32, 128, DType::f32), 4u * 128 + 62 + 32);
}

TEST(GemmCycles, WeightStationaryFollowsItsClosedForm) {
  GemmConfig config;
  config.dataflow = GemmDataflow::weight_stationary;
  EXPECT_EQ(gemm_cycles(config, 128, 32, 32, DType::f16), 32u + 128 + 62);
  EXPECT_EQ(gemm_cycles(config, 128, 33, 33, DType::f16), 32u + 4 * 128 + 62);
  EXPECT_EQ(gemm_cycles(config, 128, 32, 64, DType::f8e5m2), 32u + 128 + 62);
}

TEST(GemmArray, TheNextProductEntersAsSoonAsTheEdgeIsFree) {
  GemmArray array(GemmConfig{});
  const GemmWork product{32, 32, 128, DType::f16, false, false, false};
  const GemmArray::Times first = array.take(0, product);
  EXPECT_EQ(first.done, 128u + 62 + 32);
  EXPECT_EQ(first.read, 128u);
  EXPECT_LE(first.accepts, first.read);
  const GemmArray::Times second = array.take(first.accepts, product);
  EXPECT_EQ(second.begin, 128u);
  EXPECT_EQ(second.done - first.done, 128u);
}

TEST(GemmArray, ResultsLeaveOneFoldAfterTheOther) {
  GemmArray array(GemmConfig{});
  const GemmWork shallow{32, 32, 8, DType::f16, false, false, false};
  const GemmArray::Times first = array.take(0, shallow), second = array.take(first.read, shallow);
  EXPECT_EQ(second.done - first.done, 32u);  // rows, not the 8 cycles of its operands
}

TEST(GemmArray, SumsThatStayAreNeitherDrainedNorFilledAgain) {
  GemmArray array(GemmConfig{});
  GemmWork step{32, 32, 64, DType::f16, false, false, true};
  EXPECT_EQ(array.take(0, step).done, 64u + 62);
  EXPECT_EQ(array.take(64, step).done, 128u + 62);
  step.stays = false;
  EXPECT_EQ(array.take(128, step).done, 192u + 62 + 32);
}

TEST(GemmArray, SumsFromTcmEnterRowByRowUnlessTheArrayIsBusyMeanwhile) {
  GemmWork work{32, 32, 64, DType::f16, true, false, false};
  EXPECT_EQ(GemmArray(GemmConfig{}).take(0, work).done, 32u + 64 + 62 + 32);
  GemmArray array(GemmConfig{});
  const GemmArray::Times first = array.take(0, {32, 32, 64, DType::f16, false, false, false});
  EXPECT_EQ(first.accepts, 64u - 32);
  EXPECT_EQ(array.take(first.accepts, work).done - first.done, 64u);
}

TEST(GemmArray, ChainedSumsAreAwaited) {
  const GemmWork work{64, 32, 64, DType::f16, false, false, false};
  GemmWork next = work;
  next.from_memory = next.chained = true;
  GemmArray array(GemmConfig{});
  const GemmArray::Times first = array.take(0, work);
  EXPECT_EQ(first.read, 128u);
  // The first fold's sums are in TCM at 64 + 62 + 32, and enter again in 32 cycles.
  EXPECT_EQ(array.take(first.accepts, next).read, 158u + 32 + 128);
}

// ---- TCM's ports and banks ----

TcmConfig two_banks() {
  TcmConfig config;
  config.bytes_per_second = 64'000'000'000;  // a word per ns
  config.clock_hz = 1'000'000'000;
  config.banks = 2;
  config.bank_bytes = 64;
  return config;
}

TEST(TcmTiming, APortServesOneAccessAfterTheOther) {
  TcmConfig config = two_banks();
  config.latency = 300;
  TcmTiming timing(config);
  EXPECT_EQ(timing.read(0, 0, 128), 2'000u + 300);
  EXPECT_EQ(timing.read(0, 0, 64), 3'000u + 300);
  EXPECT_EQ(timing.bytes(), 192u);
}

TEST(TcmTiming, ReadsAndWritesMeetOnlyInABank) {
  TcmTiming timing(two_banks());
  EXPECT_EQ(timing.read(0, 0, 64), 1'000u);
  EXPECT_EQ(timing.write(0, 64, 64), 1'000u);   // the other bank
  EXPECT_EQ(timing.write(0, 128, 64), 2'000u);  // behind the write before, on a free bank
  TcmTiming same(two_banks());
  EXPECT_EQ(same.read(0, 0, 64), 1'000u);
  EXPECT_EQ(same.write(0, 128, 64), 2'000u);  // bank 0 again
}

TEST(TcmTiming, StreamsOfTheEnginesTakeTheirShareOfEveryBank) {
  TcmTiming timing(two_banks());                    // 128 B per ns
  EXPECT_EQ(timing.stream(0, 0, 10'000, 640), 0u);  // half of it
  EXPECT_EQ(timing.read(0, 0, 64), 2'000u);
  EXPECT_EQ(timing.read(10'000, 0, 64), 11'000u);  // it has ended
}

TEST(TcmTiming, StreamsBeyondTheBanksStretchTheLast) {
  TcmTiming timing(two_banks());
  EXPECT_EQ(timing.stream(0, 0, 10'000, 1'280), 0u);  // just all of it
  TcmTiming over(two_banks());
  EXPECT_EQ(over.stream(0, 0, 10'000, 1'600), 2'500u);
  TcmTiming both(two_banks());
  EXPECT_EQ(both.stream(0, 0, 10'000, 960), 0u);
  EXPECT_EQ(both.stream(0, 0, 10'000, 960), 5'000u);
  EXPECT_EQ(both.read(0, 0, 64), 3'000u);  // its turn among three
}

TEST(GemmCycles, PeakIsReachedOnlyByShapesThatDeserveIt) {
  GemmConfig config;
  const auto utilisation = [&](std::uint64_t m, std::uint64_t n, std::uint64_t k) {
    return static_cast<double>(m * n * k) / (1024.0 * static_cast<double>(gemm_cycles(config, m, n, k, DType::f16)));
  };
  EXPECT_GT(utilisation(1024, 1024, 1024), 0.99);
  EXPECT_LT(utilisation(1, 1024, 1024), 0.05);
  EXPECT_LT(utilisation(32, 32, 32), 0.3);
}

TEST(MathCycles, EachKindOfOpHasItsRate) {
  MathConfig config;
  config.divide_cycles = 2;
  config.sqrt_cycles = 3;
  config.transcendental_cycles = 5;
  config.activation_cycles = 7;
  const auto per_group = [&](MathOp op) { return math_cycles(config, op, 128, DType::f32) - config.pipeline_cycles; };
  EXPECT_EQ(per_group(MathOp::mul), 1u);
  EXPECT_EQ(per_group(MathOp::div), 2u);
  EXPECT_EQ(per_group(MathOp::rsqrt), 3u);
  EXPECT_EQ(per_group(MathOp::log), 5u);
  EXPECT_EQ(per_group(MathOp::gelu), 7u);
}

TEST(MathCycles, GroupsOfLanesThenThePipeline) {
  MathConfig config;  // 128 lanes, 4 cycles for transcendentals, 8 of pipeline
  EXPECT_EQ(math_cycles(config, MathOp::add, 128, DType::f16), 1u + 8);
  EXPECT_EQ(math_cycles(config, MathOp::add, 129, DType::f16), 2u + 8);
  EXPECT_EQ(math_cycles(config, MathOp::exp, 129, DType::f16), 8u + 8);
  EXPECT_EQ(math_cycles(config, MathOp::add, 128, DType::f64), 2u + 8);
  EXPECT_EQ(reduce_cycles(config, 1024, 1024, DType::f32), 8u + 7 + 8);
  EXPECT_EQ(reduce_cycles(config, 1024, 3, DType::f32), 8u + 2 + 8);
  EXPECT_EQ(softmax_cycles(config, 1, 128, DType::f32), 2u * 16 + 9 + 12 + 12);
}

}  // namespace
}  // namespace kernbench::pe
