#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/pipeline/evaluate.h"
#include "runtime/pipeline/graph_text.h"
#include "tests/support/test_folder.h"

namespace kernbench::pipeline {
namespace {

namespace fs = std::filesystem;
using CaseJson = nlohmann::json;

DType type_named(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::boolean}) {
    if (document_type(dtype) == name) return dtype;
  }
  ADD_FAILURE() << name;
  return DType::f32;
}

HostTensor tensor_of(const CaseJson& described) {
  HostTensor tensor{described["shape"].get<std::vector<std::int64_t>>(), type_named(described["dtype"]), {}};
  const auto hex = described["hex"].get<std::string>();
  for (std::size_t i = 0; i < hex.size(); i += 2)
    tensor.bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return tensor;
}

/// A supertask with the case's graph; JSON is YAML.
std::string document_of(const CaseJson& one) {
  CaseJson tensors = CaseJson::object(), inputs = CaseJson::array(), outputs = CaseJson::array();
  for (const auto& [name, tensor] : one["inputs"].items()) {
    tensors[name] = {{"shape", tensor["shape"]}, {"dtype", tensor["dtype"]}};
    inputs.push_back(name);
  }
  for (std::size_t i = 0; i < one["outputs"].size(); ++i) {
    const std::string name = "out" + std::to_string(i);
    tensors[name] = {{"shape", one["outputs"][i]["shape"]}, {"dtype", one["outputs"][i]["dtype"]}};
    outputs.push_back(name);
  }
  const CaseJson none = {{"inputs", CaseJson::object()}, {"outputs", CaseJson::object()}};
  return CaseJson{
      {"name", "p"},
      {"devices", {{"d", {{"kind", "cpu"}, {"idx", 0}}}}},
      {"tensors", tensors},
      {"supertasks",
       {{"t", {{"kind", "FX"}, {"device", "d"}, {"inputs", inputs}, {"outputs", outputs}, {"data", one["graph"]}}}}},
      {"metadata", {{"tensors", none}, {"tensor_slices", none}}}}
      .dump();
}

/// Every FX target, f32, f16 and bf16, against PyTorch itself; the machine against the host: PipelineOps in
/// run_operations_test.
TEST(PipelineOperations, TheHostComputesWhatPyTorchDoes) {
  const TestFolder folder;
  const std::string path = folder.file("cases.json");
  const std::string script = std::string(KERNBENCH_SOURCE_DIR) + "/tests/pipeline/write_operations.py";
  ASSERT_EQ(std::system((std::string(KERNBENCH_PYTHON) + " " + script + " " + path).c_str()), 0)
      << "needs Debian's python3-torch, which make test installs";
  std::ifstream file(path);
  const CaseJson cases = CaseJson::parse(file);
  std::set<std::string> targets{"operator.getitem"};
  for (const CaseJson& one : cases) {
    targets.insert(one["target"].get<std::string>());
    const std::string what = one["target"].get<std::string>() + " " + one["graph"].get<std::string>();
    Problems problems;
    const Pipeline pipeline = read_pipeline(parse_config(document_of(one), "p.json"), {}, problems);
    const auto graph = build_graph(pipeline, pipeline.supertasks.front(), problems);
    ASSERT_EQ(problems.str(), "") << what;
    std::vector<HostTensor> operands;
    for (const Text& name : pipeline.supertasks.front().inputs.value)
      operands.push_back(tensor_of(one["inputs"][name.value]));
    const std::vector<HostTensor> results = evaluate(*graph, operands);
    ASSERT_EQ(results.size(), one["outputs"].size()) << what;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const HostTensor expected = tensor_of(one["outputs"][i]);
      ASSERT_EQ(results[i].shape, expected.shape) << what;
      // One rounding of the type on either side, and f32 sums of up to 40 terms in PyTorch.
      const double tolerance = expected.dtype == DType::bf16 ? 8e-3 : expected.dtype == DType::f16 ? 1e-3 : 2e-6;
      for (std::size_t e = 0; e < static_cast<std::size_t>(expected.count()); ++e) {
        const double want = load_element(expected.bytes.data(), expected.dtype, e),
                     have = load_element(results[i].bytes.data(), expected.dtype, e);
        ASSERT_LE(std::abs(have - want), tolerance * (1 + std::abs(want))) << what << ", element " << e;
      }
    }
  }
  for (const Operation& operation : operations())
    EXPECT_EQ(targets.count(operation.target), 1U) << operation.target << " has no case";
}

}  // namespace
}  // namespace kernbench::pipeline
