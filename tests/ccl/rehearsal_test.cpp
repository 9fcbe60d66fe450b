#include "ccl/rehearsal/rehearsal.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ccl/choice.h"
#include "ccl/rehearsal/ways.h"
#include "tests/ccl/fake_machine.h"

namespace kernbench::test {
namespace {

constexpr Va kTensor = 1 << 20;
constexpr std::size_t kMany = 1'000'000;

/// Two SIPs of one PE; a packet takes 100 ns between them, 10 ns between a PE and its memory.
MachineMap two_pes() {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 1, 1);
  const std::vector<Node> nodes = map.nodes;
  map.packet_latency = [nodes](NodeId from, NodeId to, std::uint32_t) -> Ps {
    return nodes[index(from)].at.sip != nodes[index(to)].at.sip ? 100'000 : 10'000;
  };
  return map;
}

ccl::Group all_sips(const MachineMap& map) {
  ccl::Group group;
  group.sips.resize(map.sips);
  std::iota(group.sips.begin(), group.sips.end(), std::uint16_t{0});
  return group;
}

/// In place, all of it at PE 0.
ccl::CallTensors tensors_of(CollectiveOp op, std::int64_t elements) {
  ccl::CallTensors tensors;
  tensors.call.op = op;
  tensors.call.dtype = DType::f32;
  tensors.in.base = kTensor;
  tensors.in.shape = {1, elements};
  tensors.in.shards = {{{0, 0, 0}, 0, static_cast<std::uint64_t>(elements) * 4, 1, elements, 0, 0}};
  tensors.out = tensors.in;
  return tensors;
}

std::optional<double> nanoseconds(const MachineMap& map, const char* algorithm, const ccl::CallTensors& tensors,
                                  std::size_t most = kMany) {
  const ccl::Registry registry;
  ccl::RingNumbers rings;
  const ccl::Collective collective(registry.load(algorithm), map, all_sips(map), Scope::sip, rings);
  const auto seconds = ccl::rehearse(map, collective, tensors, most);
  return seconds ? std::optional(*seconds * 1e9) : std::nullopt;
}

TEST(Rehearsal, ChargesDispatchLoadMessageAndStore) {
  const MachineMap map = two_pes();
  // The root issues its load, which takes its way to and from memory, 33.75 ns there and the 19.375 ns that
  // a row takes to open, and 64 B at 256 GB/s.
  const double loaded = 2 + 10 + 33.75 + 19.375 + 10 + 0.25;
  // TCM is read, the packet goes its way, the slot is copied: half a nanosecond each, and the bytes.
  const double received = loaded + 0.5 + 100 + 0.25 + 0.6 + 0.125;
  const double stored = received + 10 + 0.25 + 20 + 10;  // the controller answers 20 ns after the last byte
  EXPECT_NEAR(nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 16)).value(), stored, 0.01);
}

TEST(Rehearsal, TakesEnginesFromTheMap) {
  MachineMap map = two_pes();
  const double usual = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 16)).value();
  map.engines.hbm_hit += 100'000;
  const double far = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 16)).value();
  EXPECT_NEAR(far - usual, 2 * 100, 0.01);  // of a load, and until a store is answered
  map.engines.tcm_latency = 10'000;
  const double slow = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 16)).value();
  EXPECT_NEAR(slow - far, 10 * 5, 0.01);  // written by the load, read by send, copied from the slot, read by the store
  map.odd_pes[{0, 0, 0}] = map.rates({0, 0, 0});
  map.odd_pes[{0, 0, 0}].engines.dispatch += 5'000;
  EXPECT_NEAR(nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 16)).value() - slow, 5, 0.01);
}

TEST(Rehearsal, ASumTakesTheCyclesOfTheMathEngine) {
  MachineMap map = two_pes();
  const auto takes = [&] { return nanoseconds(map, "flood", tensors_of(CollectiveOp::all_reduce, 64)).value(); };
  map.engines.math_hz = 1'000'000'000;
  map.engines.math_lanes = 64;
  map.engines.math_fill = 8;
  const double whole = takes();
  map.engines.math_lanes = 16;
  EXPECT_NEAR(takes() - whole, 3, 0.01);  // four groups of elements instead of one
  map.engines.math_fill = 20;
  EXPECT_NEAR(takes() - whole, 3 + 12, 0.01);
}

