#include "sc_main/workloads/placement_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>

#include "ccl/import/import.h"
#include "runtime/placement_file.h"
#include "tlm/config/enum_names.h"
#include "tlm/config/nearest.h"
#include "tlm/config/refusals.h"

namespace kernbench {
namespace {

int parse_count(const std::string& option, const std::string& key, const std::string& text) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(text) == 0) {
    throw std::invalid_argument(fmt::format("{} {} is {}; give a number of at least 1", option, key, quote(text)));
  }
  return std::stoi(text);
}

bool names_a_file(const std::string& text) {
  const auto ends = [&](const std::string& end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  return text.find('=') == std::string::npos && (ends(".yaml") || ends(".yml"));
}

/// Takes one KEY=VALUE. Throws std::invalid_argument.
void read_item(const std::string& option, const std::string& item, std::set<std::string>& given, DPPolicy& policy) {
  const std::size_t equals = item.find('=');
  const std::string key = item.substr(0, equals), value = equals == std::string::npos ? "" : item.substr(equals + 1);
  if (!given.insert(key).second) throw std::invalid_argument(fmt::format("{} gives {} twice", option, quote(key)));
  if (key == "cube") {
    policy = policy.cube(parse_name<CubeSplit>(option + " cube", value, 3));
  } else if (key == "pe") {
    policy = policy.pe(parse_name<PeSplit>(option + " pe", value, 5));
  } else if (key == "cubes") {
    policy = policy.cubes(parse_count(option, key, value));
  } else if (key == "pes") {
    policy = policy.pes(parse_count(option, key, value));
  } else if (const std::string instead = forbidden_placement_key(key); !instead.empty()) {
    throw std::invalid_argument(fmt::format("{} has no key {}: {}", option, quote(key), instead));
  } else {
    throw std::invalid_argument(fmt::format("{} has no key {}; {}", option, quote(key),
                                            suggest(key, {"cube", "pe", "cubes", "pes"}, "valid keys")));
  }
}

bool tiled(PeSplit split) { return split == PeSplit::tiled_column_major || split == PeSplit::tiled_row_major; }

}  // namespace

DPPolicy parse_placement(const std::string& option, const std::string& text) {
  if (names_a_file(text)) return load_dp_policy(text);
  DPPolicy policy;
  std::set<std::string> given;
  Refusals refusals;
  for (const std::string& item : split(text, ',')) {
    refusals.from([&] { read_item(option, item, given, policy); });
  }
  refusals.throw_if_any();
  return policy;
}

std::vector<std::string> named_files(const std::vector<std::string>& placements,
                                     const std::vector<std::string>& algorithms) {
  std::vector<std::string> files;
  std::copy_if(placements.begin(), placements.end(), std::back_inserter(files), names_a_file);
  std::copy_if(algorithms.begin(), algorithms.end(), std::back_inserter(files), ccl::is_schedule_file);
  return files;
}

Shape shape_for(const DPPolicy& policy, std::int64_t count, int row_multiple) {
  const bool rows = policy.cube() == CubeSplit::row_wise || policy.pe() == PeSplit::row_wise;
  const bool columns = policy.cube() == CubeSplit::column_wise || policy.pe() == PeSplit::column_wise;
  if (!tiled(policy.pe())) {
    if (!rows) return {1, count};
    if (!columns) return {count, 1};
  }
  // Rows for the units that split them, as far as the count divides.
  std::int64_t best = 1;
  for (std::int64_t r = 1; r <= row_multiple; ++r) {
    if (count % r == 0) best = r;
  }
  return {best, count / best};
}

}  // namespace kernbench
