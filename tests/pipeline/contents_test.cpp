#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "runtime/pipeline/safetensors.h"
#include "tests/pipeline/pipeline_tool.h"

namespace kernbench {
namespace {

/// The table is an input, too: no weights file is needed.
constexpr const char* kLookUp = R"json({"name": "e", "devices": {"a": {"kind": "npu", "idx": 0}},
  "tensors": {"ids": {"shape": [1, 128], "dtype": "i64"}, "w": {"shape": [512, 64], "dtype": "f32"},
              "y": {"shape": [1, 128, 64], "dtype": "f32"}},
  "supertasks": {"in": {"kind": "input", "inputs": [], "outputs": ["ids", "w"]},
                 "c": {"kind": "dfg", "device": "a", "inputs": ["w", "ids"], "outputs": ["y"],
                       "data": "y = embedding(w, ids)"},
                 "out": {"kind": "output", "inputs": ["y"], "outputs": []}},
  "metadata": {"tensors": {"inputs": {"ids": {"shape": [1, 128], "dtype": "i64", "idx": 0},
                                      "w": {"shape": [512, 64], "dtype": "f32", "idx": 1}},
                           "outputs": {"y": {"shape": [1, 128, 64], "dtype": "f32", "idx": 0}}},
    "tensor_slices": {
      "inputs": {"ids": {"placements": [[0, 1], [0, 128]], "origin": "ids", "dtype": "i64", "device": "a"},
                 "w": {"placements": [[0, 512], [0, 64]], "origin": "w", "dtype": "f32", "device": "a"}},
      "outputs": {"y": {"placements": [[0, 1], [0, 128], [0, 64]], "origin": "y", "dtype": "f32",
                        "device": "a"}}}}})json";

/// Rows 0, step, 2 step, ... of the table.
std::string look_up_inputs(std::int64_t step) {
  pipeline::HostTensor ids{{1, 128}, DType::i64, std::vector<std::uint8_t>(128 * 8)},
      table{{512, 64}, DType::f32, std::vector<std::uint8_t>(512 * 64 * 4)};
  for (std::int64_t i = 0; i < 128; ++i)
    std::memcpy(ids.bytes.data() + 8 * i, std::array<std::int64_t, 1>{i * step}.data(), 8);
  return pipeline::to_safetensors({{"ids", ids}, {"w", table}});
}

TEST(PipelineTool, ContentsChangeNoTime) {
  const Tool tool;
  std::ofstream(tool.file("e.json")) << kLookUp;
  std::ofstream(tool.file("spread.safetensors")) << look_up_inputs(4);
  std::ofstream(tool.file("one.safetensors")) << look_up_inputs(0);
  std::ofstream(tool.file("beyond.safetensors")) << look_up_inputs(5);
  const auto latency = [&](const std::vector<std::string>& words, const char* data) {
    const Outcome outcome =
        tool(with(with(with({"pipeline", "run"}, words), {"--json", "-", "--data", data}), kTwoSips));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return row_of(outcome, "row", "pipeline")["latency_ns"].get<double>();
  };
  std::set<double> latencies;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"e.json", "--inputs", "spread.safetensors"},
        {"e.json", "--inputs", "one.safetensors"},
        {kExamples + "kinds/cpu.yaml", "--host-io", "timed"},
        {kExamples + "kinds/dfg.yaml", "--host-io", "timed", "--include-load"}}) {
    const double with_data = latency(words, "on");
    EXPECT_EQ(latency(words, "off"), with_data) << words.front();
    latencies.insert(with_data);
  }
  EXPECT_EQ(latencies.size(), 4U) << "which rows are looked up decides the time";
  for (const char* data : {"on", "off"}) {
    const Outcome outcome =
        tool(with({"pipeline", "run", "e.json", "--inputs", "beyond.safetensors", "--data", data}, kTwoSips));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("index 515 is outside of the table's 512 rows"), std::string::npos) << outcome.err;
  }
}

