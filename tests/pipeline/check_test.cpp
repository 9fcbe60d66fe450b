#include "runtime/pipeline/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "runtime/pipeline/safetensors.h"
#include "tests/pipeline/broken_cases.h"

namespace kernbench::pipeline {
namespace {

namespace fs = std::filesystem;

fs::path test_folder() { return fs::path(KERNBENCH_SOURCE_DIR) / "tests" / "pipeline"; }

/// A folder with the weights that the documents name; the test works in it.
class WeightsFolder {
 public:
  WeightsFolder() {
    fs::current_path(folder_.path());
    std::map<std::string, HostTensor> tensors;
    tensors["w"] = {{16, 8}, DType::f16, std::vector<std::uint8_t>(256)};
    tensors["eight"] = {{8, 8}, DType::f8e5m2, std::vector<std::uint8_t>(64)};
    std::ofstream(folder_.file("w.safetensors")) << to_safetensors(tensors);
    std::ofstream(folder_.file("broken.safetensors")) << "no weights";
  }
  /// As it is to be named: messages shorten long names.
  std::string path() const { return "."; }

 private:
  TestFolder folder_;
};

struct Outcome {
  std::string errors, warnings;
  Checked checked;
};

Outcome check_text(const std::string& text, const std::string& folder) {
  Problems problems, warnings;
  Outcome outcome;
  try {
    const ConfigNode root = parse_config(text, "p.yaml", &problems);
    const Pipeline pipeline = read_pipeline(root, {}, problems);
    CheckOptions options;
    options.folder = folder;
    options.sips = 2;
    options.cubes = 4;
    options.pes = 4;
    outcome.checked = check_pipeline(pipeline, options, problems, warnings);
    outcome.errors = problems.str();
    outcome.warnings = warning_text(warnings);
  } catch (const ConfigError& error) {
    outcome.errors = error.what();
  }
  for (std::size_t at; (at = outcome.errors.find(folder + "/")) != std::string::npos;)
    outcome.errors.erase(at, folder.size() + 1);
  return outcome;
}

/// Edits of good.yaml, and some of them of good.json, where the same rules find other places.
TEST(PipelineCheck, EveryBrokenDocumentEndsWithTheExactText) {
  const WeightsFolder folder;
  for (const auto& [document, list, least] : {std::tuple("good.yaml", "broken.txt", std::size_t{120}),
                                              std::tuple("good.json", "broken_json.txt", std::size_t{12})}) {
    const std::string good = read(test_folder() / document);
    const std::vector<BrokenCase> cases = read_cases(test_folder() / list);
    EXPECT_GE(cases.size(), least);
    std::string written;
    std::set<std::string> rules;
    for (const BrokenCase& one : cases) {
      EXPECT_TRUE(rules.insert(one.rule).second) << one.rule << " is there twice";
      const std::string found = check_text(edited(good, one), folder.path()).errors + "\n";
      EXPECT_NE(found, "\n") << one.rule << " is not refused";
      EXPECT_EQ(found, one.expected) << one.rule;
      EXPECT_EQ(problems_without_hint(found), "") << one.rule;
      written += "# " + one.rule + "\n";
      for (const auto& [old, with] : one.edits)
        written += "- " + without_lines(old) + "\n" + (with.empty() ? "+" : "+ " + without_lines(with)) + "\n";
      written += found + "\n";
    }
    if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(test_folder() / list) << written;
  }
}

TEST(PipelineCheck, AcceptsTheGoodDocument) {
  const WeightsFolder folder;
  for (const char* name : {"good.yaml", "good.json"}) {
    const Outcome outcome = check_text(read(test_folder() / name), folder.path());
    EXPECT_EQ(outcome.errors, "");
    EXPECT_EQ(outcome.warnings, "");
    EXPECT_EQ(outcome.checked.graphs.size(), 19U);
  }
}

/// Members of an exchange stand together, behind all that feeds them.
TEST(PipelineCheck, OrdersSupertasksSoThatNoExchangeWaitsForALaterOne) {
  const WeightsFolder folder;
  Problems problems, warnings;
  const Pipeline pipeline = read_pipeline(parse_config(read(test_folder() / "good.yaml"), "p.yaml"), {}, problems);
  const Checked checked = check_pipeline(pipeline, {folder.path(), 2, 4, 4}, problems, warnings);
  ASSERT_EQ(checked.order.size(), pipeline.supertasks.size());
  std::set<std::string> made;
  std::map<std::string, std::set<std::size_t>> places;
  for (std::size_t i = 0; i < checked.order.size(); ++i) {
    const SuperTask& task = pipeline.supertasks[checked.order[i]];
    for (const Text& name : task.inputs.value)
      EXPECT_TRUE(made.count(name.value) > 0 || pipeline.tensor(name.value)->value) << name.value;
    for (const Text& name : task.outputs.value) made.insert(name.value);
    if (task.group.given) places[task.group.value].insert(i);
  }
  for (const auto& [group, at] : places) EXPECT_EQ(*at.rbegin() - *at.begin(), at.size() - 1) << group;
}

TEST(PipelineCheck, WarnsOfUnusedPartsAndTensors) {
  const WeightsFolder folder;
  std::string text = read(test_folder() / "good.yaml");
  const auto replace = [&](const std::string& old, const std::string& with) {
    text.replace(text.find(old), old.size(), with);
  };
  replace("tokens: {shape: [8, 8]", "tokens: {shape: [10, 8]");
  replace("  c: {shape: [4, 8], dtype: f16}",
          "  c: {shape: [4, 8], dtype: f16}\n  spare: {shape: [8, 8], dtype: f16, value: {path: w.safetensors, format: "
          "safetensors, name: w, name_in_graph: weight, "
          "placements: [[0, 8], [0, 8]]}}\n  left: {shape: [4, 8], dtype: f16}");
  replace("outputs: [y], device: host, data: \"y = relu(c)\"",
          "outputs: [y, left], device: host, data: \"y = relu(c)\\nleft = neg(c)\"");
  const Outcome outcome = check_text(text, folder.path());
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(
      outcome.warnings,
      "p.yaml:25:3: warning: $.tensors.spare is used by no supertask\n"
      "  hint: remove it\n"
      "p.yaml:26:3: warning: $.tensors.left is made, but no supertask reads it\n"
      "  hint: its time is spent for nothing\n"
      "p.yaml:51:7: warning: $.metadata.tensors.inputs.tokens: no slice of tensor_slices.inputs holds element [8, 0]\n"
      "  hint: that part is unused");
}

/// Warnings on whole inputs of these names and places, each of which one input of the pipeline is.
std::string warnings_on_wholes(const std::vector<std::pair<std::string, int>>& wholes) {
  std::string tensors, names, inputs, slices;
  for (const auto& [name, idx] : wholes) {
    tensors += "  " + name + ": {shape: [2], dtype: f16}\n";
    names += (names.empty() ? "" : ", ") + name;
    inputs += "      " + name + ": {shape: [2], dtype: f16, idx: " + std::to_string(idx) + "}\n";
    slices += "      " + name + ": {placements: [[0, 2]], origin: " + name + ", dtype: f16, device: n}\n";
  }
  const std::string outputs = "    outputs:\n";
  const Outcome outcome = check_text("metadata:\n  tensors:\n    inputs:\n" + inputs + outputs + inputs +
                                         "  tensor_slices:\n    inputs:\n" + slices + outputs + slices +
                                         "name: p\ndevices: {n: {kind: npu, idx: 0}}\ntensors:\n" + tensors +
                                         "supertasks:\n  in: {kind: input, inputs: [], outputs: [" + names +
                                         "]}\n  out: {kind: output, inputs: [" + names + "], outputs: []}\n",
                                     ".");
  EXPECT_EQ(outcome.errors, "");
  // Those of outputs are the same.
  const std::size_t at = outcome.warnings.find("$.metadata.tensors.outputs");
  return outcome.warnings.substr(0, at == std::string::npos ? at : outcome.warnings.rfind('\n', at));
}

/// A part is called after its place in the nested argument, and parts follow each other in that order. An argument may
/// have such a name of its own, and inputs that the pipeline does not have leave gaps in `idx`.
TEST(PipelineCheck, WarnsOfNestedArgumentsWhosePartsDoNotFollowEachOther) {
  EXPECT_EQ(warnings_on_wholes({{"kv_0_0", 3}, {"kv_0_1", 4}, {"kv_1_0", 5}, {"kv_1_1", 6}, {"x", 0}}), "");
  EXPECT_EQ(warnings_on_wholes({{"x", 0}, {"x_1", 1}, {"x_2", 2}, {"layer_3_7", 9}, {"x_02", 4}}), "");
  EXPECT_EQ(warnings_on_wholes({{"kv_0_0", 0}, {"kv_0_1", 1}, {"kv_1_0", 2}, {"kv_3_0", 5}}),
            "p.yaml:7:7: warning: $.metadata.tensors.inputs.kv_3_0: there is no kv_2 before it\n"
            "  hint: parts are named by their place in the nested argument, from 0");
  EXPECT_EQ(warnings_on_wholes({{"kv_0_0", 0}, {"kv_1_0", 1}, {"kv_0_1", 2}}),
            "p.yaml:5:45: warning: $.metadata.tensors.inputs.kv_1_0.idx is 1, before that of 'kv_0_1', 2\n"
            "  hint: parts of a nested argument follow each other in the order of their names");
  EXPECT_EQ(warnings_on_wholes({{"kv_0_10", 10}, {"kv_0_0", 0}, {"kv_0_1", 1}}),
            "p.yaml:4:7: warning: $.metadata.tensors.inputs.kv_0_10: there is no kv_0_2 before it\n"
            "  hint: parts are named by their place in the nested argument, from 0");
}

/// Twenty slices within each other cut each of six dimensions in 40 places.
TEST(PipelineCheck, SaysWhereItCannotTellWhetherSlicesCoverTheirOrigin) {
  std::string tensors, names, slices;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "x" + std::to_string(i), size = std::to_string(40 - 2 * i);
    const std::string range = "[" + std::to_string(i) + ", " + std::to_string(40 - i) + "]";
    const auto six = [](const std::string& one) {
      std::string text = one;
      for (int k = 1; k < 6; ++k) text += ", " + one;
      return "[" + text + "]";
    };
    tensors += "  " + name + ": {shape: " + six(size) + ", dtype: f16}\n";
    names += (names.empty() ? "" : ", ") + name;
    slices += "      " + name + ": {placements: " + six(range) + ", origin: whole, dtype: f16, device: n}\n";
  }
  const std::string whole = "{whole: {shape: [40, 40, 40, 40, 40, 40], dtype: f16, idx: 0}}";
  const Outcome outcome = check_text("name: p\nmetadata:\n  tensors:\n    inputs: " + whole +
                                         "\n    outputs: " + whole + "\n  tensor_slices:\n    inputs:\n" + slices +
                                         "    outputs:\n" + slices + "devices: {n: {kind: npu, idx: 0}}\ntensors:\n" +
                                         tensors + "supertasks:\n  in: {kind: input, inputs: [], outputs: [" + names +
                                         "]}\n  out: {kind: output, inputs: [" + names + "], outputs: []}\n",
                                     ".");
  const std::string said =
      "whole: its slices are cut in too many ways to tell whether they hold all of it\n"
      "  hint: cut it in parts of a grid";
  EXPECT_EQ(outcome.errors, "p.yaml:5:15: error: $.metadata.tensors.outputs." + said);
  EXPECT_EQ(outcome.warnings, "p.yaml:4:14: warning: $.metadata.tensors.inputs." + said);
}

/// What a source file of the checker raises: each text of two or more words in its calls of add(), wrong() and errors.
std::vector<std::string> messages_of(const std::string& source) {
  static const std::regex kRaises(R"(\b(add|wrong)\(|\b(EmitError|DfgError)( \w+)?\{)");
  static const std::regex kWords(R"([A-Za-z]+ +[A-Za-z{]|\} [A-Za-z])");
  std::vector<std::string> found;
  for (std::sregex_iterator at(source.begin(), source.end(), kRaises); at != std::sregex_iterator(); ++at) {
    std::string text;  // of literals that follow each other
    const auto end_text = [&] {
      if (std::regex_search(text, kWords)) found.push_back(text);
      text.clear();
    };
    int depth = 1;
    for (auto i = static_cast<std::size_t>(at->position() + at->length()); depth > 0 && i < source.size(); ++i) {
      const char c = source[i];
      if (c == '"') {
        for (++i; source[i] != '"'; ++i) text += source[i] == '\\' ? source[++i] : source[i];
        continue;
      }
      if (std::isspace(static_cast<unsigned char>(c)) == 0) end_text();
      depth += c == '(' || c == '{' || c == '[' ? 1 : c == ')' || c == '}' || c == ']' ? -1 : 0;
    }
  }
  return found;
}

/// Whether `text` has what fmt makes of a template: its parts between replacements, in this order, in one line.
bool has_message(const std::string& text, const std::string& made) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const bool twice = i + 1 < made.size() && made[i + 1] == made[i];
    if (made[i] == '{' && !twice) {
      i = made.find('}', i);
      parts.emplace_back();
    } else {
      if ((made[i] == '{' || made[i] == '}') && twice) ++i;
      parts.back() += made[i];
    }
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t at = 0;
    for (const std::string& part : parts) {
      if (at != std::string::npos) at = line.find(part, at);
      if (at != std::string::npos) at += part.size();
    }
    if (at != std::string::npos) return true;
  }
  return false;
}

TEST(PipelineCheck, EveryMessageOfTheSourcesStandsInACase) {
  std::string cases;
  for (const char* name : {"broken.txt", "broken_json.txt", "broken_graphs.txt", "check_test.cpp", "graph_test.cpp"})
    cases += read(test_folder() / name);
  std::size_t count = 0;
  for (const char* name : {"build_graph.cpp", "calls.cpp", "calls.h", "check.cpp", "check_groups.cpp",
                           "check_order.cpp", "check_slices.cpp", "check_weights.cpp", "emit.cpp", "operations.cpp",
                           "parse_dfg.cpp", "parse_fx.cpp", "table.cpp"}) {
    for (const std::string& message : messages_of(read(test_folder() / "../../runtime/pipeline" / name))) {
      ++count;
      EXPECT_TRUE(has_message(cases, message)) << name << ": no case ends with: " << message;
    }
  }
  EXPECT_GE(count, 250U);
}

}  // namespace
}  // namespace kernbench::pipeline
