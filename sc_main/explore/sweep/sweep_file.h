#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/axis.h"
#include "sc_main/explore/sweep/expression.h"
#include "sc_main/process/pool.h"
#include "tlm/config/config_node.h"

namespace kernbench::sweep {

enum class Method : std::uint8_t { grid, zip, random, latin_hypercube, sobol };
const char* to_string(Method method);

enum class Goal : std::uint8_t { minimize, maximize };
const char* to_string(Goal goal);

/// A figure that is to become small or large.
struct Objective {
  std::string name;
  Goal goal = Goal::minimize;
  std::string unit;
  Expression value;  ///< over metrics of the result, keys, and options
  Location where;
};

/// A value that follows from others of the same point.
struct Derived {
  std::string name;  ///< a key or an option
  ValueKind kind;
  Expression value;
  Location where;
};

struct Constraint {
  Expression condition;
  Location where;
};

/// What one point may use.
struct Limits : process::Limits {
  std::string sim_time;  ///< --max-sim-time of every point; empty: none
};

/// A sweep file, read and checked.
struct SweepFile {
  std::string path, text;
  Location where;    ///< of its first key
  std::string name;  ///< of the sweep in its store
  std::string workload;
  std::string topology = "default";
  std::vector<std::string> plugins;
  std::vector<Setting> base;  ///< `set` and `options`
  std::vector<Axis> axes;
  Method method = Method::grid;
  std::size_t samples = 0;  ///< of the sampling methods
  std::uint64_t seed = 1;   ///< of the sampling, not of the data
  std::size_t run_cap = 0;  ///< 0: none
  std::vector<Derived> derived;
  std::vector<Constraint> constraints;
  std::vector<Objective> objectives;
  Limits limits;
  std::optional<ConfigNode> search;  ///< the top-level key of that name, for `kernbench search`

  /// Files that it is read from and names: itself, plug-ins, machines with all that they are read from, and files whose
  /// names are values of options.
  std::vector<std::string> inputs() const;
  nlohmann::ordered_json axes_json() const;
  nlohmann::ordered_json objectives_json() const;
};

/// Who reads the file: a sweep wants a method that fits the axes, a search only axes.
enum class Use : std::uint8_t { sweep, search };

/// Reads and checks a file: every name against the schema and the workload's options, every value, every formula.
/// Throws ConfigError with every problem found, each at its place; OutputError.
SweepFile load_sweep(const std::string& path, Use use = Use::sweep);
/// The same for a text; `path` stands for the file in messages and for paths in it.
SweepFile read_sweep(const std::string& text, const std::string& path, Use use = Use::sweep);

}  // namespace kernbench::sweep
