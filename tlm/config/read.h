#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tlm/config/config_node.h"
#include "tlm/config/units.h"

/// Typed readers of one value. Each reports what is wrong to `problems` and then returns nothing. `what` names the
/// value for the message: its dotted path, "cube.noc.rows".
namespace kernbench {

struct IntegerRange {
  std::uint64_t low = 0, high = ~std::uint64_t{0};
  bool power_of_two = false;
};

/// A decimal integer without quotes; "010" is an error, since YAML versions disagree on it.
std::optional<std::uint64_t> read_integer(const ConfigNode& node, const std::string& what, const IntegerRange& range,
                                          Problems& problems);
std::optional<std::uint64_t> read_quantity(const ConfigNode& node, const std::string& what, Dimension dimension,
                                           const IntegerRange& range, Problems& problems);
/// An exact ratio in lowest terms, "236/256" or "0.98" or "1", above 0 and at most 1.
struct Ratio {
  std::uint64_t parts = 1, whole = 1;
};
/// A decimal, or either part of a fraction, has at most so many digits (of a decimal: behind the point).
inline constexpr std::size_t kRatioDigits = 9;
std::optional<Ratio> read_ratio(const ConfigNode& node, const std::string& what, Problems& problems);
/// true, false (and nothing else: yes, on, 1 are errors).
std::optional<bool> read_bool(const ConfigNode& node, const std::string& what, Problems& problems);
/// Index into `names`.
std::optional<std::size_t> read_name(const ConfigNode& node, const std::string& what,
                                     const std::vector<std::string>& names, Problems& problems);
std::optional<std::string> read_text(const ConfigNode& node, const std::string& what, Problems& problems);

/// Reports `node` if it is no map / no list.
bool expect_map(const ConfigNode& node, const std::string& what, const std::vector<std::string>& keys,
                Problems& problems);
bool expect_list(const ConfigNode& node, const std::string& what, const std::string& of, Problems& problems);
/// Reports every key of a map that is none of `valid`. `what` empty: the top level of the file.
void check_keys(const ConfigNode& map, const std::string& what, const std::vector<std::string>& valid,
                Problems& problems);
/// "cube.noc" + "rows"
std::string dotted(const std::string& path, const std::string& key);

/// The range in words: "an integer from 1 to 64", "a size from 1 KiB to 8 GiB, such as '16 MiB'".
std::string describe(const IntegerRange& range);
std::string describe(Dimension dimension, const IntegerRange& range);

}  // namespace kernbench
