// A foreign initiator beside the PEs: at a router of a cube's mesh, on a port of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/runtime.h"
#include "tests/interop/plain_initiator.h"
#include "tests/interop/watched_machine.h"
#include "tests/support/in_copy.h"
#include "tests/support/thrown.h"
#include "tlm/kernel/tl.h"

namespace kernbench::topology {
namespace {

using interop::PlainInitiator;
using interop::Transaction;
using test::ProtocolChecker;
using ::testing::HasSubstr;

constexpr PeCoord kPe{0, 0, 3};
constexpr Shape kBlock{1, 2048};  ///< f32: 8 KiB
constexpr unsigned kBlockBytes = 8192;

/// The router that a PE of a cube hangs on.
GridPoint router_of(const SystemSpec& spec, std::uint16_t pe) { return layout(spec.cube).mesh.pes.at(pe); }

/// A machine with an initiator at PE 3's router of cube 0, and one in the far corner of cube 1.
SystemSpec with_initiators() {
  SystemSpec spec = small_machine(1, 2, 1);
  spec.initiators = {{{0, 0}, router_of(spec, kPe.pe)},
                     {{0, 1}, {static_cast<std::uint16_t>(spec.cube.noc.rows - 1), 0}}};
  return spec;
}

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 256 + seed);
  return data;
}

RunOptions of_grade(Grade grade) {
  RunOptions options;
  options.fidelity = Fidelity::all(grade);
  return options;
}

class Beside : public ::testing::TestWithParam<Grade> {};
INSTANTIATE_TEST_SUITE_P(Interop, Beside, ::testing::Values(Grade::accurate, Grade::fast),
                         [](const auto& info) { return std::string(to_string(info.param)); });

