// The machine's memories on their own, driven by an initiator that knows TLM-2.0 only, with the checker between.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "models/sram/sram.h"
#include "tests/interop/plain_initiator.h"
#include "tests/support/protocol_checker.h"
#include "tlm/machine/address.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {
namespace {

using interop::PlainInitiator;
using interop::Transaction;

/// An SRAM without any machine around it. The dispatcher runs the models' queue ahead of the kernel, so an initiator
/// that looks at the kernel's clock drives it loosely timed.
struct MemoryBench {
  explicit MemoryBench(std::function<void(PlainInitiator&)> body) : initiator("initiator", std::move(body)) {
    initiator.socket.bind(checker.in);
    checker.out.bind(sram.port);
  }
  void run() {
    sc_core::sc_start();
    EXPECT_TRUE(initiator.finished);
    EXPECT_EQ(checker.open(), 0u);
  }
  Dispatcher dispatcher{"dispatcher", 1};
  SramConfig config;
  RunOptions options;
  Sram sram{"sram", config, options, dispatcher.queue(0), nullptr};
  test::ProtocolChecker checker{"checker"};
  PlainInitiator initiator;
};

std::uint64_t at(std::uint64_t offset) { return PhysicalAddress::sram({0, 0}, offset).encode(); }

TEST(InteropMemory, LooselyTimedAccessesAnnotateTheirTime) {
  MemoryBench bench([](PlainInitiator& self) {
    Transaction write(tlm::TLM_WRITE_COMMAND, at(10), {1, 2, 3});
    sc_core::sc_time delay(5, sc_core::SC_NS);
    self.socket->b_transport(write, delay);
    EXPECT_EQ(write.get_response_status(), tlm::TLM_OK_RESPONSE);
    EXPECT_GE(delay, sc_core::sc_time(7, sc_core::SC_NS));  // 2 ns of latency
    EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::SC_ZERO_TIME);
    Transaction read(tlm::TLM_READ_COMMAND, at(10), {0, 0, 0});
    EXPECT_EQ(self.access(read, delay), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(read.data, (std::vector<unsigned char>{1, 2, 3}));
  });
  bench.run();
}

TEST(InteropMemory, AnAccessBeginsAtTheKernelsTimePlusItsDelay) {
  // A memory without anything to do has no clock that goes on: it must not take an access for one of its last instant.
  const sc_core::sc_time latency(2, sc_core::SC_NS), later(1, sc_core::SC_US), delay(5, sc_core::SC_NS);
  MemoryBench bench([&](PlainInitiator& self) {
    sc_core::sc_time first, second;
    Transaction read(tlm::TLM_READ_COMMAND, at(0), std::vector<unsigned char>(256));
    self.socket->b_transport(read, first);
    sc_core::wait(later);
    read.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    self.socket->b_transport(read, second);
    EXPECT_EQ(second, first) << "its bank is free again";
    sc_core::wait(later);
    Transaction write(tlm::TLM_WRITE_COMMAND, at(0), std::vector<unsigned char>(256));
    self.begin(write, delay);
    self.wait_for_all();
    EXPECT_EQ(sc_core::sc_time_stamp(), 2 * later + delay + first);
  });
  std::vector<std::pair<tlm::tlm_phase, Ps>> seen;
  bench.checker.log = [&](const tlm::tlm_generic_payload&, const tlm::tlm_phase& phase, Ps at) {
    seen.emplace_back(phase, at);
  };
  bench.run();
  ASSERT_EQ(seen.size(), 4u);
  const Ps begin = (2 * later + delay).value();
  EXPECT_EQ(seen[0], std::make_pair(tlm::tlm_phase(tlm::BEGIN_REQ), begin));
  EXPECT_EQ(seen[1], std::make_pair(tlm::tlm_phase(tlm::END_REQ), begin));
  EXPECT_EQ(seen[2].first, tlm::tlm_phase(tlm::BEGIN_RESP));
  EXPECT_GT(seen[2].second, begin + latency.value());
  EXPECT_EQ(seen[3].second, seen[2].second);
}

TEST(InteropMemory, ApproximatelyTimedAccessesKeepToTheProtocol) {
  MemoryBench bench([](PlainInitiator& self) {
    self.end_response_later = true;
    std::vector<std::unique_ptr<Transaction>> all;
    for (unsigned char i = 0; i < 50; ++i) {  // more than its queue of 32
      all.push_back(
          std::make_unique<Transaction>(tlm::TLM_WRITE_COMMAND, at(i * 16u), std::vector<unsigned char>(16, i)));
      self.begin(*all.back());
    }
    self.wait_for_all();
    sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));
    Transaction read(tlm::TLM_READ_COMMAND, at(49 * 16), std::vector<unsigned char>(16));
    EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(read.data, std::vector<unsigned char>(16, 49));
  });
  bench.run();
  EXPECT_EQ(bench.checker.finished, 50u);
}

}  // namespace
}  // namespace kernbench
