#include "models/hbm/hbm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "models/hbm/address_map.h"
#include "models/hbm/channel_tracks.h"
#include "tests/memory/hbm_stack.h"
#include "tlm/ext/packet.h"

namespace kernbench {
namespace {

TEST(HbmAddressMap, DealsASliceToItsPseudoChannelsInTurnsOfTheInterleave) {
  EXPECT_EQ(HbmAddressMap(hbm3_6400(), 4).interleave(), 256u) << "the spec's";
  for (const std::uint64_t interleave : {256, 512}) {
    HbmConfig config = hbm3_6400();
    config.interleave_bytes = interleave;
    const HbmAddressMap map(config, 4);
    for (std::uint64_t offset = 0; offset < 16384; offset += 32) {
      ASSERT_EQ(map.place(offset).pseudo_channel, offset / interleave % 4) << offset;
      ASSERT_EQ(map.offset(map.place(offset)), offset);
    }
  }
}

TEST(HbmAddressMap, GivesEveryBurstAPlaceOfItsOwnWhateverTheMapping) {
  for (const char* mapping : {"RoSiBaCoBg", "RoCoSiBaBg", "BgRoSiBaCo", "RoSiBaBgPcCo", "PcRoSiBaCoBg", "CoRoSiBaBg"}) {
    // Below the bank groups, among them, in the column; 48 bursts cut no field into equal parts.
    for (const std::uint64_t interleave : {32, 64, 256, 1536}) {
      for (const unsigned groups : {4, 3}) {  // 3: found by division
        HbmConfig config = hbm3_6400();
        config.mapping = mapping;
        config.interleave_bytes = interleave;
        config.bank_groups = groups;
        const HbmAddressMap map(config, 4);
        for (std::uint64_t i = 0; i < 20'000; ++i) {
          const std::uint64_t offset = (i < 10'000 ? i : i * 7919 % 1'000'000) * 32;  // within 32 MB
          const BurstPlace place = map.place(offset);
          ASSERT_EQ(map.offset(place), offset) << mapping << ", interleave " << interleave << ", groups " << groups;
          ASSERT_LT(place.pseudo_channel, 4U);
          ASSERT_LT(place.bank_group, groups);
          ASSERT_LT(place.bank, config.banks_per_group);
          ASSERT_LT(place.column, map.columns());
        }
      }
    }
  }
}

TEST(HbmClock, FindsTheFirstTickThatIsNotBeforeATime) {
  for (const std::uint64_t hertz :
       {1'000'000'000UL, 1'600'000'000UL, 3'200'000'000UL, 900'000'000UL, 1'333'333'333UL}) {
    for (const bool half : {false, true}) {
      HbmConfig config = hbm3_6400();
      config.ck_hz = hertz;
      config.half_clock_commands = half;
      const ChannelClock clock(config);
      for (Ps time = 0; time < 4'000'000'000'000; time = time < 5000 ? time + 1 : time * 3 / 2 + 7) {
        const Tick tick = clock.at_or_after(time);
        ASSERT_GE(clock.time(tick), time) << hertz;
        ASSERT_TRUE(tick == 1 || clock.time(tick - 1) < time) << hertz << " Hz, " << time << " ps";
      }
    }
  }
}

TEST(HbmAddressMap, CountsTheBurstsBetweenColumnsWithinAPseudoChannel) {
  HbmConfig config = hbm3_6400();
  for (const char* mapping : {"RoSiBaCoBg", "RoSiBaCoBgPc", "RoSiBaCoPcBg", "RoSiBaPcCoBg", "PcRoSiBaCoBg"}) {
    config.mapping = mapping;
    EXPECT_EQ(HbmAddressMap(config, 4).column_stride(), config.bank_groups) << mapping;
  }
  config.mapping = "RoSiBaBgPcCo";
  EXPECT_EQ(HbmAddressMap(config, 4).column_stride(), 1U);
}

TEST(Hbm, IdleReadsTakeTheClosedFormsToTheClock) {
  HbmStack bench;
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 32), b(tlm::TLM_READ_COMMAND, address(0), 32),
      c(tlm::TLM_READ_COMMAND, address(kNextRow), 32);
  EXPECT_EQ(bench.run(0, a), kClosed + kController);
  EXPECT_EQ(bench.run(1'000'000, b), kHit + kController);
  EXPECT_EQ(bench.run(2'000'000, c), kConflict + kController);
  EXPECT_EQ(a.get_response_status(), tlm::TLM_OK_RESPONSE);
  const Hbm::Stats stats = bench.hbm.stats();
  EXPECT_EQ(stats.row_hits, 1u);
  EXPECT_EQ(stats.row_closed, 1u);
  EXPECT_EQ(stats.row_conflicts, 1u);
  EXPECT_EQ(stats.bytes, 96u);
  EXPECT_EQ(stats.busy, 3 * 2 * kCk);
}

TEST(Hbm, A256ByteReadIsPipelinedOverTheBankGroups) {
  HbmStack bench;
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 256), b(tlm::TLM_READ_COMMAND, address(0), 256);
  // Rows of four bank groups open tRRD_S apart; the second column of a group follows the first of the last one.
  EXPECT_EQ(bench.run(0, a), kClosed + 3 * kTiming.t_rrd_s * kCk + 2 * kTiming.t_ccd_s * kCk + kController);
  EXPECT_EQ(bench.run(1'000'000, b), kHit + 7 * kTiming.t_ccd_s * kCk + kController);
}

TEST(Hbm, ArrivalsAreSeenAtTheNextEdge) {
  HbmStack bench;
  PlainPayload a(tlm::TLM_READ_COMMAND, address(0), 32), b(tlm::TLM_READ_COMMAND, address(0), 32);
  bench.run(0, a);
  // One picosecond after a rising edge: the falling edge sees it, the command starts one rising edge later.
  EXPECT_EQ(bench.run(kCk * 1600 + 1, b), kHit + kController - 1);
}

TEST(Hbm, WritesArePostedAndSeenByTheNextRead) {
  HbmStack bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0x1234), 200, 7), r(tlm::TLM_READ_COMMAND, address(0x1230), 210);
  EXPECT_EQ(bench.run(0, w), kController);
  bench.run(100'000, r);
  for (unsigned i = 0; i < 210; ++i)
    ASSERT_EQ(r.data[i], i < 4 || i >= 204 ? 0 : static_cast<unsigned char>(7 + i - 4)) << i;
}

