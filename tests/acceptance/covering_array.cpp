#include "tests/acceptance/covering_array.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace kernbench {
namespace {

using Pair = std::tuple<int, int, int, int>;  // factor, value, later factor, value
using Legal = std::function<bool(const Partial&)>;

/// Completes `row` with values in the order that `order` gives for a factor; false if no legal row is left.
template <class Order>
bool complete(Partial& row, const Legal& legal, const Order& order) {
  if (!legal(row)) return false;
  const auto open = std::find(row.begin(), row.end(), -1);
  if (open == row.end()) return true;
  const int factor = static_cast<int>(open - row.begin());
  for (const int value : order(row, factor)) {
    row[static_cast<std::size_t>(factor)] = value;
    if (complete(row, legal, order)) return true;
  }
  row[static_cast<std::size_t>(factor)] = -1;
  return false;
}

std::vector<int> in_order(int values) {
  std::vector<int> list(static_cast<std::size_t>(values));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

/// Every pair that a legal row can hold.
std::set<Pair> possible_pairs(const std::vector<int>& values, const Legal& legal) {
  std::set<Pair> pairs;
  const int factors = static_cast<int>(values.size());
  const auto first = [&](const Partial&, int factor) { return in_order(values[static_cast<std::size_t>(factor)]); };
  for (int f = 0; f < factors; ++f) {
    for (int g = f + 1; g < factors; ++g) {
      for (int a = 0; a < values[static_cast<std::size_t>(f)]; ++a) {
        for (int b = 0; b < values[static_cast<std::size_t>(g)]; ++b) {
          Partial row(values.size(), -1);
          row[static_cast<std::size_t>(f)] = a;
          row[static_cast<std::size_t>(g)] = b;
          if (complete(row, legal, first)) pairs.emplace(f, a, g, b);
        }
      }
    }
  }
  return pairs;
}

void cover(std::set<Pair>& missing, const Row& row) {
  const int factors = static_cast<int>(row.size());
  for (int f = 0; f < factors; ++f) {
    for (int g = f + 1; g < factors; ++g) {
      missing.erase({f, row[static_cast<std::size_t>(f)], g, row[static_cast<std::size_t>(g)]});
    }
  }
}

}  // namespace

std::vector<Row> covering_array(const std::vector<int>& values, const Legal& legal) {
  std::set<Pair> missing = possible_pairs(values, legal);
  const int factors = static_cast<int>(values.size());
  const auto most_missing_first = [&](const Partial& row, int factor) {
    std::vector<int> list = in_order(values[static_cast<std::size_t>(factor)]);
    std::vector<int> gain(list.size(), 0);
    for (const int value : list) {
      for (int other = 0; other < factors; ++other) {
        const int chosen = row[static_cast<std::size_t>(other)];
        if (other == factor || chosen < 0) continue;
        const Pair pair = other < factor ? Pair{other, chosen, factor, value} : Pair{factor, value, other, chosen};
        gain[static_cast<std::size_t>(value)] += static_cast<int>(missing.count(pair));
      }
    }
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
      return gain[static_cast<std::size_t>(a)] > gain[static_cast<std::size_t>(b)];
    });
    return list;
  };
  std::vector<Row> rows;
  while (!missing.empty()) {
    const auto [f, a, g, b] = *missing.begin();
    Partial row(values.size(), -1);
    row[static_cast<std::size_t>(f)] = a;
    row[static_cast<std::size_t>(g)] = b;
    complete(row, legal, most_missing_first);  // possible_pairs has found one
    cover(missing, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::size_t missing_pairs(const std::vector<int>& values, const Legal& legal, const std::vector<Row>& rows) {
  std::set<Pair> missing = possible_pairs(values, legal);
  for (const Row& row : rows) cover(missing, row);
  return missing.size();
}

}  // namespace kernbench