TEST(Rehearsal, ALoadWaitsForTheStoreOfWhatItLoads) {
  const MachineMap map = two_pes();
  const ccl::CallTensors tensors = tensors_of(CollectiveOp::all_reduce, 64);
  const ccl::TensorPlaces places(map, tensors);
  const struct : Program {
    std::uint64_t bytes(PeCoord) const override { return 0; }
  } none;
  ccl::RehearsalTl tl(map, places, tensors.call, none, kMany);
  std::vector<ccl::RehearsedOp> ops;
  tl.begin({0, 0, 0}, {}, 4096, ops);
  const Tile tile = tl.load(kTensor, {1, 16}, DType::f32, 0);  // op 0
  tl.store(kTensor + 64, tile, 0);                             // 1: bytes 64 to 128
  tl.store(kTensor + 128, tile, 0);                            // 2: bytes 128 to 192
  tl.load(kTensor, {1, 16}, DType::f32, 0);                    // 3: what nobody stored
  tl.load(kTensor + 96, {1, 16}, DType::f32, 0);               // 4: half of each
  tl.load(kTensor + 188, {1, 1}, DType::f32, 0);               // 5: the end of the second
  tl.load(kTensor + 192, {1, 1}, DType::f32, 0);               // 6: behind it
  ASSERT_EQ(ops.size(), 7U);
  const auto needs = [&](std::size_t i) { return std::pair(ops[i].needs[0], ops[i].needs[1]); };
  EXPECT_EQ(needs(3), std::pair(ccl::kNothing, ccl::kNothing));
  EXPECT_EQ(needs(4), std::pair(2, 1));
  EXPECT_EQ(needs(5), std::pair(ccl::kNothing, 2));
  EXPECT_EQ(needs(6), std::pair(ccl::kNothing, ccl::kNothing));
}

/// The root of an all_reduce stores the sum before it sends it: with a slow port the other one waits for both.
TEST(Rehearsal, OpsThatWaitForOneValueGoInTheOrderOfIssue) {
  MachineMap map = two_pes();
  const auto takes = [&](std::uint64_t bytes_per_second) {
    map.pe_port = Rate{bytes_per_second};
    return nanoseconds(map, "one_tree", tensors_of(CollectiveOp::all_reduce, 64)).value();
  };
  const double twice = takes(2'000'000'000), once = takes(1'000'000'000);
  // The other's load and message, the root's store and message, the other's store: 256 B at half a nanosecond more.
  EXPECT_NEAR(once - twice, 5 * 256 / 2.0, 0.01);
}

TEST(Rehearsal, LanesShareALinkOneMessageAfterTheOther) {
  MachineMap map = two_pes();
  const double free = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 256)).value();
  map.sip_links = {{0, 1, Rate{1'000'000'000}, 100'000, 0}};
  const double narrow = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 256)).value();
  EXPECT_NEAR(narrow - free, 1024 / 1.0 - 1024 / 256.0, 20);  // ns at 1 GB/s and at the port's 256; pieces overlap
}

