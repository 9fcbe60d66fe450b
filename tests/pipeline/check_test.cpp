#include "runtime/pipeline/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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
  replace("  c: {shape: [4, 8], dtype: f16}", "  c: {shape: [4, 8], dtype: f16}\n  spare: {shape: [], dtype: i64}");
  const Outcome outcome = check_text(text, folder.path());
  EXPECT_EQ(outcome.errors, "");
  EXPECT_EQ(
      outcome.warnings,
      "p.yaml:25:3: warning: $.tensors.spare is used by no supertask\n"
      "p.yaml:50:7: warning: $.metadata.tensors.inputs.tokens: no slice of tensor_slices.inputs holds element [8, 0]\n"
      "  hint: that part is unused");
}

}  // namespace
}  // namespace kernbench::pipeline
