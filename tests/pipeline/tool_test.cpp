#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {

const std::string kExamples = std::string(KERNBENCH_SOURCE_DIR) + "/docs/examples/pipeline/";
const std::vector<std::string> kTwoSips{"--topology", "minimal", "--set", "system.sips.count=2"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The only row of a kind in the results.
nlohmann::json row_of(const Outcome& outcome, const char* key, const char* value) {
  const nlohmann::json all = nlohmann::json::parse(outcome.out);
  for (const nlohmann::json& row : all["results"]) {
    if (row.value(key, "") == value) return row;
  }
  return {};
}

TEST(PipelineTool, EveryKindOfSupertaskComputesWhatIsExpected) {
  const Tool tool;
  const Outcome checked = tool(with({"pipeline", "check", kExamples + "all_kinds.yaml"}, kTwoSips));
  EXPECT_EQ(checked.code, 0) << checked.err;
  for (const char* order : {"flow", "document"}) {
    const Outcome outcome = tool(
        with({"pipeline", "run", kExamples + "all_kinds.yaml", "--inputs", kExamples + "inputs.safetensors", "--expect",
              kExamples + "expected.safetensors", "--outputs", "out.safetensors", "--order", order, "--json", "-"},
             kTwoSips));
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    const nlohmann::json summary = row_of(outcome, "row", "pipeline");
    EXPECT_EQ(summary["check"], "ok");
    EXPECT_EQ(summary["max_abs_err"], 0.0);
    EXPECT_GT(summary["latency_ns"].get<double>(), 0);
    EXPECT_EQ(summary["critical_path"].back(), "post");
  }
}

TEST(PipelineTool, OutputsThatDifferEndWithCode1) {
  const Tool tool;
  // `positive` in the place of `raw` and the other way round.
  tool.shell("sed 's/positive/temporar/; s/\"raw\"/\"raw\"/' " + quoted(kExamples + "expected.safetensors") +
             " > other.safetensors");
  const Outcome missing =
      tool(with({"pipeline", "run", kExamples + "all_kinds.yaml", "--expect", "other.safetensors"}, kTwoSips));
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "other.safetensors: error: holds no tensor 'positive'\n  hint: it holds: raw, temporar\n");
  const Outcome wrong = tool(with(
      {"pipeline", "run", kExamples + "all_kinds.yaml", "--expect", kExamples + "expected.safetensors", "--seed", "3"},
      kTwoSips));
  EXPECT_EQ(wrong.code, 1) << wrong.err;
}

/// Two slots come to two exchanges in different orders. In one order for all that is no matter; in the document's they
/// wait for each other for ever.
TEST(PipelineTool, AnOrderThatDeadlocksAtRunTimeEndsAsAnyDeadlock) {
  const Tool tool;
  const std::string head = R"(name: crossed
devices: {a: {kind: npu, idx: 0}, b: {kind: npu, idx: 1}}
tensors:
  x0: {shape: [4], dtype: f32}
  x1: {shape: [4], dtype: f32}
  p0: {shape: [4], dtype: f32}
  p1: {shape: [4], dtype: f32}
)";
  const std::string transfers = R"(supertasks:
  in: {kind: input, inputs: [], outputs: [x0, x1]}
  recv0: {kind: recv, device: a, inputs: [], outputs: [p0], group: down, device_idx: 0, metadata: {}}
  send0: {kind: send, device: a, inputs: [x0], outputs: [], group: up, device_idx: 0, metadata: {}}
  recv1: {kind: recv, device: b, inputs: [], outputs: [p1], group: up, device_idx: 1, metadata: {}}
  send1: {kind: send, device: b, inputs: [x1], outputs: [], group: down, device_idx: 1, metadata: {}}
)";
  const std::string collectives = R"(  q1: {shape: [4], dtype: f32}
supertasks:
  in: {kind: input, inputs: [], outputs: [x0, x1]}
  one0: {kind: broadcast, device: a, inputs: [], outputs: [p0], group: one, device_idx: 0, metadata: {src: b}}
  two0: {kind: reduce, device: a, inputs: [x0], outputs: [], group: two, device_idx: 0, metadata: {reduce_op: sum, dst: b}}
  two1: {kind: reduce, device: b, inputs: [x1], outputs: [q1], group: two, device_idx: 1, metadata: {reduce_op: sum, dst: b}}
  one1: {kind: broadcast, device: b, inputs: [x1], outputs: [p1], group: one, device_idx: 1, metadata: {src: b}}
)";
  const std::string tail = R"(  out: {kind: output, inputs: [p0, p1], outputs: []}
