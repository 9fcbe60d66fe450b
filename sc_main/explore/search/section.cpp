#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "sc_main/explore/search/study.h"
#include "tlm/config/read.h"

namespace kernbench::search {
namespace {

std::optional<double> read_number(const ConfigNode& node, const std::string& what, Problems& problems) {
  if (node.is_scalar() && !node.quoted) {
    char* end = nullptr;
    const double value = std::strtod(node.text.c_str(), &end);
    if (!node.text.empty() && *end == '\0' && std::isfinite(value)) return value;
  }
  problems.add(node.where, what + (node.is_scalar() ? " is '" + node.text + "'" : " is no number"),
               "give a number in the objective's unit");
  return std::nullopt;
}

std::optional<Costs> read_reference(const ConfigNode& node, const std::vector<sweep::Objective>& objectives,
                                    Problems& problems) {
  const std::string what = "search.reference";
  std::vector<std::string> names;
  names.reserve(objectives.size());
  for (const sweep::Objective& objective : objectives) names.push_back(objective.name);
  if (!expect_map(node, what, names, problems)) return std::nullopt;
  check_keys(node, what, names, problems);
  std::vector<double> figures;
  for (const std::string& name : names) {
    const ConfigNode* value = node.find(name);
    if (value == nullptr) {
      problems.add(node.where, fmt::format("missing key '{}' in '{}'", name, what),
                   "give one number for each objective");
      continue;
    }
    if (const auto number = read_number(*value, dotted(what, name), problems)) figures.push_back(*number);
  }
  if (figures.size() != objectives.size()) return std::nullopt;
  return to_costs(objectives, figures);
}
}  // namespace

Section read_section(const sweep::SweepFile& file) {
  Section section;
  Problems problems;
  if (file.objectives.size() < 2) {
    const Location where = file.objectives.empty() ? file.where : file.objectives.front().where;
    problems.add(where, "a search needs at least two objectives", "add another below 'objectives'");
  }
  const std::vector<std::string> keys{"algorithm", "points", "population", "generations", "seed", "reference"};
  if (file.search && !file.search->is_null() && expect_map(*file.search, "search", keys, problems)) {
    const ConfigNode& map = *file.search;
    check_keys(map, "search", keys, problems);
    const auto integer = [&](const char* key, std::uint64_t low) -> std::optional<std::uint64_t> {
      const ConfigNode* node = map.find(key);
      return node == nullptr ? std::nullopt
                             : read_integer(*node, dotted("search", key), {low, 1'000'000'000, false}, problems);
    };
    if (const ConfigNode* node = map.find("algorithm")) {
      if (const auto index = read_name(*node, "search.algorithm", algorithms(), problems))
        section.algorithm = algorithms()[*index];
    }
    section.points = integer("points", 1);
    section.population = integer("population", 8);
    if (section.population && *section.population % 4 != 0) {
      problems.add(map.find("population")->where, "search.population is '" + std::to_string(*section.population) + "'",
                   "give a multiple of 4");
    }
    if (const auto generations = integer("generations", 1)) section.generations = static_cast<unsigned>(*generations);
    section.seed = integer("seed", 0);
    if (const ConfigNode* node = map.find("reference"))
      section.reference = read_reference(*node, file.objectives, problems);
  }
  problems.throw_if_any();
  return section;
}

}  // namespace kernbench::search
