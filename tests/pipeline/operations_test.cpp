#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/pipeline/graph_text.h"
#include "tests/pipeline/run_case.h"
#include "tests/support/test_folder.h"

namespace kernbench::pipeline {
namespace {

using CaseJson = nlohmann::json;

TensorType type_in(const CaseJson& described) {
  return {described["shape"].get<std::vector<std::int64_t>>(), *parse_dtype(described["dtype"])};
}

HostTensor tensor_of(const CaseJson& described) {
  const TensorType type = type_in(described);
  HostTensor tensor{type.shape, type.dtype, {}};
  const auto hex = described["hex"].get<std::string>();
  for (std::size_t i = 0; i < hex.size(); i += 2)
    tensor.bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return tensor;
}

/// All cases in one document, which is JSON: a supertask each on a SIP and on the host. A tensor of slot d is called
/// d_NAME, output i of case c d_c_i.
class Cases {
 public:
  Cases(const CaseJson& made, DType f8) {
    for (const char* slot : {"npu", "cpu"}) {
      document_["devices"][slot] = {{"kind", slot}, {"idx", 0}};
      for (const auto& [name, tensor] : made["tensors"].items()) boundary(slot, name, tensor, "inputs");
    }
    for (const CaseJson& one : made["cases"]) {
      // A document has one of the two: the other is the result of casts alone.
      bool other_f8 = false;
      for (const CaseJson& output : one["outputs"]) {
        const DType dtype = type_in(output).dtype;
        other_f8 = other_f8 || (dtype != f8 && (dtype == DType::f8e4m3 || dtype == DType::f8e5m2));
      }
      if (!other_f8) add(one);
    }
    document_["supertasks"]["out"] = {{"kind", "output"}, {"inputs", outputs_}, {"outputs", CaseJson::array()}};
    document_["supertasks"]["in"] = {{"kind", "input"}, {"inputs", CaseJson::array()}, {"outputs", inputs_}};
  }

  std::string document() const { return document_.dump(); }
  HostTensors wholes;
  struct Output {
    std::string tensor, what;
    bool on_host;
    HostTensor expected;
  };
  std::vector<Output> outputs;

 private:
  void boundary(const std::string& slot, const std::string& name, const CaseJson& tensor, const char* side) {
    const std::string own = slot + "_" + name;
    const TensorType type = type_in(tensor);
    const std::string dtype = document_type(type.dtype);
    CaseJson ranges = CaseJson::array();
    for (const std::int64_t size : type.shape) ranges.push_back({0, size});
    CaseJson& list = side == std::string("inputs") ? inputs_ : outputs_;
    CaseJson& metadata = document_["metadata"];
    metadata["tensors"][side][own] = {{"shape", type.shape}, {"dtype", dtype}, {"idx", list.size()}};
    metadata["tensor_slices"][side][own] = {
        {"placements", ranges}, {"origin", own}, {"dtype", dtype}, {"device", slot}};
    document_["tensors"][own] = {{"shape", type.shape}, {"dtype", dtype}};
    list.push_back(own);
    if (side == std::string("inputs")) wholes[own] = tensor_of(tensor);
  }

  void add(const CaseJson& one) {
    const std::string number = std::to_string(cases_++);
    for (const std::string slot : {"npu", "cpu"}) {
      CaseJson in = CaseJson::array(), out = CaseJson::array();
      for (const CaseJson& name : one["inputs"]) in.push_back(slot + "_" + name.get<std::string>());
      for (std::size_t i = 0; i < one["outputs"].size(); ++i) {
        const std::string name = number + "_" + std::to_string(i);
        boundary(slot, name, one["outputs"][i], "outputs");
        out.push_back(slot + "_" + name);
        outputs.push_back({slot + "_" + name, slot + ": " + one["graph"].get<std::string>(), slot == "cpu",
                           tensor_of(one["outputs"][i])});
      }
      document_["supertasks"][slot + number] = {
          {"kind", "FX"}, {"device", slot}, {"inputs", in}, {"outputs", out}, {"data", one["graph"]}};
    }
  }

