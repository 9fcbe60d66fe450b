#include <gtest/gtest.h>

#include <numeric>

#include "models/io/pcie_link.h"
#include "tests/io/host_driver.h"

namespace kernbench::testing {
namespace {

class HostCopy : public ::testing::Test {
 protected:
  explicit HostCopy(bool data = true) : machine({1, 2, 1, 2, 1 << 20}, options(data)), host("host", machine, 0) {}
  static RunOptions options(bool data) {
    RunOptions options;
    options.data = data;
    return options;
  }
  static std::vector<std::uint8_t> pattern(std::size_t n) {
    std::vector<std::uint8_t> data(n);
    std::iota(data.begin(), data.end(), std::uint8_t{1});
    return data;
  }
  FakeMachine machine;
  HostDriver host;
  const PhysicalAddress target = PhysicalAddress::hbm({0, 1, 1}, 1000);
};

TEST_F(HostCopy, WritesAndReadsBackUnalignedBytes) {
  const auto data = pattern(3333);
  host.at(0, MemoryWriteMessage{target, data});
  MemoryReadMessage read;
  read.from = target;
  read.bytes = data.size();
  const Message& back = host.at(0, read);
  sc_core::sc_start();
  ASSERT_EQ(host.completed.size(), 2u);
  EXPECT_EQ(std::get<MemoryReadMessage>(back.body).data, data);
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

TEST_F(HostCopy, ReadOfOneBurstTakesTheSumOfItsSteps) {
  MemoryReadMessage read;
  read.from = PhysicalAddress::hbm({0, 0, 0}, 0);
  read.bytes = 256;
  const Message& message = host.at(0, read);
  sc_core::sc_start();
  const PcieDirection link(machine.pcie_config());
  const Ps there = link.occupancy(kCommandBytes) + link.latency() + machine.pcie_config().doorbell;
  const Ps network = 2 * FakeMachine::kHop + FakeMachine::kMemory;
  EXPECT_EQ(message.completed, there + network + link.occupancy(256) + link.latency());
  EXPECT_EQ(std::accumulate(message.spent.begin(), message.spent.end(), Ps{0}), message.completed);
}

TEST_F(HostCopy, LongWriteRunsAtTheRateOfTheLink) {
  const std::size_t bytes = 1 << 19;
  const Message& message = host.at(0, MemoryWriteMessage{PhysicalAddress::hbm({0, 0, 0}, 0), pattern(bytes)});
  sc_core::sc_start();
  const PcieDirection link(machine.pcie_config());
  const Ps shortest = link.occupancy(kCommandBytes + bytes) + 2 * link.latency();
  EXPECT_GE(message.completed, shortest);
  EXPECT_LE(message.completed, shortest + 300'000);
  EXPECT_EQ(std::accumulate(message.spent.begin(), message.spent.end(), Ps{0}), message.completed);
}

TEST_F(HostCopy, KeepsItsLimitOfOutstandingBursts) {
  MemoryReadMessage read;
  read.from = PhysicalAddress::hbm({0, 0, 0}, 0);
  read.bytes = 1 << 19;
  host.at(0, read);
  sc_core::sc_start();
  EXPECT_EQ(machine.most_outstanding(machine.map().hbm_port({0, 0, 0})), machine.pcie_config().outstanding);
}

TEST_F(HostCopy, WaitsForWhatStandsBeforeItInItsStreamOnly) {
  const Message& launch = host.at(0, launch_on(machine.map().pes(0)), 1);
  const Message& same = host.at(0, MemoryWriteMessage{target, pattern(16)}, 1);
  const Message& other = host.at(0, MemoryWriteMessage{target, pattern(16)}, 2);
  const Message& after = host.at(0, launch_on(machine.map().pes(0)), 1);
  sc_core::sc_start();
  ASSERT_EQ(host.completed.size(), 4u);
  EXPECT_LT(other.completed, std::get<LaunchMessage>(launch.body).last_end);
  EXPECT_GT(same.completed, std::get<LaunchMessage>(launch.body).last_end);
  EXPECT_GT(std::get<LaunchMessage>(after.body).first_start, same.completed - machine.pcie_config().latency);
}

TEST_F(HostCopy, ReportsAMemoryThatAnswersWithAnError) {
  machine.fail_memory(machine.map().hbm_port({0, 0, 0}));
  const Message& message = host.at(0, MemoryWriteMessage{PhysicalAddress::hbm({0, 0, 0}, 0), pattern(16)});
  host.expect(tlm::TLM_GENERIC_ERROR_RESPONSE, message);
  sc_core::sc_start();
  ASSERT_EQ(message.faults.size(), 1u);
  EXPECT_EQ(message.faults[0].reason,
            "sip0.cube0.hbm.pe0 answered TLM_ADDRESS_ERROR_RESPONSE to 16 bytes at offset 0x0");
  EXPECT_EQ(host.status(message), tlm::TLM_GENERIC_ERROR_RESPONSE);
}

TEST_F(HostCopy, ReportsAnAddressThatNoMemoryHas) {
  const Message& message = host.at(0, MemoryWriteMessage{PhysicalAddress::hbm({0, 0, 0}, (1 << 20) - 8), pattern(16)});
  host.expect(tlm::TLM_GENERIC_ERROR_RESPONSE, message);
  sc_core::sc_start();
  ASSERT_EQ(message.faults.size(), 1u);
  EXPECT_EQ(message.faults[0].reason,
            "sip0.cube0.pe0.hbm+0xffff8 and 16 bytes from there are not in one memory of this machine");
}

TEST_F(HostCopy, DebugAccessIsUntimedAndReachesDeviceAndHostMemory) {
  sc_core::sc_start();
  for (const PhysicalAddress& address : {target, PhysicalAddress::host(0, 64)}) {
    std::vector<std::uint8_t> data = pattern(1000), back(1000);
    tlm::tlm_generic_payload payload;
    payload.set_address(address.encode());
    payload.set_data_length(1000);
    payload.set_write();
    payload.set_data_ptr(data.data());
    EXPECT_EQ(host.socket->transport_dbg(payload), 1000u);
    payload.set_read();
    payload.set_data_ptr(back.data());
    EXPECT_EQ(host.socket->transport_dbg(payload), 1000u);
    EXPECT_EQ(back, data);
  }
  EXPECT_EQ(machine.dispatcher().now(), 0u);
}

class HostCopyWithoutData : public HostCopy {
 protected:
  HostCopyWithoutData() : HostCopy(false) {}
};

TEST_F(HostCopyWithoutData, TakesTheSameTime) {
  MemoryReadMessage read;
  read.from = PhysicalAddress::hbm({0, 0, 0}, 0);
  read.bytes = 256;
  const Message& message = host.at(0, read);
  sc_core::sc_start();
  const PcieDirection link(machine.pcie_config());
  EXPECT_EQ(message.completed, link.occupancy(kCommandBytes) + 2 * link.latency() + machine.pcie_config().doorbell +
                                   2 * FakeMachine::kHop + FakeMachine::kMemory + link.occupancy(256));
}

}  // namespace
}  // namespace kernbench::testing
