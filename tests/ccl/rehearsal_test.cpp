#include "ccl/rehearsal/rehearsal.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ccl/choice.h"
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

ccl::Group everybody(const MachineMap& map) {
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
  const ccl::Collective collective(registry.load(algorithm), map, everybody(map), Scope::sip, rings);
  const auto seconds = ccl::rehearse(map, collective, tensors, most);
  return seconds ? std::optional(*seconds * 1e9) : std::nullopt;
}

TEST(Rehearsal, ChargesDispatchLoadMessageAndStore) {
  const MachineMap map = two_pes();
  // The root issues its load, which takes its way to and from memory and 40 ns there, and 64 B at 256 GB/s.
  const double loaded = 2 + 10 + 40 + 10 + 0.25;
  // TCM is read, the packet goes its way, the slot is copied: half a nanosecond each, and the bytes.
  const double received = loaded + 0.5 + 100 + 0.25 + 0.6 + 0.125;
  const double stored = received + 10 + 0.25 + 10;
  EXPECT_NEAR(nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 16)).value(), stored, 0.01);
}

TEST(Rehearsal, LanesShareALinkOneMessageAfterTheOther) {
  MachineMap map = two_pes();
  const double free = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 256)).value();
  map.sip_links = {{0, 1, Rate{1'000'000'000}, 100'000, 0}};
  const double narrow = nanoseconds(map, "one_tree", tensors_of(CollectiveOp::broadcast, 256)).value();
  EXPECT_NEAR(narrow - free, 1024 / 1.0 - 1024 / 256.0, 20);  // ns at 1 GB/s and at the port's 256; pieces overlap
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
  const ccl::Group group = everybody(map);
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

}  // namespace
}  // namespace kernbench::test
