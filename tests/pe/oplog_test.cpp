// docs/oplog.md is what the records are: names, kinds, fields, in order.
#include <fstream>
#include <set>
#include <sstream>

#include "tests/pe/harness.h"

namespace kernbench {
namespace {

using test::Bench;

struct Row {
  std::string kind;
  std::vector<std::string> fields;  // numbers end in '#'
};

std::vector<std::string> in_backticks(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find('`'); at != std::string::npos;) {
    const std::size_t end = text.find('`', at + 1);
    std::string name = text.substr(at + 1, end - at - 1);
    if (text.compare(end + 1, 4, " *n*") == 0) name += '#';
    names.push_back(name);
    at = text.find('`', end + 1);
  }
  return names;
}

/// The rows "| `name` | kind | component | `field`, ... |".
std::map<std::string, Row> table() {
  std::map<std::string, Row> rows;
  std::ifstream file(KERNBENCH_DOCS "/oplog.md");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    std::vector<std::string> cells;
    std::stringstream stream(line.substr(1));
    for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
    if (cells.size() < 4) continue;
    rows[in_backticks(cells[0]).at(0)] = {cells[1].substr(1, cells[1].size() - 2), in_backticks(cells[3])};
  }
  return rows;
}

TEST(PeOpLog, RecordsHaveTheFieldsOfTheTable) {
  Bench::Options options;
  options.pes = 2;
  Bench bench(options);
  bench.map_hbm(0, 1 << 24);
  bench.join(0, 1);
  const auto body = [](Tl& tl) {
    const bool left = tl.program_id(0) == 0;
    tl.mark("all");
    const Tile a = tl.load(0x1000, {8, 8}, DType::f16);
    tl.send(left ? Direction::east() : Direction::west(), tl.gather(0x1000, {1, 2}, 8, DType::f16));
    tl.recv(left ? Direction::east() : Direction::west(), {2, 8}, DType::f16);
    tl.store(left ? 0x20000 : 0x30000, tl.softmax(tl.dot(a, tl.gelu(a))) + tl.reduce(ReduceKind::max, a, 1));
    CompositeGemm gemm;
    gemm.a = gemm.b = 0x1000;
    gemm.c = left ? 0x40000 : 0x50000;
    gemm.m = gemm.n = gemm.k = 64;
    tl.composite_gemm(gemm);
  };
  Message& message = bench.launch({{std::uint16_t{0}, body}, {std::uint16_t{1}, body}});
  ASSERT_TRUE(message.faults.empty()) << message.faults[0].reason;
  const auto rows = table();
  ASSERT_GE(rows.size(), 10u);
  std::set<std::string> seen;
  for (const OpRecord& record : bench.observer.ops) {
    const auto row = rows.find(record.name);
    ASSERT_NE(row, rows.end()) << record.name;
    EXPECT_EQ(record.kind, row->second.kind) << record.name;
    std::vector<std::string> fields;
    for (const OpRecord::Param& p : record.params) fields.push_back(p.name + std::string(p.text.empty() ? "#" : ""));
    EXPECT_EQ(fields, row->second.fields) << record.name;
    EXPECT_LE(record.start, record.end);
    EXPECT_EQ(record.kernel, "k");
    seen.insert(record.name);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"composite_gemm", "dma_read", "dma_write", "gemm", "ipcq_copy", "mark", "math",
                                         "math_reduce"}));
}

TEST(PeOpLog, ADmaRecordSaysWhereItsTimeWent) {
  Bench::Options options;
  options.config.dma.setup = 3'000;
  Bench bench(options);
  bench.map_hbm(0, 1 << 20);
  bench.launch([](Tl& tl) { tl.store(0x8000, tl.load(0x1000, {64, 256}, DType::f16)); });
  for (const char* name : {"dma_read", "dma_write"}) {
    const OpRecord record = bench.observer.named(name).at(0);
    ASSERT_EQ(record.spent.size(), static_cast<std::size_t>(kDelays));
    Ps sum = 0;
    for (const Ps part : record.spent) sum += part;
    EXPECT_EQ(sum, record.end - record.start);
    EXPECT_GE(record.spent[static_cast<std::size_t>(Delay::setup)], 3'000u);
  }
}

TEST(PeOpLog, OpIdsAreUnique) {
  Bench::Options options;
  options.pes = 2;
  Bench bench(options);
  const auto body = [](Tl& tl) {
    for (int i = 0; i < 10; ++i) tl.fill({1, 8}, DType::f16, i);
  };
  bench.launch({{std::uint16_t{0}, body}, {std::uint16_t{1}, body}});
  std::set<std::uint64_t> ids;
  for (const OpRecord& record : bench.observer.ops) ids.insert(record.op);
  EXPECT_EQ(ids.size(), 20u);
}

}  // namespace
}  // namespace kernbench