/// Two SIPs of two cubes, one behind the other, with a PE each; from the farther one all ways out take `farther`
/// longer.
MachineMap two_rows(Ps farther, std::uint64_t bytes_per_second) {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 2, 1);
  for (std::uint16_t sip = 0; sip < 2; ++sip) {
    map.pcie_nodes.push_back(NodeId{static_cast<std::uint32_t>(map.nodes.size())});
    map.nodes.push_back({NodeKind::pcie_ep, 0, {sip, 0, 0, 0}});
  }
  map.sip_links = {{0, 1, Rate{bytes_per_second}, 100'000, 0}};
  const std::vector<Node> nodes = map.nodes;
  map.packet_latency = [nodes, farther](NodeId from, NodeId to, std::uint32_t) -> Ps {
    const Node &a = nodes[index(from)], &b = nodes[index(to)];
    const bool leaves = a.at.sip != b.at.sip || b.kind == NodeKind::pcie_ep;
    return (a.at.sip != b.at.sip ? 100'000 : 10'000) + (leaves && a.at.cube == 1 ? farther : 0);
  };
  return map;
}

ccl::CallTensors over_two_cubes(CollectiveOp op, std::int64_t elements) {
  ccl::CallTensors tensors = tensors_of(op, elements);
  const auto half = static_cast<std::uint64_t>(elements) * 2;
  tensors.in.shards = {{{0, 0, 0}, 0, half, 1, elements / 2, 0, 0},
                       {{0, 1, 0}, half, half, 1, elements / 2, 0, elements / 2}};
  tensors.out = tensors.in;
  return tensors;
}

TEST(Rehearsal, WhileALinkIsBusyWithNearMessagesFarOnesAreOnTheirWay) {
  const ccl::CallTensors tensors = over_two_cubes(CollectiveOp::broadcast, 512);
  const auto takes = [&](Ps farther, std::uint64_t rate) {
    return nanoseconds(two_rows(farther, rate), "one_tree", tensors).value();
  };
  // 1 KiB of each; at 1 GB/s the near one's keeps the link for 1 us.
  EXPECT_NEAR(takes(50'000, 1'000'000'000), takes(0, 1'000'000'000), 1);
  EXPECT_NEAR(takes(50'000, 1'000'000'000'000), takes(0, 1'000'000'000'000) + 50, 2);
}

/// Two rows of one cube; each has two PEs, behind the first and the second of four links of 100 GB/s each.
TEST(Rehearsal, PesOfOneColumnOfRoutersShareALinkOfTheirBundle) {
  MachineMap map = make_map(SipTopology::ring_1d, 2, 0, 0, 1, 2, 2);
  map.pe_links = {0, 1, 0, 1, 0, 1, 0, 1};
  for (std::uint16_t sip = 0; sip < 2; ++sip) {
    map.cube_links.push_back({0, kIoChiplet, Rate(400'000'000'000), 0, sip, 0, 4});
    map.cube_links.push_back({0, 1, Rate(400'000'000'000), 0, sip, 0, 4});
  }
  map.sip_links = {{0, 1, Rate(1'000'000'000'000), 0, 0}};
  ccl::WayBook ways(map);
  const ccl::Way near = ways.way({0, 0, 0}, {1, 1, 1}), far = ways.way({0, 1, 0}, {1, 0, 0});
  const ccl::Way other = ways.way({0, 1, 1}, {1, 0, 1});
  ASSERT_EQ(near.out.size(), 1U);  // to the IO chiplet
  ASSERT_EQ(far.out.size(), 2U);   // to the upper cube, then there
  EXPECT_EQ(near.out.back(), far.out.back());
  EXPECT_NE(other.out.back(), far.out.back());
  EXPECT_EQ(near.in.front(), other.in.front());  // by where they go
  EXPECT_NE(far.in.front(), other.in.front());
  EXPECT_EQ(ways[near.out.back()].bytes_per_second, 100e9);
  EXPECT_EQ(near.least_bytes_per_second, 100e9);
  // Inside a SIP, too: from row to row by the column of the PE that gets them.
  EXPECT_EQ(ways.way({0, 1, 1}, {0, 0, 0}).out, std::vector<std::uint32_t>{far.out.front()});
}

TEST(Rehearsal, APacketKeepsAPassageForACycleHoweverShort) {
  ccl::Passage port;
  port.bytes_per_second = 256;
  port.least = 2;
  EXPECT_EQ(port.pass(0, 4), 0);
  EXPECT_EQ(port.pass(0, 512), 2);   // two packets: two cycles each, or a second each
  EXPECT_EQ(port.pass(0, 2560), 6);  // ten
  EXPECT_EQ(port.pass(0, 4), 26);
  port.bytes_per_second = 10;
  EXPECT_EQ(port.pass(40, 256), 40);
  EXPECT_EQ(port.pass(40, 4), 65.6);  // behind 256 B
}

TEST(Rehearsal, CreditsThatAreThereGoBeforeMessages) {
  ccl::Passage port;
  port.bytes_per_second = 256;
  port.least = 2;
  port.credit(1);
  port.credit(11);
  EXPECT_EQ(port.pass(0, 4), 0);    // not there yet
  EXPECT_EQ(port.pass(5, 4), 5);    // one has passed from 2 to 4
  EXPECT_EQ(port.pass(12, 4), 13);  // the other one keeps it from 11 to 13
  ccl::Passage wide;                // whose packets take no time of their own
  wide.bytes_per_second = 256;
  wide.credit(0);
  EXPECT_EQ(wide.pass(0, 4), 0);
}

TEST(Rehearsal, APacketWaitsForTheCreditOfOneThatItsReceiverHadRoomFor) {
  ccl::Passage link;
  link.packets = 3;
  link.round_trip = 10;
  EXPECT_EQ(link.pass(0, 8), 0);
  EXPECT_EQ(link.pass(1, 512), 1);     // two packets: the receiver is full
  EXPECT_EQ(link.pass(2, 256), 10);    // behind the first's credit
  EXPECT_EQ(link.pass(3, 8), 11);      // behind those of the second message, one to spare
  EXPECT_EQ(link.pass(40, 4096), 40);  // longer than the buffer: when that is empty
  EXPECT_EQ(link.pass(41, 8), 50);
}

TEST(Rehearsal, LinksWithoutABufferToKnowOfDoNotLimitPackets) {
  ccl::Passage link;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(link.pass(0, 256), 0);
}

/// A credit takes 5 us: the next call of the kind waits for those of this one, unless there are slots for both.
TEST(Rehearsal, IsOfTheNextCallWhereThatWaitsForSlotsOfThisOne) {
  const auto takes = [](std::uint16_t slots, std::int64_t elements, Ps command) {
    MachineMap map = two_pes();
    const std::vector<Node> nodes = map.nodes;
    map.engines.credit_bytes = 8;
    map.packet_latency = [nodes](NodeId from, NodeId to, std::uint32_t bytes) -> Ps {
      if (nodes[index(from)].at.sip == nodes[index(to)].at.sip) return 10'000;
      return bytes == 8 ? 5'000'000 : 100'000;
    };
    map.worst_command_latency = command;
    ccl::Group group = all_sips(map);
    group.queue = {slots, 4096, MemoryKind::tcm};
    const ccl::Registry registry;
    ccl::RingNumbers rings;
    const ccl::Collective collective(registry.load("one_tree"), map, group, Scope::sip, rings);
    return ccl::rehearse(map, collective, tensors_of(CollectiveOp::broadcast, elements), kMany).value() * 1e9;
  };
  const double fresh = takes(2, 16, 0);  // one message: the other slot is free
  EXPECT_LT(fresh, 1000);
  // With one slot the second call's message leaves when the credit of the first is back, less what the store took.
  EXPECT_GT(takes(1, 16, 0), 4900);
  EXPECT_LT(takes(1, 16, 0), 5000 + fresh);
  EXPECT_EQ(takes(1, 16, 1'000'000), fresh) << "between the calls go five commands of a microsecond";
}

TEST(Rehearsal, ServesKernelsToo) {
  const MachineMap map = two_pes();
  const auto takes = nanoseconds(map, "ring_allreduce", tensors_of(CollectiveOp::all_reduce, 64));
  ASSERT_TRUE(takes);
  EXPECT_GT(*takes, 200);  // two messages that need each other
  EXPECT_LT(*takes, 600);
}

TEST(Rehearsal, EndsWhereACallHasTooManyOps) {
  const MachineMap map = two_pes();
  EXPECT_FALSE(nanoseconds(map, "ring_allreduce", tensors_of(CollectiveOp::all_reduce, 1 << 16), 20));
}

TEST(Rehearsal, DecidesWhatWasNotMeasuredAndWhatHasNoEstimate) {
  const MachineMap map = two_pes();
  const ccl::Registry registry;
  const ccl::Group group = all_sips(map);
  const ccl::CallTensors tensors = tensors_of(CollectiveOp::all_reduce, 64);
  ccl::Chooser chooser(registry, map, group);
  const auto known = [&](const ccl::CallTensors* where) {
    std::size_t count = 0;
    ccl::ChoiceInput input{CollectiveOp::all_reduce, Scope::sip, 256};
    input.tensors = where;
    for (const ccl::Candidate& candidate : chooser.choose(input).candidates) {
      if (candidate.name == "ring_allreduce" && candidate.ns > 0) ++count;
    }
    return count;
  };
  EXPECT_EQ(known(nullptr), 0U);
  EXPECT_EQ(known(&tensors), 1U);
}

TEST(Rehearsal, TheChoiceFollowsTheRatesOfTheMachine) {
  MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
  map.packet_latency = [](NodeId, NodeId, std::uint32_t) -> Ps { return 100'000; };
  const ccl::Registry registry;
  const ccl::Group group = all_sips(map);
  const ccl::CallTensors tensors = tensors_of(CollectiveOp::all_reduce, 1024);
  const auto chosen = [&] {
    ccl::ChoiceInput input{CollectiveOp::all_reduce, Scope::sip, 4096};
    input.tensors = &tensors;
    const ccl::Choice choice = ccl::Chooser(registry, map, group).choose(input);
    EXPECT_TRUE(choice.candidates.front().rehearsed);
    return choice.algorithm;
  };
  // Everybody sums everything after one message each, or a quarter of it after which the sums have to go round.
  EXPECT_EQ(chosen(), "flood");
  map.engines.math_hz = 1'000'000;
  EXPECT_NE(chosen(), "flood");
}

/// Each of four sends to the next, or to the one after the next.
TEST(Rehearsal, OfASendRecvEveryRankSendsAsFar) {
  const auto takes = [](int distance, int first) {
    MachineMap map = make_map(SipTopology::ring_1d, 4, 0, 0, 1, 1, 1);
    const std::vector<Node> nodes = map.nodes;
    map.packet_latency = [nodes](NodeId from, NodeId to, std::uint32_t) -> Ps {
      const int hops = std::abs(nodes[index(from)].at.sip - nodes[index(to)].at.sip);
      return 10'000 + 1'000'000 * std::min(hops, 4 - hops);
    };
    ccl::CallTensors tensors = tensors_of(CollectiveOp::send_recv, 16);
    tensors.out.base = 2 * kTensor;
    tensors.call.to = (first + distance) % 4;
    tensors.call.from = (first + 4 - distance) % 4;
    tensors.first = first;
    return nanoseconds(map, "direct", tensors).value();
  };
  EXPECT_EQ(takes(1, 0), takes(1, 3));
  EXPECT_NEAR(takes(2, 0) - takes(1, 0), 1000, 1);
}

/// Packets from anywhere to anywhere take 10 ns.
MachineMap one_sip(int cube_w, int cube_h, int pes) {
  MachineMap map = make_map(SipTopology::ring_1d, 1, 0, 0, cube_w, cube_h, pes);
  map.packet_latency = [](NodeId, NodeId, std::uint32_t) -> Ps { return 10'000; };
  return map;
}

/// Four PEs of SIP 0, each a rank.
ccl::Group four_ranks(const MachineMap& map) {
  ccl::Group group;
  group.pes = ccl::rank_pes(map, 4);
  group.sips.assign(4, 0);
  return group;
}

TEST(Rehearsal, RanksThatArePesAreRehearsedOnceForAll) {
  const MachineMap map = one_sip(2, 1, 2);
  const ccl::Group group = four_ranks(map);
  const ccl::Registry registry;
  ccl::Chooser chooser(registry, map, group);
  ccl::CallTensors tensors = tensors_of(CollectiveOp::all_reduce, 64);
  ccl::ChoiceInput input{CollectiveOp::all_reduce, Scope::sip, 256};
  input.tensors = &tensors;
  const ccl::Choice& first = chooser.choose(input);
  EXPECT_TRUE(first.candidates.front().rehearsed);
  for (const ccl::Candidate& candidate : first.candidates) {
    EXPECT_TRUE(candidate.rehearsed || !candidate.unfit.empty()) << candidate.name;  // estimates sort nothing out
  }
  tensors.in.shards.front().owner = tensors.out.shards.front().owner = group.pes[3];
  EXPECT_EQ(&chooser.choose(input), &first);
}

/// IO_CPU sends a launch's start command when the start before has come.
TEST(Rehearsal, RanksOfOneSipStartOneAfterTheOther) {
  MachineMap map = one_sip(1, 1, 4);
  const ccl::Group group = four_ranks(map);
  const ccl::Registry registry;
  const auto takes = [&] {
    ccl::RingNumbers rings;
    const ccl::Collective collective(registry.load("flood"), map, group, Scope::sip, rings);
    return ccl::rehearse(map, collective, tensors_of(CollectiveOp::all_reduce, 64), kMany).value() * 1e9;
  };
  map.worst_command_latency = 1'000'000;
  const double late = takes();
  map.worst_command_latency = 2'000'000;
  EXPECT_NEAR(takes() - late, 3 * 1'000, 0.01);
  const double later = takes();
  map.io_command = 100'000;
  EXPECT_NEAR(takes() - later, 3 * 2 * 100, 0.01);
}

/// The rank that asks first: its launch is sent before the others'.
TEST(Rehearsal, TheRankThatAsksStartsBeforeTheOthers) {
  MachineMap map = one_sip(1, 1, 4);
  map.worst_command_latency = 1'000'000;
  const ccl::Group group = four_ranks(map);
  const ccl::Registry registry;
  const auto takes = [&](int first) {
    ccl::RingNumbers rings;
    const ccl::Collective collective(registry.load("direct"), map, group, Scope::sip, rings);
    ccl::CallTensors tensors = tensors_of(CollectiveOp::broadcast, 64);
    tensors.call.root = 3;
    tensors.first = first;
    return ccl::rehearse(map, collective, tensors, kMany).value() * 1e9;
  };
  EXPECT_EQ(takes(0), takes(2));        // the root is the last of them
  EXPECT_LE(takes(3), takes(0));        // it is the first: nobody waits for it
  EXPECT_GT(takes(3), takes(0) - 1e3);  // the last of the others starts when the root did
}

}  // namespace
}  // namespace kernbench::test
