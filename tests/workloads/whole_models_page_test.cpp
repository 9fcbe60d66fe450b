// docs/whole_models.md: eight questions, each with its command.
#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/workloads/small_transformer.h"
#include "tests/workloads/tool_json.h"

namespace kernbench {
namespace {
using ::testing::HasSubstr;

/// The last cell of the row of question `number`.
std::string command_cell(const std::string& page, int number) {
  const std::size_t row = page.find("\n| " + std::to_string(number) + ". ");
  if (row == std::string::npos) return {};
  const std::string line = page.substr(row + 1, page.find('\n', row + 1) - row - 1);
  const std::size_t cell = line.rfind("| ", line.size() - 2);
  return line.substr(cell + 2, line.size() - cell - 4);
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command.substr(std::string("kernbench ").size()));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// What each answer is found by, in the text that the row names.
class WholeModelsPage : public ::testing::TestWithParam<std::tuple<int, int, std::vector<std::string>>> {};

TEST_P(WholeModelsPage, TheCommandOfAQuestionAnswersIt) {
  const auto& [question, code, answers] = GetParam();
  const std::string page = read(KERNBENCH_SOURCE_DIR "/docs/whole_models.md");
  std::string cell = command_cell(page, question), more;
  for (int before = question; cell == "the same"; cell = command_cell(page, before)) --before;
  if (cell.rfind("the first, with `", 0) == 0) {
    more = cell.substr(std::string("the first, with `").size());
    more.pop_back();
    cell = command_cell(page, 1);
  }
  ASSERT_EQ(cell.rfind("`kernbench run ", 0), 0u) << cell;
  std::vector<std::string> words = words_of(cell.substr(1, cell.size() - 2) + " " + more);
  const Tool tool;
  const Outcome outcome = tool(words);
  EXPECT_EQ(outcome.code, code) << outcome.err;
  for (const std::string& answer : answers) EXPECT_THAT(outcome.out + outcome.err, HasSubstr(answer));
}

using Answers = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(
    Questions, WholeModelsPage,
    ::testing::Values(
        std::tuple(1, 0, Answers{"us to the first token"}),
        std::tuple(2, 0,
                   Answers{"tokens per second", "us per output token", "mean utilisation: GEMM arrays",
                           "% compute-bound kernels", "bound by"}),
        std::tuple(5, 0, Answers{"us per output token"}),
        std::tuple(6, 5, Answers{"needs 101536992768 B of HBM on each SIP, which has 34359738368 B; most of it"}),
        std::tuple(7, 0, Answers{"J per token"}), std::tuple(8, 0, Answers{"# replay: ", "# fidelity fast"})),
    [](const auto& info) { return "Question" + std::to_string(std::get<0>(info.param)); });

TEST(WholeModelsPageRows, QuestionsThreeAndFourAreAnsweredByTheCommandOfTheSecond) {
  const std::string page = read(KERNBENCH_SOURCE_DIR "/docs/whole_models.md");
  EXPECT_EQ(command_cell(page, 3), "the same");
  EXPECT_EQ(command_cell(page, 4), "the same");
}

/// Every key of `json`, however deep.
void collect_keys(const nlohmann::ordered_json& json, std::set<std::string>& keys) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    collect_keys(value, keys);
  }
}

/// Passes over a model, of experts on stages with replay, and requests.
TEST(WholeModelsPageKeys, EveryKeyOfAResultIsInThePages) {
  std::string pages;
  for (const char* page : {"whole_models", "serving", "replay"})
    pages += read(KERNBENCH_SOURCE_DIR "/docs/" + std::string(page) + ".md");
  const Tool tool;
  const std::string experts = "experts: 4\nexperts_per_token: 2\n";
  std::set<std::string> keys;
  const auto add_keys = [&](const std::vector<std::string>& more, const std::string& model) {
    std::vector<std::string> arguments = small_transformer(tool, more, model, "2");
    arguments.insert(arguments.end(), {"--json", "-"});
    const Outcome outcome = tool(arguments);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = json_of(outcome.out);
    collect_keys(json["results"], keys);
    if (json.contains("replay")) collect_keys(json["replay"], keys);
  };
  add_keys({}, small_model(2));
  add_keys({"--data", "off", "--replay", "4", "--tp", "2", "--pp", "2"}, small_model(2, experts));
  add_keys({"--data", "off", "--requests", "3", "--rate", "2000"}, small_model(2));
  EXPECT_GT(keys.size(), 100u);
  for (const std::string& key : keys) EXPECT_THAT(pages, HasSubstr("`" + key + "`"));
}

}  // namespace
}  // namespace kernbench
