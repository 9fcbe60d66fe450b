// The untimed back door: transport_dbg goes from the host's socket to the memory through the bound sockets. And what
// the network's own sockets answer to calls that they have no way to carry out.
#include <gtest/gtest.h>

#include "tests/interop/plain_initiator.h"
#include "tests/interop/plain_target.h"
#include "tests/interop/watched_machine.h"

namespace kernbench::topology {
namespace {

using interop::PlainInitiator;
using interop::Transaction;

/// transport_dbg calls by socket since the last question; those without any are left out.
class Debugs {
 public:
  explicit Debugs(const WatchedMachine& bench) : bench_(bench) {}
  std::map<std::string, std::uint64_t> since() {
    std::map<std::string, std::uint64_t> calls;
    for (const auto& [socket, checker] : bench_.checkers) {
      if (checker->debugs != before_[socket]) calls[socket] = checker->debugs - before_[socket];
      before_[socket] = checker->debugs;
    }
    return calls;
  }

 private:
  const WatchedMachine& bench_;
  std::map<std::string, std::uint64_t> before_;
};

TEST(BackDoor, LeadsOverTheSocketsOfItsPathToEveryMemory) {
  WatchedMachine bench(small_machine(2, 2, 1));
  const MessageHost host("host", bench);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  const MachineMap& map = bench.machine.map();
  const auto gate = [&](std::uint16_t sip) -> std::string {
    return bench.machine.network_interface(map.pcie_ep(sip)).from_endpoint->name();
  };
  Debugs debugs(bench);
  std::uint64_t number = 1;
  for (const PhysicalAddress& address :
       {PhysicalAddress::hbm({1, 1, 6}, 4096), PhysicalAddress::hbm({0, 0, 0}, 0), PhysicalAddress::tcm({1, 0, 3}, 256),
        PhysicalAddress::sram({0, 1}, 64), PhysicalAddress::host(1, 128)}) {
    SCOPED_TRACE(address.str());
    const NodeId memory = map.resolve(address);
    const std::string there = bench.machine.network_interface(memory).to_endpoint->name();
    ++number;
    std::uint64_t written = number << 40 | number, read = 0;
    tlm::tlm_generic_payload payload;
    payload.set_address(address.encode());
    payload.set_data_length(sizeof written);
    payload.set_streaming_width(sizeof written);
    payload.set_write();
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(&written));
    EXPECT_EQ((*host.sockets[0])->transport_dbg(payload), sizeof written);
    EXPECT_EQ(payload.get_response_status(), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(debugs.since(), (std::map<std::string, std::uint64_t>{{"host.sip0", 1}, {gate(0), 1}, {there, 1}}));
    payload.set_read();
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(&read));
    EXPECT_EQ((*host.sockets[1])->transport_dbg(payload), sizeof read);
    EXPECT_EQ(read, written);
    const bool own = memory == map.pcie_ep(1);  // the host's own memory lies before the network
    EXPECT_EQ(debugs.since(), (own ? std::map<std::string, std::uint64_t>{{"host.sip1", 1}}
                                   : std::map<std::string, std::uint64_t>{{"host.sip1", 1}, {gate(1), 1}, {there, 1}}));
  }
  tlm::tlm_generic_payload nowhere;
  unsigned char byte = 0;
  nowhere.set_read();
  nowhere.set_data_ptr(&byte);
  nowhere.set_data_length(1);
  for (const std::uint64_t address : {PhysicalAddress::sram({0, 200}, 0).encode(), ~std::uint64_t{0}}) {
    nowhere.set_address(address);
    EXPECT_EQ((*host.sockets[0])->transport_dbg(nowhere), 0u);
    EXPECT_EQ(nowhere.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  }
  EXPECT_EQ(bench.machine.dispatcher().executed(), 0u) << "it takes no time, and no event";
}

/// In a PE's stead, at its network interface itself, without a bridge: an initiator that knows TLM-2.0 only.
struct AtAnInterface {
  explicit AtAnInterface(std::function<void(PlainInitiator&)> body)
      : plan(small_machine(1, 2, 1)),
        unused("unused", 1, sc_core::SC_ZERO_TIME),
        initiator("initiator", std::move(body)),
        machine(plan, RunOptions{}, nullptr, parts()) {}
  ForeignParts parts() {
    ForeignParts parts;
    parts.bind = [this](tlm::tlm_initiator_socket<>& from, tlm::tlm_target_socket<>& to) {
      if (to.name() != std::string("sip0.cube0.ni_pe3.from_endpoint")) return from.bind(to);
      from.bind(unused.socket);
      initiator.socket.bind(to);
      ++placed;
    };
    return parts;
  }
  const Plan plan;
  int placed = 0;
  interop::PlainMemory unused;
  PlainInitiator initiator;
  Machine machine;
  const SilentHost host{"host", machine};
};

TEST(BackDoor, OfANetworkInterfaceServesAForeignInitiatorWhoseTimedCallsAreErrors) {
  AtAnInterface bench([](PlainInitiator& self) {
    const std::uint64_t far = PhysicalAddress::hbm({0, 1, 6}, 4096).encode();
    const std::vector<unsigned char> data{1, 2, 3, 4};
    Transaction write(tlm::TLM_WRITE_COMMAND, far, data), read(tlm::TLM_READ_COMMAND, far, {0, 0, 0, 0});
    EXPECT_EQ(self.socket->transport_dbg(write), 4u);
    EXPECT_EQ(self.socket->transport_dbg(read), 4u);
    EXPECT_EQ(read.data, data);
    Transaction nowhere(tlm::TLM_READ_COMMAND, PhysicalAddress::sram({0, 200}, 0).encode(), {0});
    EXPECT_EQ(self.socket->transport_dbg(nowhere), 0u);
    EXPECT_EQ(nowhere.get_response_status(), tlm::TLM_ADDRESS_ERROR_RESPONSE);

    Transaction blocking(tlm::TLM_READ_COMMAND, far, {9, 9, 9, 9});
    EXPECT_EQ(self.access(blocking), tlm::TLM_COMMAND_ERROR_RESPONSE);
    EXPECT_EQ(blocking.data, std::vector<unsigned char>(4, 9));
    Transaction without_packet(tlm::TLM_READ_COMMAND, far, {9, 9, 9, 9});
    self.begin(without_packet);
    self.wait_for_all();
    EXPECT_EQ(without_packet.get_response_status(), tlm::TLM_COMMAND_ERROR_RESPONSE);
    tlm::tlm_dmi dmi;
    EXPECT_FALSE(self.socket->get_direct_mem_ptr(read, dmi));
    EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::SC_ZERO_TIME);
  });
  ASSERT_EQ(bench.placed, 1);
  sc_core::sc_start();
  EXPECT_TRUE(bench.initiator.finished) << "the process lives";
}

}  // namespace
}  // namespace kernbench::topology