TEST(Hbm, SlicesAreApart) {
  HbmStack bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(64, 1), 32, 9), r(tlm::TLM_READ_COMMAND, address(64, 0), 32);
  bench.run(0, w, 1);
  bench.run(100'000, r, 0);
  EXPECT_EQ(r.data, std::vector<unsigned char>(32, 0));
}

TEST(Hbm, AnswersErrorsWithAResponse) {
  HbmStack bench;
  bench.initiators[0].expected_errors = 9;
  const std::uint64_t slice_bytes = small_hbm().bytes / 2;
  const auto status = [&](tlm::tlm_generic_payload& payload) {
    bench.run(bench.queue.now(), payload);
    return payload.get_response_status();
  };
  PlainPayload last(tlm::TLM_READ_COMMAND, address(slice_bytes - 32), 32),
      beyond(tlm::TLM_READ_COMMAND, address(slice_bytes - 31), 32);
  PlainPayload far(tlm::TLM_WRITE_COMMAND, address(slice_bytes), 1), slice(tlm::TLM_READ_COMMAND, address(0, 1), 32);
  PlainPayload cube(tlm::TLM_READ_COMMAND, PhysicalAddress::hbm({1, 3, 0}, 0).encode(), 32);
  PlainPayload kind(tlm::TLM_READ_COMMAND, PhysicalAddress::tcm({1, 2, 0}, 0).encode(), 32);
  PlainPayload ignore(tlm::TLM_IGNORE_COMMAND, address(0), 32), empty(tlm::TLM_READ_COMMAND, address(0), 0);
  PlainPayload stream(tlm::TLM_WRITE_COMMAND, address(0), 32), enable(tlm::TLM_WRITE_COMMAND, address(0), 32);
  stream.set_streaming_width(16);
  unsigned char bits = 0xff;
  enable.set_byte_enable_ptr(&bits);
  enable.set_byte_enable_length(0);
  EXPECT_EQ(status(last), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(status(beyond), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(far), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(slice), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(cube), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(kind), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(ignore), tlm::TLM_COMMAND_ERROR_RESPONSE);
  EXPECT_EQ(status(empty), tlm::TLM_BURST_ERROR_RESPONSE);
  EXPECT_EQ(status(stream), tlm::TLM_BURST_ERROR_RESPONSE);
  EXPECT_EQ(status(enable), tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  const Ps later = bench.queue.now() + 5'000;
  sc_core::sc_time delay = annotation(later);
  bench.initiators[0].out->b_transport(beyond, delay);
  EXPECT_EQ(beyond.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(instant(delay), later + kController);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(beyond), 0u);
}

TEST(Hbm, RespectsByteEnables) {
  HbmStack bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0), 8, 1), r(tlm::TLM_READ_COMMAND, address(0), 8),
      part(tlm::TLM_READ_COMMAND, address(0), 8);
  unsigned char every_other[2] = {TLM_BYTE_ENABLED, TLM_BYTE_DISABLED};
  w.set_byte_enable_ptr(every_other);
  w.set_byte_enable_length(2);
  bench.run(0, w);
  bench.run(100'000, r);
  EXPECT_EQ(r.data, (std::vector<unsigned char>{1, 0, 3, 0, 5, 0, 7, 0}));
  part.set_byte_enable_ptr(every_other);
  part.set_byte_enable_length(2);
  bench.run(200'000, part);
  EXPECT_EQ(part.data, (std::vector<unsigned char>{1, 0xee, 3, 0xee, 5, 0xee, 7, 0xee}));
}

TEST(Hbm, LooselyTimedAgreesWithApproximatelyTimedWhenIdle) {
  HbmStack bench;
  // Slice 0 by nb_transport, slice 1 by b_transport: two channels in the same states.
  Ps time = 0;
  const std::uint64_t offsets[] = {0, 0, 256, kNextRow, kNextRow + 4096, 128, 7, 1 << 20};
  const unsigned sizes[] = {32, 256, 64, 256, 1, 4096, 300, 2000};
  for (int i = 0; i < 8; ++i) {
    PlainPayload at(tlm::TLM_READ_COMMAND, address(offsets[i], 0), sizes[i]),
        lt(tlm::TLM_READ_COMMAND, address(offsets[i], 1), sizes[i]);
    bench.queue.run_all();
    time += 1'000'000;
    sc_core::sc_time delay = annotation(time);
    bench.initiators[1].out->b_transport(lt, delay);
    EXPECT_EQ(lt.get_response_status(), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(bench.run(time, at), instant(delay) - time) << i;
  }
}

TEST(Hbm, LooselyTimedRequestsQueueBehindEachOther) {
  HbmStack bench;
  sc_core::sc_time delay;
  Ps last = 0;
  for (int i = 0; i < 400; ++i) {
    PlainPayload read(tlm::TLM_READ_COMMAND, address(static_cast<std::uint64_t>(i) * 256), 256);
    delay = sc_core::SC_ZERO_TIME;
    bench.initiators[0].out->b_transport(read, delay);
    EXPECT_GE(delay.value(), last);
    last = delay.value();
  }
  EXPECT_GT(last, Rate(2 * 25'600'000'000).time_for(400 * 256));
  EXPECT_EQ(bench.queue.now(), 0u);
}

TEST(Hbm, TheBackDoorTakesNoTime) {
  HbmStack bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(5000), 9000, 3), r(tlm::TLM_READ_COMMAND, address(5000), 9000);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(w), 9000u);
  EXPECT_EQ(bench.initiators[0].out->transport_dbg(r), 9000u);
  EXPECT_EQ(r.data, w.data);
  EXPECT_TRUE(bench.queue.empty());
  EXPECT_EQ(bench.hbm.stats().bytes, 0u);
  tlm::tlm_dmi dmi;
  EXPECT_FALSE(bench.initiators[0].out->get_direct_mem_ptr(r, dmi));
}

TEST(Hbm, AFullQueueHoldsTheRequestAtItsPort) {
  HbmConfig config = small_hbm();
  config.queue_depth = 4;  // a queue of 8 bursts per channel: one request of 256 B
  HbmStack bench(config);
  std::deque<PlainPayload> reads;
  for (unsigned i = 0; i < 6; ++i) {
    reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 256ull), 256);
    bench.initiators[0].send(0, reads.back());
  }
  bench.queue.run_all();
  const auto& records = bench.initiators[0].records;
  EXPECT_EQ(records[0].end_request, 0u);  // TLM_UPDATED
  for (unsigned i = 1; i < 6; ++i) {
    EXPECT_GT(records[i].end_request, records[i].begun) << i;  // TLM_ACCEPTED, END_REQ later
    EXPECT_EQ(records[i].begun, records[i - 1].end_request) << i;
    EXPECT_LT(records[i].end_request, records[i].response) << i;
  }
  for (unsigned i = 0; i < 6; ++i) EXPECT_NE(records[i].response, kNever);
}

TEST(Hbm, TwoPortsShareAChannelWithoutStarving) {
  HbmConfig config = small_hbm();
  config.channels = 1;  // each slice has one pseudo channel of the same channel
  config.queue_depth = 8;
  HbmStack bench(config);
  std::deque<PlainPayload> reads;
  for (std::uint16_t slice = 0; slice < 2; ++slice) {
    for (unsigned i = 0; i < 200; ++i) {
      reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 256ull, slice), 256);
      bench.initiators[slice].send(0, reads.back());
    }
  }
  bench.queue.run_all();
  const Ps a = bench.initiators[0].records.back().response, b = bench.initiators[1].records.back().response;
  EXPECT_LT(std::max(a, b) - std::min(a, b), std::max(a, b) / 20);
}

