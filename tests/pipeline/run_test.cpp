#include "runtime/pipeline/run/run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/pipeline/evaluate.h"
#include "runtime/pipeline/export.h"
#include "runtime/pipeline/run/slices.h"
#include "runtime/tp/linear.h"
#include "tests/pipeline/run_case.h"

namespace kernbench::pipeline {
namespace {

using kernbench::testing::machine_of;
using kernbench::testing::MachineRun;

/// Exchanges of two SIPs, written as what they are on the host: `x0` and `x1` are the members' tensors.
struct ExchangeCase {
  std::string kind, metadata;
  std::vector<std::int64_t> shape;  ///< of the result
  std::string graph[2];             ///< of each member
};

std::string sliced(const std::string& name, const std::string& from, int dim, int part, std::int64_t size) {
  return name + " = slice(" + from + ", " + std::to_string(dim) + ", " + std::to_string(part * size / 2) + ", " +
         std::to_string((part + 1) * size / 2) + ")\\n";
}

/// Every dimension of a tensor of three, against the same pieces put together on the host.
TEST(PipelineExchanges, PiecesStandInOrderAlongEveryDimension) {
  const std::vector<std::int64_t> shape{2, 4, 6};
  std::vector<ExchangeCase> cases;
  for (int dim = 0; dim < 3; ++dim) {
    const std::string at = std::to_string(dim);
    std::vector<std::int64_t> more = shape, less = shape;
    more[static_cast<std::size_t>(dim)] *= 2;
    less[static_cast<std::size_t>(dim)] /= 2;
    ExchangeCase gather{"all_gather", "{dim: " + at + "}", more, {}},
        scatter{"reduce_scatter", "{reduce_op: sum, dim: " + at + "}", less, {}};
    for (int r = 0; r < 2; ++r) {
      gather.graph[r] = "y = cat([x0, x1], " + at + ")";
      scatter.graph[r] = "a = add(x0, x1)\\n" + sliced("y", "a", dim, r, shape[static_cast<std::size_t>(dim)]);
    }
    cases.push_back(gather);
    cases.push_back(scatter);
    for (int to = 0; to < 3; ++to) {
      std::vector<std::int64_t> turned = less;
      turned[static_cast<std::size_t>(to)] *= 2;
      ExchangeCase all{"all_to_all", "{src_dim: " + at + ", dst_dim: " + std::to_string(to) + "}", turned, {}};
      for (int r = 0; r < 2; ++r)
        all.graph[r] = sliced("a", "x0", dim, r, shape[static_cast<std::size_t>(dim)]) +
                       sliced("b", "x1", dim, r, shape[static_cast<std::size_t>(dim)]) + "y = cat([a, b], " +
                       std::to_string(to) + ")";
      cases.push_back(all);
    }
  }
  cases.push_back(
      {"all_reduce",
       "{reduce_op: max}",
       shape,
       {"a = sub(x0, x1)\\nb = relu(a)\\ny = add(b, x1)", "a = sub(x0, x1)\\nb = relu(a)\\ny = add(b, x1)"}});
  const TensorType type{shape, DType::f32};
  const HostTensors wholes{{"x0", values_of(type, 1)}, {"x1", values_of(type, 2)}};
  std::string text = "name: p\ndevices: {d0: {kind: npu, idx: 0}, d1: {kind: npu, idx: 1}}\ntensors:\n", tasks,
              slices[2], whole[2], out;
  const auto boundary = [&](int side, const std::string& name, const TensorType& of, int slot, std::size_t idx) {
    std::string ranges;
    for (const std::int64_t size : of.shape)
      ranges += (ranges.empty() ? "[0, " : ", [0, ") + std::to_string(size) + "]";
    text += "  " + name + ": " + type_text(of) + "\n";
    whole[side] += "      " + name + ": " + type_text(of).substr(0, type_text(of).size() - 1) +
                   ", idx: " + std::to_string(idx) + "}\n";
    slices[side] += "      " + name + ": {placements: [" + ranges + "], origin: " + name + ", dtype: f32, device: d" +
                    std::to_string(slot) + "}\n";
  };
  boundary(0, "x0", type, 0, 0);
  boundary(0, "x1", type, 1, 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (int r = 0; r < 2; ++r) {
      const std::string name = "y" + std::to_string(i) + "_" + std::to_string(r), number = std::to_string(r);
      boundary(1, name, {cases[i].shape, DType::f32}, r, 2 * i + static_cast<std::size_t>(r));
      out += (out.empty() ? "" : ", ") + name;
      tasks += "  t" + name + ": {kind: " + cases[i].kind + ", device: d" + number + ", inputs: [x" + number +
               "], outputs: [" + name + "], group: g" + std::to_string(i) + ", device_idx: " + number +
               ", metadata: " + cases[i].metadata + "}\n";
    }
  }
  text += "supertasks:\n  in: {kind: input, inputs: [], outputs: [x0, x1]}\n" + tasks +
          "  out: {kind: output, inputs: [" + out + "], outputs: []}\nmetadata:\n  tensors:\n    inputs:\n" + whole[0] +
          "    outputs:\n" + whole[1] + "  tensor_slices:\n    inputs:\n" + slices[0] + "    outputs:\n" + slices[1];
  RunOutcome outcome = run_document(text, wholes, 2);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (int r = 0; r < 2; ++r) {
      const std::string reference =
          document_of({{"x0", type}, {"x1", type}}, {{"y", {cases[i].shape, DType::f32}}}, {cases[i].graph[r]}, "cpu");
      Problems problems;
      const Pipeline on_host = read_pipeline(parse_config(reference, "h.yaml"), {}, problems);
      const auto graph = build_graph(on_host, *on_host.supertask("t0"), problems);
      ASSERT_EQ(problems.str(), "");
      const HostTensor expected = evaluate(*graph, {wholes.at("x0"), wholes.at("x1")}).front();
      const HostTensor& got = outcome.outputs["y" + std::to_string(i) + "_" + std::to_string(r)];
      int wrong = 0;
      for (std::size_t e = 0; e < static_cast<std::size_t>(expected.count()); ++e) {
        const double want = load_element(expected.bytes.data(), DType::f32, e),
                     have = load_element(got.bytes.data(), DType::f32, e);
        if (std::abs(have - want) > 1e-6 && ++wrong == 1)
          ADD_FAILURE() << cases[i].kind << " " << cases[i].metadata << " on " << r << ", element " << e << ": " << have
                        << ", not " << want;
      }
    }
  }
}

}  // namespace
}  // namespace kernbench::pipeline