metadata:
  tensors: {inputs: {x: {shape: [8], dtype: f32, idx: 0}}, outputs: {y: {shape: [8], dtype: f32, idx: 0}}}
  tensor_slices:
    inputs:
      x0: {placements: [[0, 4]], origin: x, dtype: f32, device: a}
      x1: {placements: [[4, 8]], origin: x, dtype: f32, device: b}
    outputs:
      p0: {placements: [[0, 4]], origin: y, dtype: f32, device: a}
      p1: {placements: [[4, 8]], origin: y, dtype: f32, device: b}
)";
  for (const std::string& tasks : {transfers, collectives}) {
    std::ofstream(tool.file("p.yaml")) << head << tasks << tail;
    const Outcome good = tool(with({"pipeline", "run", "p.yaml"}, kTwoSips));
    EXPECT_EQ(good.code, 0) << good.err;
    const Outcome stuck = tool(with({"pipeline", "run", "p.yaml", "--order", "document"}, kTwoSips));
    EXPECT_EQ(stuck.code, 3) << stuck.out << stuck.err;
    // The words of every deadlock, which name what is blocked; `up` and `down`, `one` and `two` wait for each other.
    EXPECT_NE(stuck.err.find("deadlock at "), std::string::npos) << stuck.err;
  }
}

TEST(PipelineTool, ProblemsOfADocumentEndWithCode2) {
  const Tool tool;
  const Outcome outcome = tool({"pipeline", "check", kExamples + "all_kinds.yaml", "--topology", "minimal"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("all_kinds.yaml:8:26: error: $.devices.npu1.idx is 1, but the machine has 1 SIPs\n"
                             "  hint: give 0 to 0, or a larger machine with --topology"),
            std::string::npos)
      << outcome.err;
}

/// Two stages of about equal length: while the second works on a request, the first works on the next.
TEST(PipelineTool, StagesOverlapSuccessiveRequests) {
  const Tool tool;
  ASSERT_EQ(
      tool({"pipeline", "export", "--pp", "2", "--in", "64", "--hidden", "64", "--out", "64", "--output", "mlp.json"})
          .code,
      0);
  const Outcome one = tool(with({"pipeline", "run", "mlp.json", "--json", "-"}, kTwoSips));
  const Outcome four = tool(with({"pipeline", "run", "mlp.json", "--requests", "4", "--json", "-"}, kTwoSips));
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(four.code, 0) << four.err;
  const double single = row_of(one, "row", "pipeline")["requests_per_s"],
               several = row_of(four, "row", "pipeline")["requests_per_s"];
  EXPECT_GT(several, 1.1 * single);
  EXPECT_LT(several, 2 * single);  // no stage is longer than half of a request
  // A request is not faster for the others, and the last of four does not wait for all of them twice.
  const double alone = row_of(one, "row", "pipeline")["latency_ns"],
               among = row_of(four, "row", "pipeline")["latency_ns"];
  EXPECT_GE(among, 0.99 * alone);
  EXPECT_LE(among, 4 / several * 1e9);
  // No slot is busy for longer than all requests take.
  for (const auto& row : nlohmann::json::parse(four.out)["results"]) {
    if (row["row"] != "slot") continue;
    EXPECT_LE(row["computing"].get<double>() + row["communicating"].get<double>(), 1.0001);
  }
}

TEST(PipelineTool, ExportSaysWhichOptionsBelongTogether) {
  const Tool tool;
  const auto refused = [&](std::vector<std::string> more) {
    const Outcome outcome = tool(with({"pipeline", "export", "--output", "p.json"}, more));
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_EQ(refused({"--model", "llama3-8b", "--hidden", "64"}),
            "kernbench: error: --hidden together with --model\n  hint: the model says its sizes\n");
  EXPECT_EQ(refused({"--prompt", "4"}),
            "kernbench: error: --prompt without --model\n  hint: it is of layers of a language model\n");
  EXPECT_EQ(refused({"--model", "llama3-8b", "--layers", "33"}),
            "kernbench: error: --layers is 33\n  hint: model 'llama3-8b' has 32\n");
  EXPECT_EQ(refused({"--model", "llama3-8b", "--pp", "2"}),
            "kernbench: error: --pp is 2: give 1 to 1, the number of layers\n");
  EXPECT_EQ(refused({"--model", "llama3-8b", "--tp", "3"}),
            "kernbench: error: --tp is 3: give a divisor of the 32 heads\n");
}

}  // namespace
}  // namespace kernbench
