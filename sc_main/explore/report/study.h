#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sc_main/explore/search/pareto.h"

namespace kernbench::report {

/// A column of the study that varies: an axis of the sweep, or a figure that was measured.
struct Column {
  std::string name;  ///< dotted key, option, or figure
  std::string unit;  ///< as people write it; empty: none
  /// How it is drawn. A category has no order of its own; its values are drawn in that of `categories`.
  enum class Scale { linear, log, category } scale = Scale::linear;
  std::vector<std::string> categories = {};
};

struct Metric {
  Column column;
  search::Goal goal = search::Goal::minimize;
  bool objective = false;  ///< the study asked for it; otherwise the goal is only the usual one of such a figure
};

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

/// Sort of work of a component and the key of the configuration that gives the energy of one.
struct EnergyOperation {
  std::string key;   ///< "pe.energy.mac_16bit"
  std::string unit;  ///< of what is counted: "MAC"
  std::size_t component = 0;
};

/// Where the energy of a run went, in pJ; by component and by operation of the study. Empty: the run does not say.
struct Energy {
  std::vector<double> dynamic_pj, static_pj;  ///< by component; NaN: the machine has none
  std::vector<double> counts, operation_pj;   ///< by operation; NaN: did not occur
};

/// One run of the study.
struct Point {
  std::string key;                      ///< hash of configuration and version
  std::string status;                   ///< "ok", or why there are no figures
  std::vector<double> axes;             ///< by axis: its value, or the index of its category; NaN: none
  std::vector<double> values;           ///< by metric; NaN: none
  std::vector<std::string> labels;      ///< by axis: its value as written in the sweep file; empty: none
  std::vector<std::string> texts = {};  ///< by text of the study; empty: none
  Energy energy;
  nlohmann::ordered_json config;  ///< the resolved machine
  std::string command;            ///< reproduces the run in a shell
  std::string error;
  int exit_code = 0;
};

/// One search of the study's space: what it had found after each generation.
struct SearchRun {
  struct Generation {
    unsigned number = 0;
    std::size_t evaluated = 0;  ///< points so far
    std::size_t front = 0;      ///< of them, on the front
    double hypervolume = 0;     ///< up to the search's own reference point
    double share = kNoFigure;   ///< of what all points of the store dominate: comparable between searches
  };
  std::string algorithm;
  std::uint64_t seed = 0;
  std::vector<Generation> generations;
};

/// Everything that a report shows.
struct Study {
  std::string title;
  std::string version;  ///< of the program that ran the points
  std::string base;     ///< command line that all points share
  std::string source;   ///< text of the sweep file
  std::vector<Column> axes;
  std::vector<Metric> metrics;          ///< the objectives first
  std::vector<std::string> texts = {};  ///< names of what results say in words, such as the algorithm
  std::vector<Point> points;            ///< in the order of their keys' first plan
  std::vector<SearchRun> searches;
  std::vector<std::string> components;      ///< of the runs' energies, in the order in which results have them
  std::vector<EnergyOperation> operations;  ///< in the order of their first run

  /// Indices of the points that no other beats in all objectives; empty without objectives.
  std::vector<std::size_t> front() const;
};

/// Numbers that span a factor of 20 are drawn on a log scale, others on a linear one; categories stay what they are.
void choose_scales(Study& study);

/// Unit that the name of a figure carries ("time_ns": ns), or empty.
std::string unit_of(const std::string& name);
/// The usual goal of a figure of this name: rates and fractions of a peak are to be large, everything else small.
search::Goal usual_goal(const std::string& name);

}  // namespace kernbench::report
