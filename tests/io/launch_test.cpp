#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/io/pcie_link.h"
#include "tests/io/host_driver.h"
#include "tests/support/thrown.h"

namespace kernbench::testing {
namespace {

TEST(PcieDirection, OccupiesTheLinkForPayloadAndOneHeaderPerTlp) {
  PcieConfig config;
  config.bytes_per_second = 1'000'000'000;  // 1 ns per byte
  PcieDirection direction(config);
  EXPECT_EQ(direction.occupancy(0), 24'000u);
  EXPECT_EQ(direction.occupancy(256), 280'000u);
  EXPECT_EQ(direction.occupancy(257), 305'000u);
  const auto first = direction.take(1'000, 256);
  EXPECT_EQ(first.begin, 1'000u);
  EXPECT_EQ(first.arrival, 1'000 + 280'000 + config.latency);
  const auto second = direction.take(2'000, 0);
  EXPECT_EQ(second.begin, first.end);
}

class Launch : public ::testing::Test {
 protected:
  void build(const FakeMachine::Shape& shape) {
    machine = std::make_unique<FakeMachine>(shape, RunOptions());
    host = std::make_unique<HostDriver>("host", *machine, 0);
  }
  Ps down(std::uint64_t bytes) const {
    return PcieDirection(machine->pcie_config()).occupancy(bytes) + machine->pcie_config().latency;
  }
  std::unique_ptr<FakeMachine> machine;
  std::unique_ptr<HostDriver> host;
};

TEST_F(Launch, OfOnePeTakesTheSumOfItsSteps) {
  build({1, 1, 1, 1, 1 << 20});
  Message& message = host->at(5'000, launch_on({{0, 0, 0}}));
  sc_core::sc_start();
  const Ps hop = FakeMachine::kHop, io = machine->io_config().command, m = machine->m_config().command;
  const Ps at_io = 5'000 + down(kCommandBytes) + machine->pcie_config().doorbell + hop;
  const Ps armed = at_io + 2 * io + hop + 2 * m + hop + FakeMachine::kArm + hop + 2 * m + hop + io;
  const Ps start = armed + 2 * io + machine->map().worst_command_latency;
  const Ps end = start + 1'000'000;
  const auto& launch = std::get<LaunchMessage>(message.body);
  EXPECT_EQ(launch.first_start, start);
  EXPECT_EQ(launch.last_end, end);
  EXPECT_EQ(message.completed, end + hop + 2 * m + hop + 2 * io + hop + down(0));
  EXPECT_EQ(host->status(message), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(machine->pool().outstanding(), 0u);
}

/// The rule, from the configuration: every byte crosses the host link in TLPs; then packets of at most 256 B with 64 B
/// of descriptor in the first, each of which IO_CPU sends, and M_CPU takes and sends on, one after the other. M_CPU is
/// the faster of the two, so that it has taken all but the last when that one comes.
TEST_F(Launch, TakesTheTimeOfItsArguments) {
  build({1, 1, 1, 1, 1 << 20});
  const Ps hop = FakeMachine::kHop, io = machine->io_config().command, m = machine->m_config().command;
  ASSERT_GE(io, m);
  Ps at = 0;
  std::vector<std::pair<std::size_t, Message*>> messages;
  for (const std::size_t bytes :
       {0u, 1u, 192u, 193u, 448u, 449u, 4096u}) {  // both sides of the borders of TLPs and packets
    LaunchMessage launch = launch_on({{0, 0, 0}});
    launch.arguments.resize(bytes);
    messages.emplace_back(bytes, &host->at(at += 10'000'000, launch));
  }
  sc_core::sc_start();
  for (const auto& [bytes, message] : messages) {
    const Ps packets = (64 + bytes + 255) / 256;
    const PcieConfig& pcie = machine->pcie_config();
    const std::uint64_t tlps = (64 + bytes + pcie.tlp_payload_bytes - 1) / pcie.tlp_payload_bytes;
    const Ps wire = Rate(pcie.bytes_per_second).time_for(64 + bytes + tlps * pcie.tlp_overhead_bytes);
    const Ps at_io = message->submitted + wire + pcie.latency + pcie.doorbell + hop;
    const Ps at_pe = at_io + io + packets * io + hop + m + packets * m + hop;
    const Ps armed = at_pe + FakeMachine::kArm + hop + 2 * m + hop + io;
    EXPECT_EQ(std::get<LaunchMessage>(message->body).first_start, armed + 2 * io + machine->map().worst_command_latency)
        << bytes << " B of arguments";
  }
}

TEST_F(Launch, StartsAllPesOfAllCubesInOneInstant) {
  build({1, 4, 4, 8, 1 << 20});
  host->at(0, launch_on(machine->map().pes(0)));
  sc_core::sc_start();
  ASSERT_EQ(machine->launches.size(), 128u);
  std::set<Ps> starts;
  for (const auto& record : machine->launches) starts.insert(record.start);
  EXPECT_EQ(starts.size(), 1u);
  EXPECT_EQ(machine->pool().outstanding(), 0u);
}

TEST_F(Launch, OfOneStreamFollowInOrderOfSubmission) {
  build({1, 2, 1, 2, 1 << 20});
  for (const char* kernel : {"a", "b", "c"}) host->at(0, launch_on(machine->map().pes(0), kernel));
  sc_core::sc_start();
  ASSERT_EQ(machine->launches.size(), 12u);
  std::string order;
  for (const auto& record : machine->launches) order += record.kernel;
  EXPECT_EQ(order, "aaaabbbbcccc");
  EXPECT_GE(machine->launches[4].start, machine->launches[3].end);
}

TEST_F(Launch, BehindALaunchIsArmedWhileThatOneRuns) {
  build({1, 1, 1, 1, 1 << 20});
  const auto& first = std::get<LaunchMessage>(host->at(0, launch_on({{0, 0, 0}}, "first")).body);
  const auto& second = std::get<LaunchMessage>(host->at(0, launch_on({{0, 0, 0}}, "second")).body);
  sc_core::sc_start();
  const Ps hop = FakeMachine::kHop, io = machine->io_config().command, m = machine->m_config().command;
  EXPECT_EQ(second.first_start,
            first.last_end + hop + 2 * m + hop + io + 2 * io + machine->map().worst_command_latency);
  EXPECT_LT(machine->launches[1].armed, first.last_end);
}

TEST_F(Launch, LongerToArmThanTheOneBeforeTakesToRunStartsWhenItIsArmed) {
  build({1, 1, 1, 1, 1 << 20});
  machine->duration = [](PeCoord, const LaunchMessage& launch) {
    return launch.kernel == "first" ? Ps{1'000} : 1'000'000;
  };
  host->at(0, launch_on({{0, 0, 0}}, "first"));
  LaunchMessage launch = launch_on({{0, 0, 0}}, "second");
  launch.arguments.resize(kMaxArgumentBytes);
  const auto& second = std::get<LaunchMessage>(host->at(0, launch).body);
  sc_core::sc_start();
  ASSERT_EQ(machine->launches.size(), 2u);
  EXPECT_GT(machine->launches[1].armed, machine->launches[0].end);
  const Ps hop = FakeMachine::kHop, io = machine->io_config().command, m = machine->m_config().command;
  EXPECT_EQ(second.first_start,
            machine->launches[1].armed + hop + 2 * m + hop + io + 2 * io + machine->map().worst_command_latency);
}

TEST_F(Launch, BehindATableIsArmedWhenThatIsDone) {
  build({1, 1, 1, 1, 1 << 20});
  host->at(0, launch_on({{0, 0, 0}}, "first"));
  host->at(0, MmuMapMessage{{{0x1000, 64, PhysicalAddress::hbm({0, 0, 0}, 0x1000), {}}}});
  host->at(0, launch_on({{0, 0, 0}}, "second"));
  bool mapped_after_first = false;
  machine->effect = [&](PeCoord, const LaunchMessage& launch) {
    if (launch.kernel == "first") mapped_after_first = machine->map_entries.empty();
  };
  sc_core::sc_start();
  ASSERT_EQ(machine->launches.size(), 2u);
  EXPECT_TRUE(mapped_after_first);
  EXPECT_EQ(machine->map_entries.size(), 1u);
  EXPECT_GT(machine->launches[1].armed, machine->launches[0].end);
}

TEST_F(Launch, OfDifferentStreamsOverlap) {
  build({1, 1, 1, 2, 1 << 20});
  host->at(0, launch_on(machine->map().pes(0), "a"), 1);
  host->at(0, launch_on(machine->map().pes(0), "b"), 2);
  sc_core::sc_start();
  ASSERT_EQ(machine->launches.size(), 4u);
  EXPECT_LT(machine->launches[2].start, machine->launches[1].end);
  // Starts of one SIP do not overlap, so that each keeps its bound.
  EXPECT_GE(machine->launches[2].start, machine->launches[0].start + machine->map().worst_command_latency);
}

TEST_F(Launch, PromisesSilenceTowardsTheHostForItsLeastTime) {
  build({1, 1, 1, 1, 1 << 20});
  LaunchMessage launch = launch_on({{0, 0, 0}});
  launch.least = 1'500'000;
  host->at(5'000, launch);
  EventQueue& queue = machine->dispatcher().queue(0);
  std::vector<Ps> promised;
  for (const Ps time : {4'000, 6'000}) {
    queue.at(time, [&queue, log = &promised] { log->push_back(queue.silent_until()); });
  }
  sc_core::sc_start();
  promised.push_back(queue.silent_until());
  EXPECT_EQ(promised, (std::vector<Ps>{kNever, 1'505'000, kNever}));
}

TEST_F(Launch, ThatEndsBeforeItsLeastTimeIsAnErrorOfTheModel) {
  build({1, 1, 1, 1, 1 << 20});
  LaunchMessage launch = launch_on({{0, 0, 0}}, "hasty");
  launch.least = 1'000'000'000;
  host->expect(tlm::TLM_INCOMPLETE_RESPONSE, host->at(0, launch));
  EXPECT_THAT(thrown_by([] { sc_core::sc_start(); }),
              ::testing::HasSubstr("kernel 'hasty' ended before the least time that its launch gave"));
}

TEST_F(Launch, WithoutTargetsCompletes) {
  build({1, 1, 1, 1, 1 << 20});
  host->at(0, launch_on({}));
  host->at(0, launch_on(machine->map().pes(0)));
  sc_core::sc_start();
  EXPECT_EQ(host->completed.size(), 2u);
}

TEST_F(Launch, ThatFailsWhileRecordedIsNeverStarted) {
  build({1, 2, 1, 2, 1 << 20});
  machine->fails_to_arm = [](PeCoord pe, const LaunchMessage& launch) { return launch.kernel == "bad" && pe.pe == 0; };
  Message& bad = host->at(0, launch_on(machine->map().pes(0), "bad"));
  Message& good = host->at(0, launch_on(machine->map().pes(0), "good"));
  host->expect(tlm::TLM_GENERIC_ERROR_RESPONSE, bad);
  sc_core::sc_start();
  ASSERT_EQ(bad.faults.size(), 2u);  // one per PE that failed, none for those that were ended
  const Ps time = bad.faults[0].time;
  EXPECT_EQ(bad.faults[0].str(),
            fmt::format("sip0.cube0.pe0: kernel error in kernel 'bad', op arm, at {}.{:03} ns: made to fail",
                        time / 1000, time % 1000));
  EXPECT_EQ(host->status(bad), tlm::TLM_GENERIC_ERROR_RESPONSE);
  EXPECT_EQ(host->status(good), tlm::TLM_OK_RESPONSE);
  for (const auto& record : machine->launches) EXPECT_EQ(record.kernel, "good");
  EXPECT_EQ(machine->pool().outstanding(), 0u);
}

TEST_F(Launch, ThatFailsWhileTheOneBeforeRunsEndsInItsTurn) {
  build({1, 2, 1, 2, 1 << 20});
  machine->fails_to_arm = [](PeCoord pe, const LaunchMessage& launch) {
    return launch.kernel == "some" ? pe.pe == 0 : launch.kernel == "all";
  };
  std::vector<Message*> messages;
  for (const char* kernel : {"good", "some", "good", "all", "good"}) {
    messages.push_back(&host->at(0, launch_on(machine->map().pes(0), kernel)));
  }
  host->expect(tlm::TLM_GENERIC_ERROR_RESPONSE, *messages[1]);
  host->expect(tlm::TLM_GENERIC_ERROR_RESPONSE, *messages[3]);
  sc_core::sc_start();
  ASSERT_EQ(host->completed.size(), messages.size());
  for (std::size_t i = 1; i < messages.size(); ++i) EXPECT_GT(messages[i]->completed, messages[i - 1]->completed);
  EXPECT_EQ(machine->launches.size(), 3u * 4);
  EXPECT_EQ(machine->pool().outstanding(), 0u);
}

TEST_F(Launch, ThatFailsOnAllPesWhileRecordedCompletes) {
  build({1, 2, 1, 2, 1 << 20});
  machine->fails_to_arm = [](PeCoord, const LaunchMessage&) { return true; };
  Message& bad = host->at(0, launch_on(machine->map().pes(0), "bad"));
  host->expect(tlm::TLM_GENERIC_ERROR_RESPONSE, bad);
  sc_core::sc_start();
  EXPECT_EQ(bad.faults.size(), 4u);
  EXPECT_EQ(host->completed.size(), 1u);
}

TEST_F(Launch, EndsThePesThatWaitForOneThatFailed) {
  build({1, 2, 1, 2, 1 << 20});
  machine->fails = [](PeCoord pe, const LaunchMessage&) { return pe.cube == 1 && pe.pe == 1; };
  machine->hangs = [](PeCoord pe, const LaunchMessage&) { return !(pe.cube == 1 && pe.pe == 1); };
  Message& bad = host->at(0, launch_on(machine->map().pes(0), "bad"));
  host->expect(tlm::TLM_GENERIC_ERROR_RESPONSE, bad);
  sc_core::sc_start();
  ASSERT_EQ(host->completed.size(), 1u);
  EXPECT_EQ(bad.faults.size(), 1u);
  EXPECT_EQ(host->status(bad), tlm::TLM_GENERIC_ERROR_RESPONSE);
  EXPECT_EQ(machine->pool().outstanding(), 0u);
}

TEST_F(Launch, HostSocketRefusesWhatIsNoMessage) {
  build({1, 1, 1, 1, 1 << 20});
  sc_core::sc_start();
  tlm::tlm_generic_payload payload;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  EXPECT_EQ(host->socket->nb_transport_fw(payload, phase, delay), tlm::TLM_COMPLETED);
  EXPECT_EQ(payload.get_response_status(), tlm::TLM_COMMAND_ERROR_RESPONSE);
  host->socket->b_transport(payload, delay);
  EXPECT_EQ(payload.get_response_status(), tlm::TLM_COMMAND_ERROR_RESPONSE);
}

}  // namespace
}  // namespace kernbench::testing
