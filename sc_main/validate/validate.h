#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sc_main/validate/plot.h"
#include "tlm/machine/fidelity.h"

namespace kernbench::validate {

/// One figure of a reference beside the same figure of the model.
struct Case {
  std::string name;    ///< "group/row", e.g. "mesh4x4_uniform_p8_vc4_buf8/load=0.45"; unique within its domain
  std::string metric;  ///< with its unit, e.g. "avg_packet_latency_cycles"
  double reference = 0;
  double measured = 0;
  double error = 0;  ///< measured / reference - 1
  double limit = 0;  ///< largest deviation() allowed
  bool judged = true;
  std::string reason;         ///< why it is reported only; empty if it is judged
  bool less_is_fine = false;  ///< what is measured may be better than the reference

  /// How far the model is off, of either sign; 0 where it is better and may be.
  double deviation() const { return less_is_fine ? std::max(error, 0.0) : std::abs(error); }
  bool within() const { return deviation() <= limit; }
};

/// A case. The error is measured / reference - 1; of a reference of 0 it is 0 if both are, else infinite. `reason`: why
/// it is reported only; empty: it is judged.
Case judge(std::string name, std::string metric, double reference, double measured, double limit,
           std::string reason = {});

/// The errors of all judged cases, a series per metric, between their limits.
Plot error_plot(const std::string& domain, const std::vector<Case>& cases);

/// What became of a group.
struct Judged {
  std::vector<Case> cases;
  std::vector<Plot> plots;  ///< written with --plot only
};

/// The figures of one run, by position.
using Figures = std::vector<double>;

/// Cases that belong together, such as a table of the reference: runs that each get a process, then a verdict.
struct Group {
  std::string name;  ///< --filter matches it; the file name of the reference or the id of its row
  /// Each in a forked process of its own, before any SystemC elaboration there, in any order and at the same time: what
  /// it needs is captured by value, what it finds is returned. What it throws ends the validation.
  std::vector<std::function<Figures()>> runs;
  /// In the tool's own process, after all runs; `figures[i]` came from runs[i].
  std::function<Judged(const std::vector<Figures>& figures)> verdict;
  /// Rows of the table that this version does not know how to run: where, and why. The others are run all the same.
  std::vector<std::string> skipped{};
};

/// A verdict of `count` cases; `case_of(i, figures of all runs)` is the i-th.
template <class CaseOf>
auto case_by_case(std::size_t count, CaseOf case_of) {
  return [count, case_of](const std::vector<Figures>& figures) {
    Judged judged;
    for (std::size_t i = 0; i < count; ++i) judged.cases.push_back(case_of(i, figures));
    return judged;
  };
}

/// What the command line asks for.
struct Request {
  std::filesystem::path reference;  ///< folder of the domain's tables, e.g. bench/reference/noc
  Fidelity fidelity;                ///< grades of all subsystems
  bool fast = false;                ///< the domain's own subsystem runs at grade fast
  bool sample = false;              ///< a representative part that takes seconds
};

/// One area of the model that is held against references: one file, and its two lines in domains.cpp.
struct Domain {
  const char* name;
  const char* help;
  const char* folder;  ///< of its tables within the reference folder; empty: closed forms, no tables
  Subsystem part;      ///< whose grade Request::fast is
  /// Reads the tables and plans the runs, which it does not start. Throws ConfigError at the line of a broken table.
  std::vector<Group> (*groups)(const Request& request);
};

/// Every domain, in the order of the help.
const std::vector<Domain>& domains();

/// The folder of one domain's tables. `given`: --reference; it may hold the folder of each domain or the tables
/// themselves; empty: the tables that come with the tool, found from the place of its executable. Throws
/// std::invalid_argument if there is no such folder.
std::filesystem::path reference_folder(const std::string& given, const std::string& domain_folder);

}  // namespace kernbench::validate