/// Two of them and all PEs' DMA at once: everybody's data are right, and nobody breaks the protocol.
TEST_P(Beside, InitiatorsReachEveryMemoryWhileThePesWork) {
  WatchedMachine bench(with_initiators(), of_grade(GetParam()));
  Runtime runtime("host", bench.machine.map(), bench.machine.dispatcher(), of_grade(GetParam()), nullptr);
  bench.bind_host(0, *runtime.pcie[0]);
  EXPECT_EQ(bench.machine.map().pes(0).size(), std::size_t{2} * bench.machine.map().pes_per_cube) << "none replaced";
  const auto body = [](unsigned seed) {
    return [seed](PlainInitiator& self) {
      for (const PhysicalAddress at :
           {PhysicalAddress::hbm({0, 0, 3}, (16 << 20) + seed * 4096),
            PhysicalAddress::hbm({0, 1, 6}, (16 << 20) + seed * 4096), PhysicalAddress::sram({0, 1}, 37 + seed * 4096),
            PhysicalAddress::tcm({0, 1, 2}, (1 << 20) + seed * 4096), PhysicalAddress::host(0, seed * 4096)}) {
        const auto data = pattern(1000, seed);
        Transaction write(tlm::TLM_WRITE_COMMAND, at.encode(), data);
        EXPECT_EQ(self.access(write), tlm::TLM_OK_RESPONSE);
        Transaction read(tlm::TLM_READ_COMMAND, at.encode(), std::vector<unsigned char>(1000));
        self.begin(read);
        self.wait_for_all();
        EXPECT_EQ(read.get_response_status(), tlm::TLM_OK_RESPONSE);
        EXPECT_EQ(read.data, data);
      }
      Transaction nowhere(tlm::TLM_READ_COMMAND, PhysicalAddress::sram({0, 9}, 0).encode(), {1, 2});
      EXPECT_EQ(self.access(nowhere), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    };
  };
  PlainInitiator first("first", body(1)), second("second", body(2));
  ProtocolChecker at_first("at_first"), at_second("at_second");
  first.socket.bind(at_first.in);
  at_first.out.bind(bench.machine.initiator(0));
  second.socket.bind(at_second.in);
  at_second.out.bind(bench.machine.initiator(1));
  runtime.spawn(
      [&](Context& ctx) {
        const DPPolicy policy = DPPolicy().cube(CubeSplit::column_wise).pe(PeSplit::column_wise);
        const Tensor x = ctx.full(3, {1, 1 << 16}, DType::f32, policy, "x");
        ctx.launch(
            "twice",
            [](Va va, Tl& tl) {
              const ShardView own = tl.shard(va);
              const Tile tile = tl.load(own.va, {1, own.count()}, DType::f32);
              tl.store(own.va, tile + tile);
            },
            x);
        for (const double value : x.to_host()) ASSERT_EQ(value, 6);
      },
      std::tuple<>(), 1);
  EXPECT_TRUE(first.finished);
  EXPECT_TRUE(second.finished);
  bench.expect_finished();
  for (const ProtocolChecker* checker : {&at_first, &at_second}) {
    EXPECT_EQ(checker->open(), 0u);
    EXPECT_EQ(checker->finished, 5u) << "reads; writes were loosely timed";
  }
}

/// ps that reads of 64 B and of a block take, of PE 3's slice and of one of the next cube.
std::vector<std::uint64_t> time_of_read(const SystemSpec& spec, Grade grade, bool in_place) {
  const Plan plan(spec);
  ForeignParts parts;
  if (in_place) parts.initiators = {kPe};
  Machine machine(plan, of_grade(grade), nullptr, parts);
  const SilentHost host("host", machine);
  std::vector<std::uint64_t> times;
  PlainInitiator initiator("initiator", [&](PlainInitiator& self) {
    sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));
    for (const auto& [pe, bytes] : {std::pair{PeCoord{0, 0, 3}, 64U}, std::pair{PeCoord{0, 0, 3}, kBlockBytes},
                                    std::pair{PeCoord{0, 1, 6}, 64U}, std::pair{PeCoord{0, 1, 6}, kBlockBytes}}) {
      const sc_core::sc_time begin = sc_core::sc_time_stamp();
      Transaction read(tlm::TLM_READ_COMMAND, PhysicalAddress::hbm(pe, 1 << 20).encode(),
                       std::vector<unsigned char>(bytes));
      EXPECT_EQ(self.access(read), tlm::TLM_OK_RESPONSE);
      times.push_back((sc_core::sc_time_stamp() - begin).value());
    }
  });
  initiator.socket.bind(in_place ? machine.foreign_initiator(kPe) : machine.initiator(0));
  sc_core::sc_start();
  EXPECT_TRUE(initiator.finished);
  return times;
}

