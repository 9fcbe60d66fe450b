#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kernbench::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// Sources, from the root of the tree.
std::vector<std::string> sources() {
  std::vector<std::string> found;
  for (const char* folder : {"ccl", "models", "runtime", "sc_main", "tlm", "topology", "waves"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(KERNBENCH_SOURCE_DIR) / folder)) {
      const std::string kind = entry.path().extension().string();
      if (kind == ".cpp" || kind == ".h") found.push_back(fs::relative(entry.path(), KERNBENCH_SOURCE_DIR).string());
    }
  }
  return found;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// One journey: what it names for the first time is one file, has no mark, and has the function behind it; what was
/// named before has the mark.
void check_journey(const std::string& journey, const std::vector<std::string>& files) {
  static const std::regex step(R"(`([\w/]+\.(?:cpp|h))`(\\\*)?(?: \(`(\w+)`)?)");
  std::set<std::string> entered;  // by name without folder
  for (std::sregex_iterator at(journey.begin(), journey.end(), step), end; at != end; ++at) {
    const std::string name = (*at)[1], base = fs::path(name).filename().string();
    EXPECT_EQ((*at)[2].matched, entered.count(base) > 0) << name << ": the mark of what was entered before";
    std::vector<std::string> fits;
    for (const std::string& file : files) {
      if (ends_with("/" + file, "/" + name)) fits.push_back(file);
    }
    if (entered.insert(base).second) {
      EXPECT_EQ(fits.size(), 1u) << name << ": give as much of its path as makes it one file";
    }
    if (!(*at)[3].matched) continue;
    const std::regex function("\\b" + (*at)[3].str() + "\\(");
    bool any = false;
    for (const std::string& file : fits)
      any = any || std::regex_search(text_of(fs::path(KERNBENCH_SOURCE_DIR) / file), function);
    EXPECT_TRUE(any) << name << " has no " << (*at)[3];
  }
  EXPECT_GT(entered.size(), 10u);
}

TEST(Architecture, JourneysNameFilesAndFunctionsThatThereAre) {
  const std::string page = text_of(fs::path(KERNBENCH_SOURCE_DIR) / "docs/architecture.md");
  std::size_t begin = page.find("## Five journeys");
  const std::size_t end = page.find("\n## ", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::vector<std::string> files = sources();
  int journeys = 0;
  for (begin = page.find("\n**", begin); begin < end; ++journeys) {
    const std::size_t next = std::min(page.find("\n**", begin + 1), end);
    check_journey(page.substr(begin, next - begin), files);
    begin = next;
  }
  EXPECT_EQ(journeys, 5);
}

}  // namespace
}  // namespace kernbench::test
