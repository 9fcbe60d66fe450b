#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sc_main/explore/sweep/sweep_file.h"
#include "sc_main/run/arguments.h"
#include "topology/spec/resolve.h"

namespace kernbench::sweep {

/// One point: what the axes say, what follows from it, and all settings together.
struct Point {
  Coordinates coordinates;
  std::vector<Setting> settings;  ///< of the axes, then derived
  std::string refused;            ///< why it is not to run: the constraint that fails; empty: it may run
};

/// Machines of the base, resolved once; gives formulas the values that a point does not set.
class BaseMachines {
 public:
  /// Throws ConfigError.
  const topology::Resolved& of(const std::string& topology, const std::vector<std::string>& sets);

 private:
  std::map<std::string, std::unique_ptr<topology::Resolved>> machines_;
};

/// A word of a shell's command line, whatever is in it.
std::string shell_quoted(const std::string& word);

/// What runs a point.
struct PointCommand {
  std::string workload;
  std::vector<std::string> plugins;
  std::vector<std::pair<std::string, std::string>> machine;  ///< "--topology" and "--set", each with its value
  Arguments options;                                         ///< of the workload: "--name=value"
  std::string sim_time;                                      ///< of --max-sim-time; empty: no limit

  /// What follows `run`. `with_machine`: else for a machine that is resolved already.
  Arguments arguments(bool with_machine = true) const;
  std::string text() const;  ///< "kernbench run ...", to paste into a shell
};

/// Makes points of coordinates.
class PointMaker {
 public:
  explicit PointMaker(const SweepFile& file) : file_(file) {}

  /// Applies what is derived and checks the constraints.
  Point make(Coordinates coordinates);

  PointCommand command(const Point& point) const;

  /// Values of the objectives, in the order of the file; NaN where a metric is missing. `metrics`: of the point's
  /// result.
  std::vector<double> objectives(const Point& point, const std::map<std::string, double>& metrics);

 private:
  const std::string& topology_of(const Point& point) const;
  double lookup(const Point& point, const std::string& name);
  const SweepFile& file_;
  BaseMachines bases_;
};

/// The points of a sweep in their order, those that a constraint refuses among them; at most `run_cap` that may run.
std::vector<Point> points(const SweepFile& file, PointMaker& maker);

}  // namespace kernbench::sweep