TEST(Hbm, SequentialReadsAndWritesReachNineTenthsOfThePeak) {
  HbmStack bench;
  for (const auto command : {tlm::TLM_READ_COMMAND, tlm::TLM_WRITE_COMMAND}) {
    std::deque<PlainPayload> payloads;
    const Ps start = bench.queue.now();
    const unsigned count = 4096;  // 1 MiB
    for (unsigned i = 0; i < count; ++i) {
      payloads.emplace_back(command, address(i * 256ull), 256);
      bench.initiators[0].send(start, payloads.back());
    }
    bench.queue.run_all();
    const Ps took = bench.initiators[0].records.back().response - start - kController;
    const Ps least = Rate(2 * small_hbm().pseudo_channel_peak().bytes_per_second()).time_for(count * 256);
    EXPECT_LT(static_cast<double>(least) / static_cast<double>(took), command == tlm::TLM_READ_COMMAND ? 1.0 : 1.02);
    EXPECT_GT(static_cast<double>(least) / static_cast<double>(took), 0.9);
  }
}

TEST(Hbm, DrainIssuesWhatTheWriteQueueStillHolds) {
  HbmStack bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0), 64);
  bench.run(0, w);
  const Ps end = bench.hbm.drain();
  EXPECT_EQ(bench.hbm.stats().writes, 2u);
  EXPECT_EQ(end, (1 + kTiming.t_rcd_wr + 1 + kTiming.t_cwl + 2 + kTiming.t_rrd_s) * kCk);
  EXPECT_EQ(bench.hbm.stats().activates, 2u);
  EXPECT_EQ(bench.hbm.channel_stats(0).writes, 2u);
  EXPECT_EQ(bench.hbm.channel_stats(1).writes, 0u);
}

