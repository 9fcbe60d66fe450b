#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/acceptance/covering_array.h"

/// The collectives that the tool has to run correctly: every operation x type x reduce op x ranks x machine x scope x
/// placement x size that is legal, as factors of a covering array.
namespace kernbench::matrix {

/// Number of values of each factor.
std::vector<int> values();
bool legal(const Partial& row);
/// The command line of a complete row, and a name for it.
std::vector<std::string> command(const Row& row);
std::string name(const Row& row);
/// Elements that all ranks hold together: what a run costs.
double work(const Row& row);

/// Calls f(row) for every legal row, in order.
template <class F>
void for_each_row(F&& f) {
  const std::vector<int> sizes = values();
  Partial row(sizes.size(), -1);
  const auto descend = [&](const auto& self, std::size_t factor) -> void {
    if (factor == sizes.size()) {
      f(static_cast<const Row&>(row));
      return;
    }
    for (int value = 0; value < sizes[factor]; ++value) {
      row[factor] = value;
      if (legal(row)) self(self, factor + 1);
    }
    row[factor] = -1;
  };
  descend(descend, 0);
}

}  // namespace kernbench::matrix
