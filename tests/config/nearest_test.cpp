#include "tlm/config/nearest.h"

#include <gtest/gtest.h>

#include "tlm/config/json_text.h"
#include "tlm/config/problems.h"

namespace kernbench {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("rows", "rows"), 0u);
  EXPECT_EQ(edit_distance("rwos", "rows"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("row", "rows"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("Cube-Mesh", "cube_mesh"), 0u);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"ring_1d", "torus_2d", "mesh_2d_no_wrap", "switch"};
  EXPECT_EQ(nearest("torus2d", names), "torus_2d");
  EXPECT_EQ(nearest("Switch", names), "switch");
  EXPECT_EQ(nearest("mesh", names), "mesh_2d_no_wrap");
  EXPECT_EQ(nearest("hypercube", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(100'000, 's'), names), "");
}

TEST(Nearest, SuggestsOrLists) {
  EXPECT_EQ(suggest("rwos", {"rows", "cols"}), "did you mean 'rows'?");
  EXPECT_EQ(suggest("depth", {"rows", "cols"}), "valid keys: rows, cols");
}

TEST(Nearest, SplitsIntoPartsThatMayBeEmpty) {
  EXPECT_EQ(split("a,b", ','), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(split(",a,", ','), (std::vector<std::string>{"", "a", ""}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
}

TEST(Nearest, TellsFilesFromNames) {
  for (const char* file : {"a.yaml", "a.yml", "a.json", "a/b", "./a"}) EXPECT_TRUE(names_file(file)) << file;
  for (const char* name : {"", "a", "a.txt", "yaml"}) EXPECT_FALSE(names_file(name)) << name;
}

TEST(Nearest, QuotesSafely) {
  EXPECT_EQ(quote("a\nb\x1b[31m"), "'a\\nb\\x1b[31m'");
  EXPECT_EQ(quote(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(quote("größe"), "'größe'");
}

TEST(Printable, EscapesWhatATerminalObeysAndMarksThatTurnItsDirection) {
  EXPECT_EQ(printable("a\x1b[31m\x7f\n"), "a\\x1b[31m\\x7f\n");
  EXPECT_EQ(printable("a\u202Eb"), "a\\xe2\\x80\\xaeb") << "right to left";
  EXPECT_EQ(printable("a\u2066b\u2028"), "a\\xe2\\x81\\xa6b\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("\u2192 \u00fc \u20ac"), "\u2192 \u00fc \u20ac") << "and no other";
  EXPECT_EQ((Location{"a\nb.yaml", 3, 4}).str(), "a\\nb.yaml:3:4") << "a name is no line of its own";
}

}  // namespace
}  // namespace kernbench
