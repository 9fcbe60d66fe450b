#include "runtime/pipeline/graph.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/pipeline/check.h"
#include "runtime/pipeline/graph_text.h"
#include "runtime/pipeline/table.h"
#include "tests/pipeline/broken_cases.h"

namespace kernbench::pipeline {
namespace {

using Types = std::map<std::string, std::string>;

/// What is wrong with a graph of a kind, whose inputs and outputs are of these types.
std::string problems_of(const std::string& kind, const Types& inputs, const Types& outputs, const std::string& data,
                        DType f8 = DType::f8e4m3) {
  std::string text = "name: p\ndevices: {n: {kind: npu, idx: 0}}\ntensors:\n", in, out;
  for (const auto* side : {&inputs, &outputs}) {
    for (const auto& [name, type] : *side) {
      text += "  " + name + ": {" + type + "}\n";
      std::string& list = side == &inputs ? in : out;
      list += (list.empty() ? "" : ", ") + name;
    }
  }
  text += "supertasks:\n  t: {kind: " + kind + ", device: n, inputs: [" + in + "], outputs: [" + out +
          "], data: " + nlohmann::json(data).dump() + "}\n";
  text += "metadata: {tensors: {inputs: {}, outputs: {}}, tensor_slices: {inputs: {}, outputs: {}}}\n";
  Problems problems;
  const Pipeline pipeline = read_pipeline(parse_config(text, "p"), {f8}, problems);
  problems.throw_if_any();
  build_graph(pipeline, pipeline.supertasks.front(), problems);
  return problems.str();
}

std::string problems_of_dfg(const Types& inputs, const Types& outputs, const std::string& data,
                            DType f8 = DType::f8e4m3) {
  return problems_of("dfg", inputs, outputs, data, f8);
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

/// The column `types` of the page's table, by a call of each operation.
TEST(PipelineGraph, OperationsTakeTheTypesThatTheirTableSays) {
  const std::map<std::string, std::string> others = {{"mm", "a, a"},
                                                     {"bmm", "b, b"},
                                                     {"addmm", "a, a, a"},
                                                     {"linear", "a, a, v"},
                                                     {"matmul", "a, a"},
                                                     {"add", "a, a"},
                                                     {"sub", "a, a"},
                                                     {"mul", "a, a"},
                                                     {"div", "a, a"},
                                                     {"pow", "a, a"},
                                                     {"softmax", "a, 0"},
                                                     {"layer_norm", "a, [4]"},
                                                     {"rms_norm", "a, [4]"},
                                                     {"embedding", "a, i"},
                                                     {"view", "a, [16]"},
                                                     {"reshape", "a, [16]"},
                                                     {"unsqueeze", "a, 0"},
                                                     {"squeeze", "a, 0"},
                                                     {"transpose", "a, 0, 1"},
                                                     {"permute", "a, [1, 0]"},
                                                     {"expand", "a, [2, 4, 4]"},
                                                     {"cat", "[a, a]"},
                                                     {"split", "a, 2"},
                                                     {"slice", "a, 0, 1"},
                                                     {"select", "a, 0, 1"},
                                                     {"mean", "a, [0]"},
                                                     {"sum", "a, [0]"},
                                                     {"amax", "a, [0]"},
                                                     {"where", "k, a, a"},
                                                     {"cast", "a, f32"},
                                                     {"scaled_dot_product_attention", "a, a, a"}};
  std::set<std::string> seen{"getitem"};  // of lists
  for (const Operation& operation : operations()) {
    if (!seen.insert(operation.word).second) continue;
    const auto found = others.find(operation.word);
    const std::string call = operation.word + "(" + (found == others.end() ? "a" : found->second) + ")";
    for (const std::string& dtype : dtype_names()) {
      const std::string said =
          problems_of_dfg({{"a", "shape: [4, 4], dtype: " + dtype},
                           {"b", "shape: [2, 4, 4], dtype: " + dtype},
                           {"v", "shape: [4], dtype: " + dtype},
                           {"i", "shape: [3], dtype: i64"},
                           {"k", "shape: [4, 4], dtype: bool"}},
                          {{"f", "shape: [4, 4], dtype: bool"}},
                          (operation.word == "split" ? "p, q = " : "p = ") + call + "\nf = clone(k)");
      EXPECT_EQ(said.empty(), operation.takes(*parse_dtype(dtype == "f8" ? "f8e4m3" : dtype)))
          << call << " of " << dtype << ": " << said;
    }
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
            "p:7:62: error: $.supertasks.t.data, 1:1: 2 names take apart a list of 3 parts\n"
            "  hint: give a name for each part");
}

/// broken_graphs.txt: a line `# KIND: rule`, the graph, and the text of its problems in lines `> `, without their place
/// in the document, which is always the same; an empty line ends it.
TEST(PipelineGraph, EveryBrokenGraphEndsWithTheExactText) {
  const std::string path = std::string(KERNBENCH_SOURCE_DIR) + "/tests/pipeline/broken_graphs.txt";
  const Types of_dfg = {{"x", "shape: [2, 3, 4], dtype: f16"}, {"w", "shape: [5, 4], dtype: f16"},
                        {"m", "shape: [4, 6], dtype: f16"},    {"v", "shape: [5], dtype: f16"},
                        {"h", "shape: [2, 3], dtype: f16"},    {"s", "shape: [], dtype: f16"},
                        {"i", "shape: [2, 7], dtype: i64"},    {"k", "shape: [2, 3, 1], dtype: bool"}},
              of_fx = {{"x", "shape: [2, 3, 4], dtype: f16"}}, outputs = {{"y", "shape: [2, 3, 4], dtype: f16"}};
  std::istringstream file(read(path));
  std::string written, rule, graph, expected;
  std::size_t cases = 0;
  const auto end_case = [&] {
    if (rule.empty()) return;
    ++cases;
    const bool fx = rule.rfind("FX: ", 0) == 0;
    graph.pop_back();  // the line feed
    std::istringstream found(problems_of(fx ? "FX" : "dfg", fx ? of_fx : of_dfg, outputs, graph));
    std::string shown;
    for (std::string line; std::getline(found, line);) {
      const std::string place = "error: $.supertasks.t.data, ";
      if (const std::size_t at = line.find(place); at != std::string::npos) line.erase(0, at + place.size());
      shown += "> " + line + "\n";
    }
    EXPECT_NE(shown, "") << rule << " is not refused";
    EXPECT_EQ(shown, expected) << rule;
    EXPECT_EQ(problems_without_hint(shown), "") << rule;
    written += "# " + rule + "\n" + graph + "\n" + shown + "\n";
    rule = graph = expected = "";
  };
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) {
      end_case();
    } else if (line.rfind("# ", 0) == 0) {
      rule = line.substr(2);
    } else {
      (line.rfind("> ", 0) == 0 ? expected : graph) += line + "\n";
    }
  }
  end_case();
  EXPECT_GE(cases, 100U);
  if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(path) << written;
}

}  // namespace
}  // namespace kernbench::pipeline