TEST_P(Beside, AnAccessTakesThePicosecondsOfOneFromThePesOwnPort) {
  SystemSpec spec = small_machine(1, 2, 1);
  const auto own = kernbench::testing::in_copy([&] { return time_of_read(spec, GetParam(), true); });
  spec.initiators = {{{0, 0}, router_of(spec, kPe.pe)}};
  const auto beside = kernbench::testing::in_copy([&] { return time_of_read(spec, GetParam(), false); });
  ASSERT_EQ(own.size(), 4u);
  EXPECT_EQ(beside, own);
  EXPECT_GT(own[2], own[0] + 70'000) << "two crossings of UCIe of 35 ns";
}

/// A load of a block by PE 3, and a read of the same bytes by an initiator at its router.
TEST_P(Beside, AReadTakesTheTimeOfThePesDmaOfTheSameBytesButForItsSetUp) {
  SystemSpec spec = small_machine(1, 2, 1);
  spec.initiators = {{{0, 0}, router_of(spec, kPe.pe)}};
  const auto read = kernbench::testing::in_copy([&] { return time_of_read(spec, GetParam(), false); });
  ASSERT_EQ(read.size(), 4u);
  OpLog ops;
  const Plan plan(spec);
  Machine machine(plan, of_grade(GetParam()), &ops);
  Runtime runtime("host", machine.map(), machine.dispatcher(), of_grade(GetParam()), &ops);
  runtime.pcie[0]->bind(machine.host_socket(0));
  PlainInitiator idle("idle", [](PlainInitiator&) {});
  idle.socket.bind(machine.initiator(0));
  runtime.spawn(
      [&](Context& ctx) {
        const Tensor x = ctx.empty(kBlock, DType::f32, DPPolicy(), "x");
        ctx.launch(
            "load", LaunchOptions{{kPe}},
            [](Va va, Tl& tl) {
              tl.wait(tl.load(va, {1, 1}, DType::f32));  // the page's TLB entry is there from now on
              tl.wait(tl.load(va, kBlock, DType::f32));
            },
            x);
      },
      std::tuple<>(), 1);
  std::vector<Ps> loads;
  for (const OpRecord& op : ops.ops) {
    if (op.kernel == "load" && op.name == "dma_read") loads.push_back(op.end - op.start);
  }
  ASSERT_EQ(loads.size(), 2u);
  const auto load = static_cast<double>(loads[1]), same = static_cast<double>(read[1]);
  if (GetParam() == Grade::accurate) {
    const Ps tcm = Rate(spec.cube.pe.tcm.bytes_per_second).time_for(kBlockBytes);
    EXPECT_GE(load, same);
    EXPECT_LE(load, same + static_cast<double>(spec.cube.pe.dma.setup + tcm));
  } else {
    EXPECT_NEAR(load, same, 0.03 * load) << "the bridge's packets are no trains";
  }
}

/// A rank reads by the initiator's socket and leaves the annotated delay to itself: what it does next waits.
TEST_P(Beside, ARankIsNotBehindTheModelsThatItsOwnReadHasTakenAhead) {
  WatchedMachine bench(with_initiators(), of_grade(GetParam()));
  Runtime runtime("host", bench.machine.map(), bench.machine.dispatcher(), of_grade(GetParam()), nullptr);
  bench.bind_host(0, *runtime.pcie[0]);
  PlainInitiator reader("reader", [](PlainInitiator&) {}), idle("idle", [](PlainInitiator&) {});
  reader.socket.bind(bench.machine.initiator(0));
  idle.socket.bind(bench.machine.initiator(1));
  runtime.spawn(
      [&](Context& ctx) {
        const Tensor x = ctx.full(3, {1, 64}, DType::f32, DPPolicy(), "x");
        Transaction read(tlm::TLM_READ_COMMAND, PhysicalAddress::hbm({0, 1, 6}, 1 << 20).encode(),
                         std::vector<unsigned char>(kBlockBytes));
        const sc_core::sc_time begin = sc_core::sc_time_stamp();
        sc_core::sc_time delay;
        reader.socket->b_transport(read, delay);
        EXPECT_EQ(sc_core::sc_time_stamp(), begin) << "the only rank, and nothing else is due";
        EXPECT_GT(delay, sc_core::sc_time(100, sc_core::SC_NS));
        EXPECT_EQ(ctx.now(), (begin + delay).value());
        EXPECT_EQ(sc_core::sc_time_stamp(), begin + delay) << "whoever asks the host has waited";
        ctx.launch(
            "twice",
            [](Va va, Tl& tl) {
              const Tile tile = tl.load(va, {1, 64}, DType::f32);
              tl.store(va, tile + tile);
            },
            x);
        for (const double value : x.to_host()) ASSERT_EQ(value, 6);
      },
      std::tuple<>(), 1);
  bench.expect_finished();
}

TEST(BesideWhatIsNotThere, ARouterOrACubeThatIsNotThereIsRefused) {
  SystemSpec spec = small_machine(1, 2, 1);
  spec.initiators = {{{0, 2}, {0, 0}}};
  EXPECT_THAT(thrown_by([&] { Plan plan(spec); }), HasSubstr("the machine has no sip0.cube2 for an initiator"));
  spec.initiators = {{{0, 1}, {99, 0}}};
  EXPECT_THAT(thrown_by([&] { Plan plan(spec); }), HasSubstr("a cube has no router r99c0"));
}

}  // namespace
}  // namespace kernbench::topology
