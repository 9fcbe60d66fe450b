#include "tlm/config/config_node.h"

#include <gtest/gtest.h>

namespace kernbench {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_config(text, "f.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ConfigNode, KeepsPlacesOfKeysAndValues) {
  const ConfigNode root = parse_config("a: 1\nb:\n  c: [x, y]\n", "f.yaml");
  EXPECT_EQ(root.find("a")->where.str(), "f.yaml:1:4");
  EXPECT_EQ(root.entry("b")->key_where.str(), "f.yaml:2:1");
  EXPECT_EQ(root.at_path("b.c")->items.at(1).where.str(), "f.yaml:3:10");
  EXPECT_EQ(root.at_path("b.c")->items.at(1).text, "y");
  EXPECT_EQ(root.at_path("b.d"), nullptr);
}

TEST(ConfigNode, ColumnsCountCharacters) {
  EXPECT_EQ(parse_config("\"größe\": 8\n", "f.yaml").find("größe")->where.str(), "f.yaml:1:10");
}

TEST(ConfigNode, ScalarsStayText) {
  const ConfigNode root = parse_config("a: 010\nb: \"4\"\nc: ~\nd: null\ne: 'null'\nf: 1e3\ng:\n", "f.yaml");
  EXPECT_EQ(root.find("a")->text, "010");
  EXPECT_FALSE(root.find("a")->quoted);
  EXPECT_TRUE(root.find("b")->quoted);
  EXPECT_TRUE(root.find("c")->is_null());
  EXPECT_TRUE(root.find("d")->is_null());
  EXPECT_TRUE(root.find("e")->is_scalar());
  EXPECT_EQ(root.find("f")->text, "1e3");
  EXPECT_TRUE(root.find("g")->is_null());
}

TEST(ConfigNode, ReadsJson) {
  EXPECT_EQ(parse_config(R"({"a": {"b": [1, "16 MiB"]}})", "f.json").at_path("a.b")->items.at(1).text, "16 MiB");
}

TEST(ConfigNode, AliasesAreCopied) {
  const ConfigNode root = parse_config("a: &x {b: 1}\nc: *x\n", "f.yaml");
  EXPECT_EQ(root.at_path("c.b")->text, "1");
}

TEST(ConfigNode, MergeKeyAddsWhatIsNotThere) {
  const ConfigNode root = parse_config("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", "f.yaml");
  EXPECT_EQ(root.at_path("d.b")->text, "1");
  EXPECT_EQ(root.at_path("d.c")->text, "3");
  EXPECT_EQ(root.find("d")->find("<<"), nullptr);
}

TEST(ConfigNode, ByteOrderMarkIsSkipped) {
  EXPECT_EQ(parse_config("\xEF\xBB\xBF"
                         "a: 1\n",
                         "f.yaml")
                .find("a")
                ->where.str(),
            "f.yaml:1:4");
}

TEST(ConfigNode, RefusesBytesThatAreNoText) {
  EXPECT_EQ(error_of(std::string("a: 1\nb: x\0y\n", 12)),
            "f.yaml:2:5: error: byte 0x00 is a control character\n  hint: this is probably not a text file");
  EXPECT_EQ(error_of("a: \xFF\n"), "f.yaml:1:4: error: byte 0xff is not valid UTF-8\n  hint: save the file as UTF-8");
  EXPECT_EQ(error_of("a: \xC0\x80\n"),
            "f.yaml:1:4: error: byte 0xc0 is not valid UTF-8\n  hint: save the file as UTF-8");
  EXPECT_EQ(error_of("a: \xED\xA0\x80\n"),
            "f.yaml:1:4: error: byte 0xed is not valid UTF-8\n  hint: save the file as UTF-8");
}

TEST(ConfigNode, ReportsEveryDuplicateAndTag) {
  EXPECT_EQ(error_of("a: 1\na: 2\nb: !x 3\na: 4\n"),
            "f.yaml:2:1: error: key 'a' is given twice in $\n  hint: the first one stands in line 1\n"
            "f.yaml:3:4: error: tag '!x' is not supported\n  hint: remove it\n"
            "f.yaml:4:1: error: key 'a' is given twice in $\n  hint: the first one stands in line 1");
}

TEST(ConfigNode, LimitsNestingAndAliasBombs) {
  std::string deep = "a: ";
  for (int i = 0; i < 10'000; ++i) deep += "[";
  EXPECT_NE(error_of(deep).find("error: "), std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += "*a" + std::to_string(i - 1) + (k < 9 ? ", " : "]\n");
  }
  EXPECT_NE(error_of(bomb).find("the file holds more than 300000 values once its aliases are copied"),
            std::string::npos);
}

TEST(ConfigNode, FilesThatCannotBeRead) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      load_config(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("no_such_file.yaml"), "no_such_file.yaml: error: cannot be read: No such file or directory");
  EXPECT_EQ(message("/tmp"), "/tmp: error: is a directory\n  hint: give a YAML file");
  EXPECT_EQ(message("/dev/zero"),
            "/dev/zero: error: is larger than 16 MiB\n  hint: this is probably not a configuration");
  EXPECT_EQ(message("/dev/null"),
            "/dev/null: error: the file is empty\n  hint: it must hold a map of 'key: value' lines");
}

TEST(ConfigNode, MergeIsByKeyAndReplacesTheRest) {
  const ConfigNode base = parse_config("a: {b: 1, c: [1, 2]}\nd: 4\n", "base.yaml");
  const ConfigNode over = parse_config("a: {c: [3]}\ne: 5\n", "over.yaml");
  const ConfigNode both = merge(base, over);
  EXPECT_EQ(both.at_path("a.b")->where.file, "base.yaml");
  EXPECT_EQ(both.at_path("a.c")->items.size(), 1u);
  EXPECT_EQ(both.at_path("a.c")->where.str(), "over.yaml:1:8");
  EXPECT_EQ(both.find("e")->text, "5");
}

TEST(ConfigNode, PrintsTheLocatedTree) {
  EXPECT_EQ(print_located(parse_config("a:\n  b: 4\n  c: [x, \"y\"]\nd: {}\n", "f.yaml")),
            "a.b = 4  # f.yaml:2:6\na.c[0] = x  # f.yaml:3:7\na.c[1] = 'y'  # f.yaml:3:10\nd = {}  # f.yaml:4:4\n");
}

TEST(Problems, SortsByPlaceAndKeepsOneOfAKind) {
  Problems problems;
  problems.add({"b.yaml", 9, 1}, "late");
  problems.add({"a.yaml", 2, 1}, "other file");
  problems.add({"b.yaml", 3, 7}, "early", "do this");
  problems.add({"b.yaml", 9, 1}, "late");
  problems.add({"--set x=1", 0, 0}, "set");
  EXPECT_EQ(problems.str(),
            "b.yaml:3:7: error: early\n  hint: do this\nb.yaml:9:1: error: late\na.yaml:2:1: error: other file\n"
            "--set x=1: error: set");
}

}  // namespace
}  // namespace kernbench
