// TCM as a TLM target, and as the far end of another PE's DMA.
#include "tests/pe/harness.h"

namespace kernbench {
namespace {

using test::Bench;
using test::two_pes;

constexpr Va kRemote = 0x7000000, kTarget = 0x10000;

/// A PE between a foreign initiator, whose payloads carry no Packet, and a network that is never used.
struct Machine : sc_core::sc_module, tlm::tlm_bw_transport_if<>, tlm::tlm_fw_transport_if<> {
  explicit Machine(const sc_core::sc_module_name& name = "machine")
      : sc_module(name), pe("pe", config, {0, 0, 0}, fill(map), pages, pool, options, queue, nullptr) {
    initiator.bind(*this);
    network.bind(*this);
    initiator.bind(pe.in);
    pe.out.bind(network);
  }
  static const MachineMap& fill(MachineMap& map) {
    map.sips = map.cube_w = map.cube_h = map.pes_per_cube = 1;
    map.nodes = {{NodeKind::pe, 0, {}}, {NodeKind::m_cpu, 0, {}}};
    map.pe_nodes = {NodeId{0}};
    map.m_cpu_nodes = {NodeId{1}};
    return map;
  }
  tlm::tlm_generic_payload& access(tlm::tlm_command command, std::uint64_t address, void* data, unsigned bytes) {
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(static_cast<unsigned char*>(data));
    payload.set_data_length(bytes);
    payload.set_streaming_width(bytes);
    payload.set_byte_enable_ptr(nullptr);
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    return payload;
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase& phase, sc_core::sc_time&) override {
    EXPECT_EQ(phase, tlm::BEGIN_RESP);
    answered = queue.now();
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
    return tlm::TLM_COMPLETED;
  }
  void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) override {}
  unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }

  struct Manager final : tlm::tlm_mm_interface {
    void free(tlm::tlm_generic_payload*) override {}
  } manager;
  PeConfig config;
  MachineMap map;
  PageTable pages;
  PayloadPool pool;
  RunOptions options;
  EventQueue queue;
  Pe pe;
  tlm::tlm_initiator_socket<> initiator{"initiator"};
  tlm::tlm_target_socket<> network{"network"};
  tlm::tlm_generic_payload payload{&manager};
  Ps answered = kNever;
};

std::uint64_t tcm(std::uint64_t offset) { return PhysicalAddress::tcm({0, 0, 0}, offset).encode(); }

TEST(PeTcm, BlockingTransportAnnotatesThePortsTime) {
  Machine machine;
  Bench::elaborate();
  std::vector<unsigned char> data(1024, 9), back(1024);
  sc_core::sc_time delay = sc_core::sc_time::from_value(5);
  machine.initiator->b_transport(machine.access(tlm::TLM_WRITE_COMMAND, tcm(64), data.data(), 1024), delay);
  EXPECT_EQ(machine.payload.get_response_status(), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(delay.value(), 5 + Rate(machine.config.tcm.bytes_per_second).time_for(1024));
  machine.initiator->b_transport(machine.access(tlm::TLM_READ_COMMAND, tcm(64), back.data(), 1024), delay);
  EXPECT_EQ(back, data);
}

TEST(PeTcm, NonBlockingAccessesTakeThePortInTurn) {
  Machine machine;
  Bench::elaborate();
  std::vector<unsigned char> data(512, 3);
  const Ps each = Rate(machine.config.tcm.bytes_per_second).time_for(512);
  for (int i = 1; i <= 3; ++i) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    auto& access = machine.access(tlm::TLM_WRITE_COMMAND, tcm(0), data.data(), 512);
    access.acquire();
    EXPECT_EQ(machine.initiator->nb_transport_fw(access, phase, delay), tlm::TLM_UPDATED);
    EXPECT_EQ(phase, tlm::END_REQ);
    if (i < 3) continue;  // the last of three that came together
    machine.queue.run_all();
    EXPECT_EQ(machine.answered, 3 * each);
  }
}

TEST(PeTcm, DebugTransportTakesNoTime) {
  Machine machine;
  Bench::elaborate();
  unsigned char data[4] = {1, 2, 3, 4}, back[4] = {};
  EXPECT_EQ(machine.initiator->transport_dbg(machine.access(tlm::TLM_WRITE_COMMAND, tcm(100), data, 4)), 4u);
  EXPECT_EQ(machine.initiator->transport_dbg(machine.access(tlm::TLM_READ_COMMAND, tcm(100), back, 4)), 4u);
  EXPECT_EQ(back[3], 4);
  EXPECT_TRUE(machine.queue.empty());
}

TEST(PeTcm, WhatItCannotServeIsAnErrorResponse) {
  Machine machine;
  Bench::elaborate();
  unsigned char data[8] = {};
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  const auto status = [&](tlm::tlm_generic_payload& access) {
    machine.initiator->b_transport(access, delay);
    return access.get_response_status();
  };
  const std::uint64_t size = machine.config.tcm.bytes;
  EXPECT_EQ(status(machine.access(tlm::TLM_READ_COMMAND, tcm(size - 4), data, 8)), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(machine.access(tlm::TLM_READ_COMMAND, tcm(size - 8), data, 8)), tlm::TLM_OK_RESPONSE);
  const std::uint64_t other = PhysicalAddress::tcm({0, 0, 1}, 0).encode();
  EXPECT_EQ(status(machine.access(tlm::TLM_READ_COMMAND, other, data, 8)), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(status(machine.access(tlm::TLM_IGNORE_COMMAND, tcm(0), data, 8)), tlm::TLM_COMMAND_ERROR_RESPONSE);
  machine.access(tlm::TLM_WRITE_COMMAND, tcm(0), data, 8).set_byte_enable_ptr(data);
  EXPECT_EQ(status(machine.payload), tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
}

TEST(PeTcm, AnotherPesDmaReachesIt) {
  Bench bench(two_pes());
  bench.map_hbm(0, 1 << 20);
  bench.pages.map({kRemote, 4096, PhysicalAddress::tcm(bench.coord(1), 0x800000), {}});
  Message& message = bench.launch([](Tl& tl) {
    tl.store(kRemote, tl.fill({1, 300}, DType::f16, 7));
    tl.store(kTarget, tl.load(kRemote, {1, 300}, DType::f16));
  });
  ASSERT_EQ(bench.answers(message, CommandKind::done), 1u);
  EXPECT_EQ(bench.get(kTarget, DType::f16, 300), std::vector<double>(300, 7));
  EXPECT_EQ(bench.observer.named("dma_write")[0].params[3].text, "tcm");
}

}  // namespace
}  // namespace kernbench
