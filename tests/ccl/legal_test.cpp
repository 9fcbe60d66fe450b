#include "ccl/contract/legal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tlm/kernel/operations.h"

namespace kernbench {
namespace {

using Triple = std::tuple<std::string, std::string, std::string>;

std::vector<std::string> words(const std::string& cell) {
  std::vector<std::string> list;
  std::stringstream stream(cell);
  for (std::string word; std::getline(stream, word, ',');) {
    const std::size_t begin = word.find_first_not_of(' '), end = word.find_last_not_of(' ');
    list.push_back(word.substr(begin, end - begin + 1));
  }
  return list;
}

/// Every triple of the table between the marks in docs/collectives.md; "none" is the ignored reduce op.
std::set<Triple> documented() {
  std::ifstream file(KERNBENCH_SOURCE_DIR "/docs/collectives.md");
  std::set<Triple> triples;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "<!-- legal -->") inside = true;
    if (line == "<!-- /legal -->") inside = false;
    if (!inside || line.rfind("| ", 0) != 0 || line.rfind("| operations", 0) == 0) continue;
    std::vector<std::string> cells;
    std::stringstream stream(line.substr(1));
    for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
    EXPECT_EQ(cells.size(), 3u) << line;
    for (const std::string& op : words(cells.at(0))) {
      for (const std::string& dtype : words(cells.at(1))) {
        for (const std::string& reduce_op : words(cells.at(2))) {
          EXPECT_TRUE(triples.emplace(op, dtype, reduce_op == "none" ? "sum" : reduce_op).second) << line;
        }
      }
    }
  }
  return triples;
}

TEST(Legal, TriplesAreThoseOfTheDocumentation) {
  std::set<Triple> legal;
  for (int op = 0; op < kCollectiveOps; ++op) {
    for (int dtype = 0; dtype < kDTypes; ++dtype) {
      for (int reduce_op = 0; reduce_op < ccl::kReduceOps; ++reduce_op) {
        const auto o = static_cast<CollectiveOp>(op);
        const auto d = static_cast<DType>(dtype);
        const auto r = static_cast<ReduceOp>(reduce_op);
        if (ccl::legal(o, d, r)) legal.emplace(to_string(o), to_string(d), to_string(r));
      }
    }
  }
  EXPECT_EQ(legal, documented());
  EXPECT_EQ(legal.size(), 3u * 10 * 5 + 3 * 2 + 7 * 11);
}

TEST(Operations, HaveOneRowEachInTheOrderOfTheirNumbers) {
  const std::pair<CollectiveOp, const char*> rows[] = {{CollectiveOp::all_reduce, "all_reduce"},
                                                       {CollectiveOp::all_gather, "all_gather"},
                                                       {CollectiveOp::reduce_scatter, "reduce_scatter"},
                                                       {CollectiveOp::reduce, "reduce"},
                                                       {CollectiveOp::broadcast, "broadcast"},
                                                       {CollectiveOp::all_to_all, "all_to_all"},
                                                       {CollectiveOp::gather, "gather"},
                                                       {CollectiveOp::scatter, "scatter"},
                                                       {CollectiveOp::send_recv, "send_recv"},
                                                       {CollectiveOp::barrier, "barrier"}};
  for (const auto& [op, name] : rows) EXPECT_STREQ(to_string(op), name);
  EXPECT_EQ(std::size(rows), std::size_t{kCollectiveOps});
  EXPECT_THROW(facts_of(static_cast<CollectiveOp>(kCollectiveOps)), std::out_of_range);
}

static_assert(ccl::legal(CollectiveOp::all_reduce, DType::boolean, ReduceOp::max), "or");
static_assert(!ccl::legal(CollectiveOp::all_reduce, DType::boolean, ReduceOp::sum), "undefined");
static_assert(!ccl::legal(CollectiveOp::all_gather, DType::f16, ReduceOp::max), "nothing is reduced");

}  // namespace
}  // namespace kernbench
