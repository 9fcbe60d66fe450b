#include "topology/spec/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "topology/spec/parse.h"
#include "topology/spec/resolve.h"
#include "topology/spec/schema_sections.h"

namespace kernbench::topology {
namespace {

std::string path_of(const std::string& name) { return std::string(KERNBENCH_SOURCE_DIR) + "/" + name; }

std::string read(const std::string& name) {
  std::ifstream stream(path_of(name));
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// KERNBENCH_REGENERATE=1 in the environment writes the files that these tests compare.
void compare_or_write(const std::string& name, const std::string& expected) {
  if (std::getenv("KERNBENCH_REGENERATE") != nullptr) std::ofstream(path_of(name)) << expected;
  EXPECT_TRUE(read(name) == expected) << name
                                      << " is not in step: run this test with KERNBENCH_REGENERATE=1 and look at the "
                                      << "difference";
}

TEST(Schema, PublishedJsonSchemaIsInStep) {
  compare_or_write("topology/topology.schema.json", json_schema().dump(2) + "\n");
}

/// Markdown tables of the keys of a section and of those in it.
void table_of(const Section& section, const nlohmann::ordered_json& defaults, const std::string& path,
              std::string& out) {
  std::string rows;
  for (const Field& field : section.fields) {
    if (field.kind == FieldKind::section || field.kind == FieldKind::overrides) continue;
    std::string allowed;
    switch (field.kind) {
      case FieldKind::integer:
        allowed = describe(field.range);
        break;
      case FieldKind::quantity:
        allowed = fmt::format("{}{} to {}", field.range.power_of_two ? "power of two, " : "",
                              format_quantity(field.range.low, field.dimension),
                              format_quantity(field.range.high, field.dimension));
        break;
      case FieldKind::boolean:
        allowed = "true, false";
        break;
      case FieldKind::enumeration:
        allowed = fmt::format("{}", fmt::join(field.names, ", "));
        break;
      case FieldKind::ratio:
        allowed = "ratio, at most 1";
        break;
      case FieldKind::grid_point:
        allowed = "position such as r2c1";
        break;
      case FieldKind::grid_points:
        allowed = "list of positions";
        break;
      default:
        allowed = "text";
        break;
    }
    const nlohmann::ordered_json value =
        defaults.is_object() ? defaults.value(field.key, nlohmann::ordered_json()) : nlohmann::ordered_json();
    const std::string shown = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
    rows += fmt::format("| `{}`{}{} | {} | {} | {} |\n", field.key, field.required ? " (required)" : "",
                        field.uniform ? " (uniform)" : "", allowed, shown, field.doc);
  }
  if (!rows.empty()) {
    out += fmt::format("\n#### {}\n\n| key | allowed | in `default` | meaning |\n|---|---|---|---|\n{}",
                       path.empty() ? "top level" : "`" + path + "`", rows);
  }
  for (const Field& field : section.fields) {
    if (field.kind != FieldKind::section) continue;
    const nlohmann::ordered_json value =
        defaults.is_object() ? defaults.value(field.key, nlohmann::ordered_json()) : nlohmann::ordered_json();
    table_of(*field.section, value, dotted(path, field.key), out);
  }
}

TEST(Schema, PageOfKeysIsInStep) {
  const std::string begin = "<!-- keys: begin -->\n", end = "<!-- keys: end -->\n";
  const std::string page = read("docs/topology.md");
  const std::size_t from = page.find(begin), to = page.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  std::string keys;
  table_of(root_section(), resolve("default").config, "", keys);
  compare_or_write("docs/topology.md", page.substr(0, from + begin.size()) + keys + page.substr(to));
}

void expect_all_keys(const Section& section, const nlohmann::ordered_json& config, const std::string& path) {
  for (const Field& field : section.fields) {
    const std::string what = dotted(path, field.key);
    EXPECT_FALSE(field.doc.empty()) << what;
    EXPECT_EQ(field.doc.back(), '.') << what;
    if (field.optional || (field.key == "placement")) continue;
    ASSERT_TRUE(config.contains(field.key)) << what;
    if (field.kind == FieldKind::section) expect_all_keys(*field.section, config[field.key], what);
  }
}

TEST(Schema, DefaultGivesEveryKeyAndEveryKeyIsExplained) {
  expect_all_keys(root_section(), resolve("default").config, "");
}

TEST(Schema, RequiredKeysShapeTheMachine) {
  EXPECT_EQ(required_paths(root_section()),
            (std::vector<std::string>{"system.sips.count", "system.sips.topology", "sip.cube_mesh.w", "sip.cube_mesh.h",
                                      "cube.pes", "cube.noc.rows", "cube.noc.cols"}));
}

/// Every key can be set, and the value arrives in the configuration: the table binds the member that it says.
void expect_settable(const Section& section, const std::string& path) {
  for (const Field& field : section.fields) {
    const std::string what = dotted(path, field.key);
    if (field.kind == FieldKind::section) {
      expect_settable(*field.section, what);
      continue;
    }
    if (!field.set) continue;
    SystemSpec spec;
    const auto write_and_read = [&](const FieldValue& value) {
      // The struct of the section inside `spec`: walk down the path.
      void* target = &spec;
      const Section* at = &root_section();
      for (std::size_t begin = 0, dot; (dot = what.find('.', begin)) != std::string::npos; begin = dot + 1) {
        const Field* step = at->find(what.substr(begin, dot - begin));
        target = step->enter(target);
        at = step->section.get();
      }
      field.set(target, value);
      return to_json(field, field.get(target));
    };
    switch (field.kind) {
      case FieldKind::integer:
      case FieldKind::quantity:
        for (const std::uint64_t value : {std::max<std::uint64_t>(field.range.low, 1), field.range.high}) {
          EXPECT_EQ(write_and_read(value), to_json(field, value)) << what;
        }
        break;
      case FieldKind::enumeration:
        for (std::uint64_t i = 0; i < field.names.size(); ++i) EXPECT_EQ(write_and_read(i), field.names[i]) << what;
        break;
      case FieldKind::boolean:
        EXPECT_EQ(write_and_read(std::uint64_t{1}), true) << what;
        EXPECT_EQ(write_and_read(std::uint64_t{0}), false) << what;
        break;
      case FieldKind::ratio:
        EXPECT_EQ(write_and_read(Ratio{59, 64}), "59/64") << what;
        break;
      case FieldKind::text:
        EXPECT_EQ(write_and_read(std::string("x")), "x") << what;
        break;
      case FieldKind::grid_point:
      case FieldKind::grid_points: {
        const nlohmann::ordered_json json = write_and_read(std::vector<GridPoint>{{2, 1}});
        EXPECT_EQ(json.is_array() ? json[0] : json, "r2c1") << what;
        break;
      }
      case FieldKind::section:
      case FieldKind::overrides:
        FAIL() << what;
    }
  }
}

TEST(Schema, EveryKeyFitsItsMember) { expect_settable(root_section(), ""); }

TEST(Schema, NoTwoKeysShareAMember) {
  // Write a different number to every integer; all must read back.
  SystemSpec spec;
  std::vector<std::pair<std::string, std::function<std::uint64_t()>>> readers;
  std::uint64_t next = 2;
  const std::function<void(const Section&, void*, const std::string&)> walk = [&](const Section& section, void* target,
                                                                                  const std::string& path) {
    for (const Field& field : section.fields) {
      if (field.kind == FieldKind::section) {
        walk(*field.section, field.enter(target), dotted(path, field.key));
      } else if (field.kind == FieldKind::integer || field.kind == FieldKind::quantity) {
        field.set(target, next);
        readers.emplace_back(dotted(path, field.key),
                             [&field, target] { return std::get<std::uint64_t>(field.get(target)); });
        ++next;
      }
    }
  };
  walk(root_section(), &spec, "");
  std::uint64_t expected = 2;
  for (const auto& [path, read] : readers) EXPECT_EQ(read(), expected++) << path;
}

/// So that a key that few machines have changes no other one's configuration and hash.
TEST(Schema, WhatMayHaveNoValueAndHasNoneIsNotAskedForAndNotShown) {
  struct Part {
    std::uint64_t rate = 0, ports = 0;
    LinkConfig link;
  };
  const Section link = SectionOf<LinkConfig>().quantity("latency", &LinkConfig::latency, Dimension::time, {1, 1000},
                                                        "Bit in to bit out.", kOptional);
  const Section part = SectionOf<Part>()
                           .quantity("rate", &Part::rate, Dimension::bandwidth, {1, 1000}, "Rate.", kOptional)
                           .integer("ports", &Part::ports, {1, 8}, "Ports.", kOptional)
                           .section("link", &Part::link, link, "Link.", kOptional);
  const auto read = [&](const std::string& text) {
    Part read;
    read.link.latency = 0;
    Problems problems;
    std::set<std::string> failed;
    read_section(part, parse_config(text, "part.yaml"), &read, "part", problems, failed);
    problems.throw_if_any();
    return to_json(part, &read).dump();
  };
  EXPECT_EQ(read("{}"), "{}");
  EXPECT_EQ(read("{rate: null, link: {}}"), "{}");
  EXPECT_EQ(read("{rate: 7 B/s, ports: 2, link: {latency: 5 ps}}"),
            R"({"rate":"7 B/s","ports":2,"link":{"latency":"5 ps"}})");
}

}  // namespace
}  // namespace kernbench::topology
