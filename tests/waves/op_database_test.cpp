// `run --oplog FILE.sqlite`: the queries of docs/oplog.md, against the JSON lines of the same run.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/tool_runner.h"

namespace kernbench {
namespace {
using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

/// Text of the code blocks of SQL in docs/oplog.md, in order.
std::vector<std::string> documented_queries() {
  std::vector<std::string> queries;
  std::istringstream page(read(std::string(KERNBENCH_SOURCE_DIR) + "/docs/oplog.md"));
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```sql") queries.emplace_back();
    inside = line == "```sql" || (inside && line != "```");
    if (inside && line != "```sql") queries.back() += line + "\n";
  }
  return queries;
}

std::vector<Row> answer(const SQLite::Database& database, const std::string& query) {
  SQLite::Statement statement(database, query);
  std::vector<Row> rows;
  while (statement.executeStep()) {
    Row& row = rows.emplace_back();
    for (int i = 0; i < statement.getColumnCount(); ++i) row.push_back(statement.getColumn(i).getString());
  }
  return rows;
}

std::string leaf(const std::string& component) { return component.substr(component.rfind('.') + 1); }
std::string text(std::int64_t number) { return std::to_string(number); }

/// One run of a perceptron on two small SIPs, logged in both forms.
class OpDatabase : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string run =
        "kernbench run tp_mlp --topology ring8 --set system.sips.count=2 --set sip.cube_mesh.w=1 --set "
        "sip.cube_mesh.h=1 --data off -q -w 0 --oplog ";
    for (const char* name : {"ops.jsonl", "ops.sqlite"}) {
      const Outcome outcome = tool_.shell(std::string(KERNBENCH_BINARY) + run.substr(9) + name);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
    std::istringstream lines(read(tool_.file("ops.jsonl")));
    for (std::string line; std::getline(lines, line);) ops_.push_back(Json::parse(line));
    ASSERT_GT(ops_.size(), 100U);
  }
  const Tool tool_;
  std::vector<Json> ops_;
};

TEST_F(OpDatabase, HoldsTheLinesOfTheLogInTheirOrder) {
  const SQLite::Database database(tool_.file("ops.sqlite"), SQLite::OPEN_READONLY);
  EXPECT_EQ(answer(database, "PRAGMA integrity_check").front().front(), "ok");
  const std::vector<Row> rows =
      answer(database,
             "SELECT t_start, t_end, component, op_kind, op_name, op, kernel, params, stage FROM op_log ORDER BY id");
  ASSERT_EQ(rows.size(), ops_.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& op = ops_[i];
    const Row expected{text(op["t_start"]), text(op["t_end"]), op["component"],     op["op_kind"], op["op_name"],
                       text(op["op"]),      op["kernel"],      op["params"].dump(), op["stage"]};
    ASSERT_EQ(rows[i], expected);
  }
}

TEST_F(OpDatabase, AnswersTheQueriesOfTheDocumentationAsTheLogDoes) {
  const SQLite::Database database(tool_.file("ops.sqlite"), SQLite::OPEN_READONLY);
  const std::vector<std::string> queries = documented_queries();
  ASSERT_EQ(queries.size(), 6U);
  const auto asked = [&](std::size_t query) { return answer(database, queries[query]); };

  std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_name;  // 1: number and time
  std::map<std::string, std::int64_t> by_space, by_unit, by_peer;        // 2, 3, 6
  std::map<std::string, std::pair<double, std::int64_t>> by_kernel;      // 5: FLOP, arrays' time
  std::map<std::string, std::vector<Json>> products;                     // by array
  for (const Json& op : ops_) {
    const std::string name = op["op_name"], component = op["component"];
    const std::int64_t time = op["t_end"].get<std::int64_t>() - op["t_start"].get<std::int64_t>();
    ++by_name[name].first;
    by_name[name].second += time;
    const Json& params = op["params"];
    if (op["op_kind"] == "dma")
      by_space[op["kernel"].get<std::string>() + "/" + params["space"].get<std::string>() + "/" + name] +=
          params["nbytes"].get<std::int64_t>();
    if (name == "gemm") {
      by_kernel[op["kernel"]].first +=
          2.0 * params["m"].get<double>() * params["n"].get<double>() * params["k"].get<double>();
      products[component.substr(0, component.rfind('.'))].push_back(op);
    }
    if (leaf(component) == "ipcq_send")
      by_peer[component.substr(0, component.rfind('.')) + ">" + params["peer"].get<std::string>()] +=
          params["nbytes"].get<std::int64_t>();
  }
  for (auto& [unit, ops] : products) {  // each from the end of those before it
    std::stable_sort(ops.begin(), ops.end(), [](const Json& a, const Json& b) { return a["t_start"] < b["t_start"]; });
    std::int64_t until = 0;
    for (const Json& op : ops) {
      const std::int64_t end = op["t_end"];
      const std::int64_t more = std::max<std::int64_t>(0, end - std::max(until, op["t_start"].get<std::int64_t>()));
      by_unit[unit] += more;
      by_kernel[op["kernel"]].second += more;
      until = std::max(until, end);
    }
  }

  const std::vector<Row> kinds = asked(0);
  ASSERT_EQ(kinds.size(), by_name.size());
  for (const Row& row : kinds) {
    EXPECT_EQ(row[1], text(by_name[row[0]].first)) << row[0];
    EXPECT_EQ(row[2], text(by_name[row[0]].second)) << row[0];
  }
  const std::vector<Row> spaces = asked(1);
  ASSERT_EQ(spaces.size(), by_space.size());
  for (const Row& row : spaces) EXPECT_EQ(row[3], text(by_space[row[0] + "/" + row[1] + "/" + row[2]])) << row[0];

  const std::vector<Row> arrays = asked(2);
  ASSERT_EQ(arrays.size(), by_unit.size());
  for (const Row& row : arrays) EXPECT_EQ(row[3], text(by_unit["sip" + row[0] + ".cube" + row[1] + ".pe" + row[2]]));

  std::vector<std::int64_t> times;  // 4: the slowest reads
  for (const Json& op : ops_) {
    if (op["op_name"] == "dma_read")
      times.push_back(op["t_end"].get<std::int64_t>() - op["t_start"].get<std::int64_t>());
  }
  std::sort(times.rbegin(), times.rend());
  const std::vector<Row> slowest = asked(3);
  ASSERT_EQ(slowest.size(), std::min<std::size_t>(times.size(), 10));
  for (std::size_t i = 0; i < slowest.size(); ++i) EXPECT_EQ(slowest[i][1], text(times[i]));

  const std::vector<Row> rates = asked(4);
  ASSERT_EQ(rates.size(), by_kernel.size());
  for (const Row& row : rates) {
    EXPECT_DOUBLE_EQ(std::stod(row[1]), by_kernel[row[0]].first) << row[0];
    EXPECT_NEAR(std::stod(row[2]), by_kernel[row[0]].first / static_cast<double>(by_kernel[row[0]].second), 5e-4);
  }
  const std::vector<Row> messages = asked(5);
  EXPECT_FALSE(messages.empty()) << "the ranks exchange their results";
  ASSERT_EQ(messages.size(), by_peer.size());
  for (const Row& row : messages) EXPECT_EQ(row[3], text(by_peer[row[0] + ">" + row[1]]));
}

