#include "runtime/pipeline/graph.h"

#include <gtest/gtest.h>

#include "runtime/pipeline/check.h"

namespace kernbench::pipeline {
namespace {

/// Types of what a dfg makes of the inputs; every result is an output of the type that it is said to have.
std::string problems_of_dfg(const std::map<std::string, std::string>& inputs,
                            const std::map<std::string, std::string>& outputs, const std::string& data,
                            DType f8 = DType::f8e4m3) {
  std::string text = "name: p\ndevices: {n: {kind: npu, idx: 0}}\ntensors:\n", in, out;
  for (const auto* side : {&inputs, &outputs}) {
    for (const auto& [name, type] : *side) {
      text += "  " + name + ": {" + type + "}\n";
      std::string& list = side == &inputs ? in : out;
      list += (list.empty() ? "" : ", ") + name;
    }
  }
  text += "supertasks:\n  t: {kind: dfg, device: n, inputs: [" + in + "], outputs: [" + out + "], data: \"" + data +
          "\"}\n";
  text += "metadata: {tensors: {inputs: {}, outputs: {}}, tensor_slices: {inputs: {}, outputs: {}}}\n";
  Problems problems;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p"), {f8}, problems);
  problems.throw_if_any();
  build_graph(pipeline, pipeline.supertasks.front(), problems);
  return problems.str();
}

/// Shapes as PyTorch defines them, by hand.
TEST(PipelineGraph, InfersShapesAndTypes) {
  const std::map<std::string, std::string> in = {
      {"x", "shape: [2, 3, 4], dtype: f16"}, {"w", "shape: [5, 4], dtype: f16"},
      {"m", "shape: [4, 6], dtype: f16"},    {"v", "shape: [5], dtype: f16"},
      {"i", "shape: [2, 7], dtype: i64"},    {"k", "shape: [2, 3, 1], dtype: bool"}};
  const std::tuple<const char*, const char*> cases[] = {
      {"linear(x, w, v)", "shape: [2, 3, 5], dtype: f16"},
      {"matmul(x, m)", "shape: [2, 3, 6], dtype: f16"},
      {"matmul(w, x)", ""},
      {"embedding(w, i)", "shape: [2, 7, 4], dtype: f16"},
      {"mean(x, [1, -1], keepdim=true)", "shape: [2, 1, 1], dtype: f16"},
      {"sum(x, [0], dtype=f32)", "shape: [3, 4], dtype: f32"},
      {"amax(x, 2)", "shape: [2, 3], dtype: f16"},
      {"permute(x, [2, 0, 1])", "shape: [4, 2, 3], dtype: f16"},
      {"transpose(x, 0, -1)", "shape: [4, 3, 2], dtype: f16"},
      {"reshape(x, [-1, 8])", "shape: [3, 8], dtype: f16"},
      {"slice(x, 1, 0, 3, 2)", "shape: [2, 2, 4], dtype: f16"},
      {"select(x, 1, -1)", "shape: [2, 4], dtype: f16"},
      {"expand(k, [2, 3, 9])", "shape: [2, 3, 9], dtype: bool"},
      {"unsqueeze(x, 0)", "shape: [1, 2, 3, 4], dtype: f16"},
      {"where(k, x, 0)", "shape: [2, 3, 4], dtype: f16"},
      {"cat([x, x], 1)", "shape: [2, 6, 4], dtype: f16"},
      {"scaled_dot_product_attention(x, x, x, is_causal=true)", "shape: [2, 3, 4], dtype: f16"},
      {"layer_norm(x, [4])", "shape: [2, 3, 4], dtype: f16"},
      {"cast(x, torch.int32)", "shape: [2, 3, 4], dtype: i32"},
  };
  for (const auto& [call, type] : cases) {
    const std::string found =
        problems_of_dfg(in, {{"y", *type == '\0' ? "shape: [], dtype: f16" : type}}, std::string("y = ") + call);
    EXPECT_EQ(found.empty(), *type != '\0') << call << "\n" << found;
  }
}

/// In a graph f8 is what it is in the document; the names of PyTorch say which of the two they mean.
TEST(PipelineGraph, F8IsTheDocuments) {
  const std::map<std::string, std::string> in = {{"x", "shape: [2], dtype: f16"}},
                                           out = {{"y", "shape: [2], dtype: f8"}};
  for (const DType f8 : {DType::f8e4m3, DType::f8e5m2}) {
    EXPECT_EQ(problems_of_dfg(in, out, "y = cast(x, f8)", f8), "");
    EXPECT_EQ(problems_of_dfg(in, out, "y = cast(x, float8_e5m2)", f8).empty(), f8 == DType::f8e5m2);
  }
}

TEST(PipelineGraph, TakesListsApart) {
  const std::map<std::string, std::string> in = {{"x", "shape: [2, 10], dtype: f16"}};
  EXPECT_EQ(problems_of_dfg(in, {{"c", "shape: [2, 2], dtype: f16"}}, "a, b, c = split(x, 4, dim=1)"), "");
  EXPECT_EQ(problems_of_dfg(in, {{"b", "shape: [2, 7], dtype: f16"}}, "a, b = split(x, [3, 7], 1)"), "");
  EXPECT_EQ(problems_of_dfg(in, {{"a", "shape: [2, 4], dtype: f16"}}, "a, b = split(x, 4, 1)"),
            "p:7:62: error: $.supertasks.t.data, 1:1: 2 names take apart a list of 3 parts");
}

}  // namespace
}  // namespace kernbench::pipeline
