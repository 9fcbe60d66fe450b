#include "runtime/pipeline/schema.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "runtime/pipeline/graph.h"

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

TEST(PipelineSchema, PageOfFieldsAndOperationsIsWhatTheTablesSay) {
  const std::string page = with_section(source_text("docs/pipeline.md"), "fields", reference_page());
  expect_in_step("docs/pipeline.md", with_section(page, "operations", operations_page()));
}

}  // namespace
}  // namespace kernbench::pipeline