TEST_F(OpDatabase, NamesTheLaunchOfEveryKernelAndOfItsOps) {
  const SQLite::Database database(tool_.file("ops.sqlite"), SQLite::OPEN_READONLY);
  EXPECT_EQ(answer(database,
                   "SELECT count(*) FROM ops JOIN components c ON c.id = ops.component WHERE c.pe IS NOT NULL AND "
                   "op_kind <> 'mark' AND NOT EXISTS (SELECT 1 FROM kernels k JOIN components p ON p.id = k.component "
                   "WHERE k.launch = ops.launch AND p.sip = c.sip AND p.cube = c.cube AND p.pe = c.pe AND "
                   "ops.t_start >= k.t_start AND ops.t_end <= k.t_end)")
                .front()
                .front(),
            "0");
}

TEST(OpDatabaseFile, ThatCannotBeWrittenIsRefusedBeforeTheRun) {
  const Tool tool;
  const Outcome outcome = tool({"run", "probe", "--topology", "minimal", "--oplog", "/nowhere/ops.sqlite"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(outcome.err, "kernbench: error: cannot write '/nowhere/ops.sqlite': No such file or directory\n");
}

TEST(OpDatabaseOfRepeats, MarksThemAsTheJsonLinesDo) {
  const Tool tool;
  for (const char* name : {"ops.jsonl", "ops.sqlite"}) {
    const Outcome outcome = tool({"run",        "tp_mlp",
                                  "--topology", "ring8",
                                  "--set",      "system.sips.count=2",
                                  "--set",      "sip.cube_mesh.w=1",
                                  "--set",      "sip.cube_mesh.h=1",
                                  "--data",     "off",
                                  "--fidelity", "fast",
                                  "-q",         "-w",
                                  "0",          "-n",
                                  "12",         "--oplog",
                                  name});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  std::map<std::string, std::int64_t> repeats;  // by kind of op
  std::istringstream lines(read(tool.file("ops.jsonl")));
  for (std::string line; std::getline(lines, line);) {
    const Json op = Json::parse(line);
    repeats[op["op_name"]] += op.value("repeat", false) ? 1 : 0;
  }
  ASSERT_GT(repeats["dma_read"], 0);
  const SQLite::Database database(tool.file("ops.sqlite"));
  for (const auto& [name, number] : repeats) {
    EXPECT_EQ(answer(database, "SELECT sum(repeat) FROM op_log WHERE op_name = '" + name + "'"),
              (std::vector<Row>{{text(number)}}));
  }
  // A repeat has kernels of its own, with the id of its own launch.
  EXPECT_EQ(answer(database,
                   "SELECT count(*) FROM kernels AS a JOIN kernels AS b USING (launch, component) "
                   "WHERE a.repeat <> b.repeat"),
            (std::vector<Row>{{"0"}}));
  EXPECT_NE(answer(database, "SELECT sum(repeat) FROM kernels"), (std::vector<Row>{{"0"}}));
}

}  // namespace
}  // namespace kernbench