class HbmRefresh : public ::testing::TestWithParam<RefreshPolicy> {};

TEST_P(HbmRefresh, CountsWhatNobodyUsesAsWell) {
  HbmConfig config = small_hbm();
  config.refresh = GetParam();
  HbmStack bench(config);
  PlainPayload first(tlm::TLM_READ_COMMAND, address(0), 32), last(tlm::TLM_READ_COMMAND, address(0), 32);
  bench.run(0, first);
  const Ps interval = kTiming.t_refi * kCk;
  bench.run(20 * interval + interval / 2, last);
  const std::uint64_t banks = bench.hbm.channel_stats(0).bank_refreshes;
  EXPECT_GT(banks, 0u);
  EXPECT_EQ(bench.hbm.channel_stats(1).bank_refreshes, banks);
  EXPECT_EQ(bench.hbm.stats().bank_refreshes, config.channels * banks);
  EXPECT_EQ(bench.hbm.stats().active_channels, 1u);
}

INSTANTIATE_TEST_SUITE_P(Policies, HbmRefresh, ::testing::Values(RefreshPolicy::all_bank, RefreshPolicy::per_bank),
                         [](const auto& info) {
                           return info.param == RefreshPolicy::all_bank ? "all_bank" : "per_bank";
                         });

TEST(Hbm, AQueuedWriteAnswersAReadIfAsked) {
  HbmConfig config = small_hbm();
  config.forward_writes = true;
  HbmStack bench(config);
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(0), 32, 5), r(tlm::TLM_READ_COMMAND, address(0), 32);
  bench.initiators[0].send(0, w);
  const Ps latency = bench.run(0, r);
  EXPECT_EQ(latency, kCk + kController);  // one clock after it has come, without a command
  EXPECT_EQ(r.data, w.data);
  EXPECT_EQ(bench.hbm.stats().forwarded, 1u);
}

TEST(Hbm, RefusesConfigurationsItCannotBuild) {
  EventQueue queue;
  const auto text = [&](const HbmConfig& config, std::uint32_t slices) -> std::string {
    try {
      Hbm hbm("hbm", config, kCube, slices, {}, queue, nullptr);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(text(small_hbm(), 3), "hbm: 4 pseudo channels cannot be dealt evenly to 3 slices");
  HbmConfig config = small_hbm();
  config.mapping = "RoSiBaCoCo";
  EXPECT_EQ(text(config, 2), "hbm: mapping 'RoSiBaCoCo': name each of Ro, Si, Ba, Bg, Co once, and Pc at most once");
  config = small_hbm();
  config.stack_ids = 5;
  EXPECT_EQ(text(config, 2), "hbm: a channel has 160 banks, at most 128 are supported");
  config = small_hbm();
  config.interleave_bytes = 48;
  EXPECT_EQ(text(config, 2), "hbm: interleave of 48 B is no multiple of a burst of 32 B");
}

}  // namespace
}  // namespace kernbench
