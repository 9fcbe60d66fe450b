#include "models/sram/sram.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "models/sram/bank_timing.h"
#include "tests/memory/initiator.h"
#include "tlm/ext/packet.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/address.h"

namespace kernbench {
namespace {

SramConfig small_sram() {
  SramConfig config;
  config.bytes = 1 << 20;
  config.banks = 4;
  config.bank_interleave_bytes = 256;
  config.bytes_per_second = 128'000'000'000;  // 32 GB/s a bank: 256 B take 8 ns
  config.latency = 2'000;
  config.queue_depth = 8;
  return config;
}
std::uint64_t address(std::uint64_t offset) { return PhysicalAddress::sram({3, 1}, offset).encode(); }

TEST(SramTiming, ABankIsHeldForItsShareOfTheRate) {
  SramTiming timing(small_sram());
  const auto none = [](unsigned, Ps, Ps) {};
  EXPECT_EQ(timing.book(0, 256, 100, none).end, 100u + 8000u);
  EXPECT_EQ(timing.book(256, 256, 100, none).end, 100u + 8000u);     // another bank
  EXPECT_EQ(timing.book(1024, 256, 100, none).end, 100u + 16000u);   // the first bank again
  EXPECT_EQ(timing.book(1024, 1, 50'000, none).end, 50'000u + 32u);  // 31.25 ps, rounded up
}

TEST(SramTiming, ALongRequestIsSpreadOverTheBanks) {
  SramTiming timing(small_sram());
  std::vector<unsigned> banks;
  const SramTiming::Span span = timing.book(128, 1024, 0, [&](unsigned bank, Ps, Ps) { banks.push_back(bank); });
  EXPECT_EQ(banks, (std::vector<unsigned>{0, 1, 2, 3, 0}));
  EXPECT_EQ(span.begin, 0u);
  EXPECT_EQ(span.end, 8000u);
  EXPECT_EQ(timing.service(128, 1024), 8000u);
  EXPECT_EQ(timing.service(0, 2048), 16'000u);
  EXPECT_THROW(SramTiming([] {
                 SramConfig c = small_sram();
                 c.banks = 0;
                 return c;
               }()),
               std::invalid_argument);
}

struct Bench {
  explicit Bench(RunOptions options = {})
      : sram("sram", small_sram(), options, queue, nullptr), initiator("initiator", queue) {
    initiator.out.bind(sram.port);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  Ps run(Ps time, tlm::tlm_generic_payload& payload) {
    const std::size_t id = initiator.send(time, payload);
    queue.run_all();
    return initiator.records[id].response - time;
  }
  EventQueue queue;
  Sram sram;
  TestInitiator initiator;
};

TEST(Sram, AnswersAfterServiceAndLatencyInBothStyles) {
  Bench bench;
  PlainPayload at(tlm::TLM_READ_COMMAND, address(0), 256), lt(tlm::TLM_READ_COMMAND, address(0), 256);
  EXPECT_EQ(bench.run(0, at), 8'000u + 2'000u);
  sc_core::sc_time delay(1, sc_core::SC_US);
  bench.initiator.out->b_transport(lt, delay);
  EXPECT_EQ(delay.value(), 1'000'000u + 8'000u + 2'000u);
  EXPECT_EQ(lt.get_response_status(), tlm::TLM_OK_RESPONSE);
}

TEST(Sram, KeepsContents) {
  Bench bench;
  PlainPayload w(tlm::TLM_WRITE_COMMAND, address(1000), 300, 5), r(tlm::TLM_READ_COMMAND, address(1000), 300);
  bench.run(0, w);
  bench.run(100'000, r);
  EXPECT_EQ(r.data, w.data);
  PlainPayload back(tlm::TLM_READ_COMMAND, address(1001), 2);
  EXPECT_EQ(bench.initiator.out->transport_dbg(back), 2u);
  EXPECT_EQ(back.data[0], 6);
}

TEST(Sram, BankConflictsQueueAndAFullQueueHoldsTheRequest) {
  Bench bench;
  std::deque<PlainPayload> reads;
  for (unsigned i = 0; i < 20; ++i) {
    reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 1024ull), 256);  // all of bank 0
    bench.initiator.send(0, reads.back());
  }
  bench.queue.run_all();
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.initiator.records[i].response, (i + 1) * 8'000u + 2'000u);
    EXPECT_EQ(bench.initiator.records[i].end_request, i < 8 ? 0u : (i - 7) * 8'000u) << i;
  }
}

TEST(Sram, BanksTogetherReachTheWholeRate) {
  Bench bench;
  std::deque<PlainPayload> reads;
  for (unsigned i = 0; i < 1000; ++i) {
    reads.emplace_back(tlm::TLM_READ_COMMAND, address(i * 256ull), 256);
    bench.initiator.send(0, reads.back());
  }
  bench.queue.run_all();
  EXPECT_EQ(bench.initiator.records.back().response, Rate(128'000'000'000).time_for(256'000) + 2'000);
}

TEST(Sram, AnswersErrorsWithAResponse) {
  Bench bench;
  bench.initiator.expected_errors = 4;
  PlainPayload beyond(tlm::TLM_READ_COMMAND, address((1 << 20) - 1), 2),
      hbm(tlm::TLM_READ_COMMAND, PhysicalAddress::hbm({3, 1, 0}, 0).encode(), 2);
  PlainPayload host(tlm::TLM_READ_COMMAND, PhysicalAddress::host(3, 0).encode(), 2),
      ignore(tlm::TLM_IGNORE_COMMAND, address(0), 2);
  bench.run(0, beyond);
  bench.run(100'000, hbm);
  bench.run(200'000, host);
  bench.run(300'000, ignore);
  EXPECT_EQ(beyond.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(hbm.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(host.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(ignore.get_response_status(), tlm::TLM_COMMAND_ERROR_RESPONSE);
}

class SramWithDataOrWithout : public ::testing::TestWithParam<bool> {};

TEST_P(SramWithDataOrWithout, TimeOfAPacketIsTheSameAndIsSplitWithoutRemainder) {
  RunOptions options;
  options.data = GetParam();
  Bench bench(options);
  PayloadPool pool;
  std::vector<tlm::tlm_generic_payload*> payloads;
  unsigned char written[256], read[10][256] = {};
  std::iota(std::begin(written), std::end(written), static_cast<unsigned char>(0));
  for (unsigned i = 0; i < 20; ++i) {
    tlm::tlm_generic_payload& payload = pool.acquire();
    payload.set_command(i % 2 == 0 ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address((i - i % 2) * 1024ull));  // each read is of what the write before it wrote
    payload.set_data_length(256);
    payload.set_data_ptr(i % 2 == 0 ? written : read[i / 2]);
    bench.initiator.send(0, payload);
    payloads.push_back(&payload);
  }
  bench.queue.run_all();
  for (unsigned i = 0; i < 20; ++i) {
    const Packet& packet = Packet::of(*payloads[i]);
    const auto& record = bench.initiator.records[i];
    EXPECT_EQ(record.response, (i + 1) * 8'000u + 2'000u);
    EXPECT_EQ(packet.spent[static_cast<std::size_t>(Delay::memory)], 10'000u);
    EXPECT_EQ(std::accumulate(packet.spent.begin(), packet.spent.end(), Ps{0}), record.response - record.begun);
    payloads[i]->release();
  }
  EXPECT_EQ(pool.outstanding(), 0u);
  const unsigned char zeros[256] = {};
  for (const auto& bytes : read) EXPECT_EQ(std::memcmp(bytes, GetParam() ? written : zeros, 256), 0);
}
INSTANTIATE_TEST_SUITE_P(Data, SramWithDataOrWithout, ::testing::Bool());

}  // namespace
}  // namespace kernbench
