#include "sc_main/workloads/chakra/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <set>

#include "sc_main/workloads/chakra/trace.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::chakra {

using Json = nlohmann::json;

namespace {
constexpr const char* kGroups = "expected as in {\"1\": [0, 1], \"2\": [2, 3]}";

/// Line and column of a byte, counted from 1; the file alone if that is not known, as of numbers that are too large.
Location place_of(const std::string& file, const std::string& text, std::size_t byte) {
  if (byte == 0) return {file, 0, 0};
  const std::string before = text.substr(0, byte - 1);
  const auto lines = static_cast<unsigned>(std::count(before.begin(), before.end(), '\n'));
  return {file, lines + 1, static_cast<unsigned>(before.size() - (before.rfind('\n') + 1)) + 1};
}
}  // namespace

std::map<std::string, std::vector<int>> read_groups(const std::string& file) {
  const std::string text = contents_of(file);
  Problems problems;
  const auto wrong = [&](const std::string& what) { problems.add({file, 0, 0}, what, kGroups); };
  std::set<std::string> names;
  const auto note = [&](int depth, Json::parse_event_t event, const Json& key) {
    if (depth == 1 && event == Json::parse_event_t::key && !names.insert(key.get<std::string>()).second)
      wrong(fmt::format("group {} is given twice", quote(key.get<std::string>())));
    return true;
  };
  Json json;
  try {
    json = parse_json(text);
    json = Json::parse(text, note);
  } catch (const JsonError& error) {
    throw ConfigError(place_of(file, text, error.byte), error.too_deep ? error.what() : "not valid JSON", kGroups);
  }
  if (!json.is_object()) throw ConfigError({file, 0, 0}, "no JSON object", kGroups);
  std::map<std::string, std::vector<int>> groups;
  for (const auto& [name, ranks] : json.items()) {
    if (!ranks.is_array() || ranks.empty()) {
      wrong(fmt::format("group {} is no list of ranks", quote(name)));
      continue;
    }
    for (const Json& rank : ranks) {
      if (!rank.is_number_integer() || rank < 0 || rank > INT_MAX) {
        wrong(fmt::format("group {} holds {}", quote(name), quote(json_text(rank))));
      } else {
        groups[name].push_back(rank.get<int>());
      }
    }
  }
  problems.throw_if_any();
  return groups;
}

}  // namespace kernbench::chakra