  CaseJson document_{{"name", "operations"}}, inputs_ = CaseJson::array(), outputs_ = CaseJson::array();
  std::size_t cases_ = 0;
};

/// Of floats. The host rounds each operation once, PyTorch computes 16 bits in f32 and rounds once: one step of the
/// type, and in f32 sums of up to 40 terms in another order. A machine's products round partial sums of 16 bits, too.
double allowed(DType dtype, double want, bool on_host) {
  switch (dtype) {
    case DType::f64:
      return 1e-13 * (1 + std::abs(want));
    case DType::f32:
      return (on_host ? 2e-6 : 2e-5) * (1 + std::abs(want));
    case DType::f16:
      return (on_host ? 1e-3 : 4e-3) * (1 + std::abs(want));
    case DType::bf16:
      return (on_host ? 8e-3 : 3.2e-2) * (1 + std::abs(want));
    default:  // two steps, of an eighth and of a quarter: a product, and its sum with something
      return 2 * (dtype == DType::f8e4m3 ? 0.125 : 0.25) * std::max(std::abs(want), 0.5);
  }
}

bool same(const HostTensor& got, const HostTensor& want, std::size_t i, bool on_host) {
  if (!is_float(want.dtype))
    return load_integer(got.bytes.data(), got.dtype, i) == load_integer(want.bytes.data(), want.dtype, i);
  const double a = load_element(got.bytes.data(), got.dtype, i), b = load_element(want.bytes.data(), want.dtype, i);
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed(want.dtype, b, on_host);
}

class PipelineOperations : public ::testing::TestWithParam<DType> {};

/// Every FX target that has this type, on two shapes, on a SIP and on a cpu slot, against PyTorch: integers to the last
/// bit. Types of 8 bits that PyTorch 1.13 does not have are rounded by write_operations.py.
TEST_P(PipelineOperations, OfASipAndOfTheHostGiveWhatPyTorchDoes) {
  const DType f8 = GetParam() == DType::f8e5m2 ? DType::f8e5m2 : DType::f8e4m3;
  const TestFolder folder;
  const std::string path = folder.file("cases.json");
  const std::string script = std::string(KERNBENCH_SOURCE_DIR) + "/tests/pipeline/write_operations.py ";
  ASSERT_EQ(std::system((std::string(KERNBENCH_PYTHON) + " " + script + to_string(GetParam()) + " " + path).c_str()), 0)
      << "needs Debian's python3-torch, which make test installs";
  std::ifstream file(path);
  const CaseJson made = CaseJson::parse(file);
  const Cases cases(made, f8);
  const RunOutcome outcome = run_document(cases.document(), cases.wholes, 1, {}, 1, f8);
  for (const Cases::Output& output : cases.outputs) {
    const HostTensor& got = outcome.outputs.at(output.tensor);
    ASSERT_EQ(got.shape, output.expected.shape) << output.what;
    ASSERT_EQ(got.dtype, output.expected.dtype) << output.what;
    int wrong = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got.count()); ++i) {
      if (same(got, output.expected, i, output.on_host) || ++wrong > 2) continue;
      ADD_FAILURE() << output.what << ", element " << i << ": " << load_element(got.bytes.data(), got.dtype, i)
                    << ", not " << load_element(output.expected.bytes.data(), got.dtype, i);
    }
  }
  std::set<std::string> targets{"operator.getitem"};
  for (const CaseJson& one : made["cases"]) targets.insert(one["target"].get<std::string>());
  for (const Operation& operation : operations())
    EXPECT_EQ(targets.count(operation.target) == 1, operation.takes(GetParam())) << operation.target;
}

INSTANTIATE_TEST_SUITE_P(Types, PipelineOperations,
                         ::testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3,
                                           DType::f8e5m2, DType::i64, DType::i32, DType::i16, DType::i8,
                                           DType::boolean),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace kernbench::pipeline