/// Rows 0, step, 2 step, ... of a table of row numbers, and what these are.
std::map<std::string, pipeline::HostTensor> numbered_rows(std::int64_t step) {
  std::map<std::string, pipeline::HostTensor> tensors{
      {"ids", {{1, 128}, DType::i64, std::vector<std::uint8_t>(128 * 8)}},
      {"w", {{512, 64}, DType::f32, std::vector<std::uint8_t>(512 * 64 * 4)}},
      {"y", {{1, 128, 64}, DType::f32, std::vector<std::uint8_t>(128 * 64 * 4)}}};
  for (std::size_t i = 0; i < 512 * 64; ++i)
    store_element(tensors["w"].bytes.data(), DType::f32, i, static_cast<double>(i / 64));
  for (std::size_t i = 0; i < 128; ++i)
    store_integer(tensors["ids"].bytes.data(), DType::i64, i, static_cast<std::int64_t>(i) * step);
  for (std::size_t i = 0; i < 128 * 64; ++i)
    store_element(tensors["y"].bytes.data(), DType::f32, i, static_cast<double>(i / 64) * static_cast<double>(step));
  return tensors;
}

TEST(PipelineTool, RowsOfComputedIndicesAreRightAndTakeOneTimeWhateverTheyAre) {
  const Tool tool;
  std::string document = kLookUp;
  document.replace(document.find("y = embedding(w, ids)"), 21,
                   "k = add(ids, 1)\\nk2 = sub(k, 1)\\ny = embedding(w, k2)");
  std::ofstream(tool.file("e.json")) << document;
  for (const char* copies : {"debug", "timed"}) {
    std::set<double> latencies;
    for (const std::int64_t step : {4, 0}) {
      std::map<std::string, pipeline::HostTensor> tensors = numbered_rows(step);
      std::ofstream(tool.file("y.safetensors")) << pipeline::to_safetensors({{"y", tensors["y"]}});
      tensors.erase("y");
      std::ofstream(tool.file("in.safetensors")) << pipeline::to_safetensors(tensors);
      std::vector<std::string> run = with(
          {"pipeline", "run", "e.json", "--inputs", "in.safetensors", "--json", "-", "--host-io", copies}, kTwoSips);
      for (const std::vector<std::string>& more :
           {std::vector<std::string>{"--expect", "y.safetensors"}, {"--data", "off", "--replay", "off"}}) {
        const Outcome outcome = tool(with(run, more));
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        latencies.insert(row_of(outcome, "row", "pipeline")["latency_ns"].get<double>());
      }
    }
    EXPECT_EQ(latencies.size(), 1U) << copies;
  }
  std::ofstream(tool.file("beyond.safetensors")) << look_up_inputs(5);
  const Outcome outcome = tool(with({"pipeline", "run", "e.json", "--inputs", "beyond.safetensors"}, kTwoSips));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("index 515 is outside of the table's 512 rows"), std::string::npos) << outcome.err;
}

TEST(PipelineTool, WithoutDataHasNoOutputs) {
  const Tool tool;
  std::ofstream(tool.file("e.json")) << kLookUp;
  std::ofstream(tool.file("y.safetensors")) << look_up_inputs(1);
  const std::string hint = " with --data off: there are no outputs\n  hint: leave one of both out\n";
  const Outcome outcome = tool(
      with({"pipeline", "run", "e.json", "--data", "off", "--outputs", "o.safetensors", "--expect", "y.safetensors"},
           kTwoSips));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "kernbench: error: --outputs 'o.safetensors'" + hint + "kernbench: error: --expect 'y.safetensors'" + hint);
  EXPECT_FALSE(std::filesystem::exists(tool.file("o.safetensors")));
}

TEST(PipelineTool, WritesOverNoInput) {
  const Tool tool;
  std::ofstream(tool.file("e.json")) << kLookUp;
  std::ofstream(tool.file("in.safetensors")) << look_up_inputs(1);
  const std::vector<std::string> run{"pipeline",       "run",        "e.json", "--inputs",
                                     "in.safetensors", "--topology", "minimal"};
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--outputs", "in.safetensors"},
                                               {"--outputs", "e.json"},
                                               {"--json", "e.json"},
                                               {"--oplog", "in.safetensors"},
                                               {"--outputs", "o", "--json", "o"},
                                               {"--expect", "x", "--outputs", "x"}}) {
    if (more.front() == "--expect") std::ofstream(tool.file("x")) << look_up_inputs(1);
    const Outcome outcome = tool(with(run, more));
    EXPECT_EQ(outcome.code, 2) << more[0] << more[1];
    EXPECT_NE(outcome.err.find(" are both '"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(tool({"pipeline", "show", "e.json", "-o", "e.json"}).code, 2);
  EXPECT_EQ(read(tool.file("e.json")), kLookUp);
  EXPECT_EQ(tool(with(run, {"--outputs", "y.safetensors"})).code, 0);
}

}  // namespace
}  // namespace kernbench
