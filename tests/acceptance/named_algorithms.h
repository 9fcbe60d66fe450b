#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "tests/acceptance/collective_matrix.h"

/// Every algorithm that ships, run by its name: on every topology of SIPs that its module says it serves, each
/// operation and scope, with data of which every element of every rank and copy is compared (collective_rows.cpp).
namespace kernbench::named {

/// Rows of one algorithm on one machine, in one process.
struct Run {
  std::string algorithm;
  matrix::Machine machine;
  std::string fidelity = "fast";
  int cubes_w = 2, cubes_h = 1;
  std::string of_each = "1";  ///< operation, scope and placement
  std::string most = "1000";  ///< elements of a rank
};
std::string name(const Run& run);
inline void PrintTo(const Run& run, std::ostream* out) { *out << name(run); }

/// Of all algorithms: each grade and scheduling comes in turn.
std::vector<Run> runs();
/// The published algorithm on SIPs of 4 x 4 cubes: ring, torus and mesh of SIPs, both grades.
std::vector<Run> published();
/// All of these with far more rows, and with all of 1 Mi elements.
std::vector<Run> all_runs();

/// Nothing, or what is wrong with a run: an element, an operation and scope of the module that no row of it served, a
/// row that was refused without a reason that docs/collectives.md gives.
std::string wrong_with(const Run& run);

}  // namespace kernbench::named
