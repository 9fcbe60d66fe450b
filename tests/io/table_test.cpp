#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/io/host_driver.h"

namespace kernbench::testing {
namespace {

class Tables : public ::testing::Test {
 protected:
  Tables() : machine({1, 2, 2, 2, 1 << 20}, RunOptions()), host("host", machine, 0) {}
  FakeMachine machine;
  HostDriver host;
};

MapEntry entry(Va va, PeCoord owner, std::vector<PeCoord> viewers = {}) {
  MapEntry e;
  e.va = va;
  e.bytes = 16;
  e.target = PhysicalAddress::hbm(owner, va);
  e.viewers = std::move(viewers);
  return e;
}

TEST_F(Tables, EachPeGetsItsOwnRowsOfTheNeighbourTable) {
  SfrWriteMessage message;
  for (std::uint16_t ring = 0; ring < 7; ++ring) {
    for (const PeCoord pe : machine.map().pes(0)) {  // rows of different PEs interleaved
      NeighbourEntry row;
      row.self = pe;
      row.ring = ring;
      message.entries.push_back(row);
    }
  }
  const Message& sent = host.at(0, message);
  sc_core::sc_start();
  EXPECT_EQ(host.completed.size(), 1u);
  for (const PeCoord pe : machine.map().pes(0)) {
    ASSERT_EQ(machine.sfr[pe].size(), 7u);
    std::uint16_t rings = 0;
    for (const NeighbourEntry& row : machine.sfr[pe]) rings = static_cast<std::uint16_t>(rings | (1u << row.ring));
    EXPECT_EQ(rings, 0x7F);
  }
  EXPECT_GT(sent.completed, 0u);
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

TEST_F(Tables, MoreRowsTakeLonger) {
  SfrWriteMessage few, many;
  for (std::uint16_t ring = 0; ring < 12; ++ring) {
    NeighbourEntry row;
    row.self = {0, 0, 0};
    row.ring = ring;
    if (ring < 3) few.entries.push_back(row);
    many.entries.push_back(row);
  }
  constexpr Ps kLater = 1'000'000'000;  // the first has long been answered
  const Message& a = host.at(0, few);
  const Message& b = host.at(kLater, many);
  sc_core::sc_start();
  ASSERT_LT(a.completed, kLater);
  EXPECT_GT(b.completed - kLater, a.completed);
  EXPECT_EQ(machine.sfr[(PeCoord{0, 0, 0})].size(), 15u);
}

TEST_F(Tables, MappingsHoldWhenTheHostIsToldAndGoOnlyToViewers) {
  MmuMapMessage message;
  message.entries.push_back(entry(0x1000, {0, 0, 0}));
  message.entries.push_back(entry(0x1000, {0, 3, 1}, {{0, 3, 0}, {0, 3, 1}}));
  for (Va va = 0; va < 20; ++va) message.entries.push_back(entry(0x2000 + 16 * va, {0, 1, 0}));
  host.at(0, message);
  sc_core::sc_start();
  ASSERT_EQ(host.completed.size(), 1u);
  EXPECT_EQ(machine.map_entries[(PeCoord{0, 0, 0})], 21u);
  EXPECT_EQ(machine.map_entries[(PeCoord{0, 3, 0})], 22u);
  EXPECT_EQ(machine.pages(0).translate(0x1000, {0, 0, 1})->target, PhysicalAddress::hbm({0, 0, 0}, 0x1000));
  EXPECT_EQ(machine.pages(0).translate(0x1000, {0, 3, 0})->target, PhysicalAddress::hbm({0, 3, 1}, 0x1000));
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

TEST_F(Tables, UnmappingTakesEffectWhenAllPesHaveHeardAndBeforeTheHostIsTold) {
  MmuMapMessage message;
  message.entries.push_back(entry(0x1000, {0, 0, 0}));
  host.at(0, message);
  host.at(0, MmuUnmapMessage{0x1000, 16});
  std::size_t heard = 0;
  machine.hears_unmap = [&](PeCoord) {
    EXPECT_TRUE(machine.pages(0).translate(0x1000, {0, 0, 0}).has_value()) << "PE " << heard;
    EXPECT_LT(host.completed.size(), 2u);
    ++heard;
  };
  sc_core::sc_start();
  EXPECT_EQ(heard, machine.map().pes(0).size());
  EXPECT_EQ(host.completed.size(), 2u);
  EXPECT_FALSE(machine.pages(0).translate(0x1000, {0, 0, 0}).has_value());
}

/// PE i has so many bytes of it.
struct SizedProgram final : Program {
  explicit SizedProgram(std::vector<std::uint64_t> sizes) : sizes(std::move(sizes)) {}
  std::uint64_t bytes(PeCoord pe) const override { return sizes[static_cast<std::size_t>(pe.cube * 2 + pe.pe)]; }
  std::vector<std::uint64_t> sizes;
};

TEST_F(Tables, EachPeGetsTheBytesOfItsPartOfAProgramAndTheyCountOnTheWholeWay) {
  const std::vector<std::uint64_t> sizes = {0, 1, 192, 193, 384, 385, 64, 5000};
  const auto program = std::make_shared<SizedProgram>(sizes);
  const Message& sent = host.at(0, program_message(ProgramId{3}, program, machine.map().pes(0)));
  sc_core::sc_start();
  ASSERT_EQ(host.completed.size(), 1u);
  std::uint64_t all = 0, packets = 0;
  for (const PeCoord pe : machine.map().pes(0)) {
    EXPECT_EQ(machine.program_bytes[pe], program->bytes(pe)) << pe.cube << ", " << pe.pe;
    all += program->bytes(pe);
    packets += (program->bytes(pe) + 191) / 192;  // 256 B with the descriptor of 64 B
  }
  EXPECT_EQ(message_bytes(sent), 64 + all);
  // The link carries every byte, and IO_CPU sends every packet, one after the other.
  const Ps wire = Rate(machine.pcie_config().bytes_per_second).time_for(64 + all);
  EXPECT_GT(sent.completed, wire + packets * machine.io_config().command);
  EXPECT_EQ(machine.pool().outstanding(), 0u);
}

TEST_F(Tables, WithoutEntriesComplete) {
  host.at(0, MmuMapMessage{});
  host.at(0, SfrWriteMessage{});
  sc_core::sc_start();
  EXPECT_EQ(host.completed.size(), 2u);
}

}  // namespace
}  // namespace kernbench::testing
