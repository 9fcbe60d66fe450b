#include "tests/pipeline/published.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "runtime/pipeline/document.h"
#include "runtime/pipeline/export.h"
#include "tests/cli/schema_check.h"
#include "tests/pipeline/broken_cases.h"

namespace kernbench::pipeline {
namespace {

std::string source_path(const std::string& name) { return std::string(KERNBENCH_SOURCE_DIR) + "/" + name; }

std::string source_text(const std::string& name) {
  std::ifstream stream(source_path(name));
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// KERNBENCH_REGENERATE=1 in the environment writes the files that these tests compare.
void expect_in_step(const std::string& name, const std::string& expected) {
  if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(source_path(name)) << expected;
  EXPECT_TRUE(source_text(name) == expected) << name << " is not in step: run this test with KERNBENCH_REGENERATE=1";
}

/// `page` with what stands between two comments replaced.
std::string with_section(const std::string& page, const std::string& name, const std::string& text) {
  const std::string begin = "<!-- " + name + ": begin -->\n", end = "<!-- " + name + ": end -->\n";
  const std::size_t from = page.find(begin), to = page.find(end);
  EXPECT_TRUE(from != std::string::npos && to != std::string::npos) << name;
  if (from == std::string::npos || to == std::string::npos) return page;
  return page.substr(0, from + begin.size()) + text + page.substr(to);
}

TEST(PipelineSchema, PublishedJsonSchemaIsWhatTheTableSays) {
  expect_in_step("runtime/pipeline/pipeline.schema.json", json_schema());
}

/// A document as the JSON that it stands for: words without quotes have a type of their own.
nlohmann::ordered_json json_of(const ConfigNode& node) {
  static const std::regex kNumber("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?");
  nlohmann::ordered_json made;
  switch (node.kind) {
    case ConfigNode::Kind::null:
      return made;
    case ConfigNode::Kind::scalar:
      if (!node.quoted && (std::regex_match(node.text, kNumber) || node.text == "true" || node.text == "false"))
        return kernbench::json_of(node.text);
      return node.text;
    case ConfigNode::Kind::list:
      made = nlohmann::ordered_json::array();
      for (const ConfigNode& item : node.items) made.push_back(json_of(item));
      return made;
    case ConfigNode::Kind::map:
      made = nlohmann::ordered_json::object();
      for (const ConfigNode::Entry& entry : node.entries) made[entry.key] = json_of(entry.value);
      return made;
  }
  return made;
}

std::string schema_says(const std::string& document) {
  return errors_by_schema(json_of(parse_config(document, "p.yaml")), "runtime/pipeline/pipeline.schema.json");
}

/// All that CI runs or checks: the examples, what the checker's tests begin with, and what export writes.
TEST(PipelineSchema, AcceptsEveryAcceptedDocument) {
  namespace fs = std::filesystem;
  std::size_t documents = 0;
  for (const char* folder : {"docs/examples/pipeline", "tests/pipeline"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source_path(folder))) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".yaml" && extension != ".json") continue;
      ++documents;
      EXPECT_EQ(schema_says(read(entry.path().string())), "") << entry.path();
    }
  }
  EXPECT_GE(documents, 17U);
  MlpExport mlp;
  mlp.batch = 2;
  mlp.in = mlp.hidden = mlp.out = 8;
  mlp.tp = mlp.pp = 2;
  mlp.weights_file = "mlp.safetensors";
  mlp.up = mlp.down = mlp.up_bias = mlp.down_bias = [](std::int64_t, std::int64_t) { return 0.0; };
  EXPECT_EQ(schema_says(export_mlp(mlp).document), "");
}

/// What a single map shows is the schema's business, and what two of them say of each other the checker's alone:
/// broken.txt and broken_json.txt say of each broken document which it is.
TEST(PipelineSchema, RefusesEveryBrokenDocumentWhoseFaultASchemaCanExpress) {
  std::size_t refused = 0;
  for (const auto& [document, list] :
       {std::pair("good.yaml", "broken.txt"), std::pair("good.json", "broken_json.txt")}) {
    const std::string folder = source_path("tests/pipeline/"), good = read(folder + document);
    for (const BrokenCase& one : read_cases(folder + list)) {
      std::string said;
      try {
        said = schema_says(edited(good, one));
      } catch (const ConfigError&) {
        continue;  // no tree that a schema could look at
      }
      EXPECT_EQ(!said.empty(), one.by_schema()) << list << ": " << one.rule << "\n" << said;
      refused += said.empty() ? 0 : 1;
    }
  }
  EXPECT_GE(refused, 50U);
}

TEST(PipelineSchema, PageOfFieldsAndOperationsIsWhatTheTablesSay) {
  const std::string page = with_section(source_text("docs/pipeline.md"), "fields", reference_page());
  expect_in_step("docs/pipeline.md", with_section(page, "operations", operations_page()));
}

}  // namespace
}  // namespace kernbench::pipeline
