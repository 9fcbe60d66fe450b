#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sc_main/explore/sweep/quantity_kind.h"
#include "sc_main/run/arguments.h"
#include "tlm/config/problems.h"

namespace kernbench::sweep {

/// One value of one key of the topology ("cube.noc.rows") or of one option of the run ("minbytes").
struct Setting {
  std::string name;
  std::string text;              ///< as behind --set or the option
  std::optional<double> number;  ///< in base units; nothing: a text
  bool flag = false;             ///< an option that takes no value; its text is "true" or "false"
};

/// What `kernbench run` takes for those that are options: "--name=value".
Arguments option_words(const std::vector<Setting>& settings);

/// One value of an axis.
struct AxisValue {
  std::string label;             ///< for people: "64 GB/s"
  std::optional<double> number;  ///< in base units, where the axis is numeric
  std::vector<Setting> settings;
  Location where = {};  ///< in the sweep file
};

/// What is varied: a list of values, or a range that is sampled anywhere.
class Axis {
 public:
  std::string name;  ///< a key or an option; of a list of maps: a name of its own
  Location where;
  std::vector<std::string> keys;  ///< keys and options that it sets
  std::vector<AxisValue> values;  ///< empty: any value from `from` to `to`
  bool numeric = false;
  bool log = false;  ///< sampled, and best drawn, by the logarithm
  std::string unit;  ///< of numbers: "B", "B/s", "ps", ...; may be empty
  double from = 0, to = 0;
  ValueKind kind;  ///< of a range's values

  /// Number of values; 0: a continuous range.
  std::size_t size() const { return values.size(); }
  /// The value at a place of the unit interval: index floor(u * size) of a list. REQUIRES: 0 <= u <= 1.
  AxisValue at(double u) const;
  nlohmann::ordered_json json() const;  ///< as in the store
};

/// One value per axis, in the order of the file.
using Coordinates = std::vector<AxisValue>;
/// {"axis": {"label": ..., "number": ...}, ...}
nlohmann::ordered_json to_json(const std::vector<Axis>& axes, const Coordinates& coordinates);

}  // namespace kernbench::sweep
