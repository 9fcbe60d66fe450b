#include <gtest/gtest.h>

#include "runtime/pipeline/evaluate.h"
#include "tests/pipeline/run_case.h"

namespace kernbench::pipeline {
namespace {

/// A chain over slots that are parts of SIPs and machines: y = gelu(x w) on one slot, relu(y + 1) on the next one.
std::string chain_of(const std::vector<std::string>& devices) {
  std::string text = "name: chain\ndevices:\n", tensors = "tensors:\n  w: {shape: [16, 24], dtype: f32}\n", tasks, out;
  for (std::size_t i = 0; i < devices.size(); ++i) text += "  d" + std::to_string(i) + ": {" + devices[i] + "}\n";
  std::string at = "x";
  tensors += "  x: {shape: [8, 16], dtype: f32}\n";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    tensors += "  y" + n + ": {shape: [8, 24], dtype: f32}\n";
    tasks += "  t" + n + ": {kind: dfg, device: d" + n + ", inputs: [" + (i == 0 ? "x, w" : at) + "], outputs: [y" + n +
             "], data: \"" +
             (i == 0 ? "a = matmul(x, w)\\ny0 = gelu(a)" : "a = add(" + at + ", 1)\\ny" + n + " = relu(a)") + "\"}\n";
    at = "y" + n;
    if (i + 1 == devices.size()) break;
    tensors += "  r" + next + ": {shape: [8, 24], dtype: f32}\n";
    const std::string group = "group: g" + n + ", metadata: {}";
    tasks += "  s" + n + ": {kind: send, device: d" + n + ", inputs: [y" + n + "], outputs: [], device_idx: 0, " +
             group + "}\n  r" + n + ": {kind: recv, device: d" + next + ", inputs: [], outputs: [r" + next +
             "], device_idx: 1, " + group + "}\n";
    at = "r" + next;
  }
  const std::string last = "d" + std::to_string(devices.size() - 1);
  return text + tensors + "supertasks:\n  in: {kind: input, inputs: [], outputs: [x, w]}\n" + tasks +
         "  out: {kind: output, inputs: [" + at + "], outputs: []}\n" +
         "metadata:\n  tensors:\n    inputs: {x: {shape: [8, 16], dtype: f32, idx: 0}, w: {shape: [16, 24], dtype: "
         "f32, "
         "idx: 1}}\n    outputs: {" +
         at +
         ": {shape: [8, 24], dtype: f32, idx: 0}}\n  tensor_slices:\n    inputs:\n"
         "      x: {placements: [[0, 8], [0, 16]], origin: x, dtype: f32, device: d0}\n"
         "      w: {placements: [[0, 16], [0, 24]], origin: w, dtype: f32, device: d0}\n    outputs:\n      " +
         at + ": {placements: [[0, 8], [0, 24]], origin: " + at + ", dtype: f32, device: " + last + "}\n";
}

/// The chain on any slots computes what it computes on the host.
RunOutcome expect_chain(const std::vector<std::string>& devices, int sips, int requests) {
  const HostTensors wholes{{"x", values_of({{8, 16}, DType::f32}, 1)}, {"w", values_of({{16, 24}, DType::f32}, 2)}};
  RunOutcome outcome = run_document(chain_of(devices), wholes, sips, {}, requests);
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < devices.size(); ++i) hosts.push_back("kind: cpu, idx: " + std::to_string(i));
  Problems problems;
  const Pipeline on_host = read_pipeline(parse_config(chain_of(hosts), "h.yaml"), {}, problems);
  HostTensor value =
      evaluate(*build_graph(on_host, supertask(on_host, "t0"), problems), {wholes.at("x"), wholes.at("w")}).front();
  for (std::size_t i = 1; i < devices.size(); ++i)
    value = evaluate(*build_graph(on_host, supertask(on_host, "t" + std::to_string(i)), problems), {value}).front();
  EXPECT_EQ(outcome.outputs.size(), 1U);
  const HostTensor& got = outcome.outputs.begin()->second;
  for (std::size_t e = 0; e < static_cast<std::size_t>(value.count()); ++e)
    EXPECT_NEAR(load_element(got.bytes.data(), DType::f32, e), load_element(value.bytes.data(), DType::f32, e), 2e-5)
        << "element " << e;
  return outcome;
}

/// The time of one supertask of the last request.
TaskTime time_of(const RunOutcome& outcome, const std::string& task) {
  for (const auto& slot : outcome.slots) {
    for (const TaskTime& time : slot) {
      if (time.task->name == task) return time;
    }
  }
  ADD_FAILURE() << task << " has no time";
  return {};
}

/// Cubes, PEs of a cube, and slots on another SIP with the same part: every way for a tensor from slot to slot.
TEST(PipelineParts, SlotsOfPartsOfASipComputeAndPassOn) {
  expect_chain({"kind: npu, idx: 0, cubes: [0, 1]", "kind: npu, idx: 0, cubes: [1, 2], pes: [0, 1]",
                "kind: npu, idx: 1, cubes: [1, 2], pes: [0, 1]", "kind: npu, idx: 1, cubes: [1, 2], pes: [1, 2]"},
               2, 2);
}

/// Two slots of one SIP: while the second one works on a request, the first one is at the next.
TEST(PipelineParts, SlotsOfOneSipWorkAtOnce) {
  const RunOutcome outcome =
      expect_chain({"kind: npu, idx: 0, cubes: [0, 1]", "kind: npu, idx: 0, cubes: [1, 2]"}, 1, 6);
  const Ps alone = outcome.requests.back().second - outcome.requests.back().first;
  EXPECT_LT(outcome.passes.front(), 5 * alone) << "six requests one after the other take six times as long";
  EXPECT_GE(time_of(outcome, "t1").begin, time_of(outcome, "t0").end) << "the second slot waits for the first one";
}

/// SIPs are dealt to machines in order: of four, machine 1 has the second two.
TEST(PipelineParts, SlotsOfSeveralMachinesAreTheirSips) {
  expect_chain({"kind: npu, idx: 0", "kind: npu, idx: 1, machine: 1", "kind: cpu, idx: 0, machine: 1"}, 4, 1);
}

/// What a rank with a part makes lies there, spread over it; a part that is not there is refused.
TEST(PipelineParts, TensorsOfARankWithAPartLieThere) {
  kernbench::testing::MachineRun machine(kernbench::testing::machine_of(1, 4, 4));
  machine.runtime.spawn(
      [](Context& context) {
        context.set_part(CubeRange{1, 2}, PeRange{1, 3});
        static_assert(!std::is_invocable_v<decltype(&Context::set_part), Context&, PeRange, CubeRange>);
        const Tensor tensor =
            context.zeros({12, 8}, DType::f32, DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise), "t");
        std::vector<std::pair<int, int>> places;
        for (const ShardSpec& shard : tensor.shards()) {
          places.emplace_back(shard.cube, shard.pe);
          EXPECT_EQ(shard.region.rows, 2);
        }
        EXPECT_EQ(places, (std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}}));
        try {
          context.set_part(CubeRange{3, 2}, PeRange{0, 4});
          ADD_FAILURE() << "cube 4 of 4 was taken";
        } catch (const std::invalid_argument& error) {
          EXPECT_STREQ(error.what(), "set_part: cubes 3 to 4 with PEs 0 to 3 of each are not all there on every SIP");
        }
      },
      std::tuple<>(), 1);
}

}  // namespace
}  // namespace kernbench::pipeline
