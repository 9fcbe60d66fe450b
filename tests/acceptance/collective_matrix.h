#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "sc_main/workloads/collective_case.h"
#include "tests/acceptance/covering_array.h"
#include "tlm/machine/run_options.h"

/// The collectives that the tool has to run correctly: every operation x type x reduce op x ranks x machine x scope x
/// placement x size that is legal, as factors of a covering array.
namespace kernbench::matrix {

/// Number of values of each factor.
std::vector<int> values();
bool legal(const Partial& row);
/// The command line of a complete row, and a name for it.
std::vector<std::string> command(const Row& row);
std::string name(const Row& row);
/// The machine that a row wants: all rows with the same one can run in one process.
struct Machine {
  int ranks = 1;
  std::string kind;  ///< of the links between SIPs, or "one_cube", "one_pe"
  SchedulingKind scheduling = SchedulingKind::concurrent;
  friend bool operator==(const Machine& a, const Machine& b) {
    return a.ranks == b.ranks && a.kind == b.kind && a.scheduling == b.scheduling;
  }
};
Machine machine(const Row& row);
std::vector<Machine> machines();                           ///< that rows want
std::vector<std::string> options(const Machine& machine);  ///< of the command line
std::string name(const Machine& machine);
inline void PrintTo(const Machine& machine, std::ostream* out) { *out << name(machine); }  ///< for GoogleTest
/// The command line that runs rows of a machine with the plug-in of collective_rows.cpp.
std::vector<std::string> rows_command(const std::string& plugin, const Machine& machine);
/// What a row asks for.
CollectiveCase what(const Row& row);
std::int64_t elements(const Row& row);  ///< of a rank's tensor: 1 ... 1 Mi
/// Elements of a block of what a row asks for, on a group of what.ranks ranks.
std::int64_t block(const Row& row, const CollectiveCase& what);
/// avg divides by the number of contributions, which the type has to hold.
bool divisor_is_exact(DType dtype, int contributions);
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
