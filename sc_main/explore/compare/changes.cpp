#include "sc_main/explore/compare/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tlm/config/config_node.h"
#include "tlm/config/json_text.h"
#include "tlm/config/read.h"
#include "topology/spec/schema.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;
using topology::Better;
using topology::Field;
using topology::FieldKind;
using topology::Section;

/// Nothing: it stands at the end of its range, or 0 says that there is none.
std::optional<std::uint64_t> twice_as_good(const Field& field, std::uint64_t value) {
  if (value == 0) return std::nullopt;
  if (field.better == Better::smaller) {
    const std::uint64_t half = std::max(value / 2, field.range.low);
    return half < value ? std::optional(half) : std::nullopt;
  }
  if (value > field.range.high / 2) return std::nullopt;
  return 2 * value;
}

/// The value of `json` as a better one; null if there is none.
Json better_value(const Field& field, const std::string& key, const Json& json) {
  Problems problems;
  const ConfigNode node = parse_config_value(json.is_string() ? json.get<std::string>() : json_text(json), {key, 0, 0});
  const topology::FieldValue value = topology::read_value(field, node, key, problems);
  if (!problems.empty() || !std::holds_alternative<std::uint64_t>(value)) return nullptr;
  const auto better = twice_as_good(field, std::get<std::uint64_t>(value));
  return better ? topology::to_json(field, topology::FieldValue(*better)) : Json();
}

/// Changes of the values of `config`, which holds what `section` says; `to` is null where there is no better one.
/// `pointer`: of `config` in the whole machine.
void collect(const Section& section, const Json& config, const std::string& path, const std::string& pointer,
             const std::string& place, std::vector<Change>& changes) {
  for (const Field& field : section.fields) {
    const auto found = config.find(field.key);
    if (found == config.end()) continue;
    const std::string key = dotted(path, field.key), at = pointer + "/" + field.key;
    if (field.kind == FieldKind::section) {
      if (found->is_object()) collect(*field.section, *found, key, at, place, changes);
      continue;
    }
    if (field.better == Better::none || found->is_null()) continue;
    changes.push_back({key, place, path, *found, better_value(field, key, *found), {at}, false, field.paces_block});
  }
}

/// "sip0.cube0, sip0.cube1, ... (16)"
std::string joined_places(const std::set<std::string>& places) {
  constexpr std::size_t kMostNamed = 3;
  std::string text;
  std::size_t named = 0;
  for (const std::string& place : places) {
    if (named++ == kMostNamed) return fmt::format("{}, ... ({})", text, places.size());
    text += (text.empty() ? "" : ", ") + place;
  }
  return text;
}

/// Overrides that give the same key the same value are one change: one reason, many places.
std::vector<Change> together(const std::vector<Change>& single) {
  std::vector<Change> all;
  std::vector<std::set<std::string>> places;
  for (const Change& change : single) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Change& other) {
      return !change.removes && other.key == change.key && other.from == change.from;
    });
    if (same == all.end()) {
      all.push_back(change);
      places.push_back({change.place});
    } else {
      same->pointers.insert(same->pointers.end(), change.pointers.begin(), change.pointers.end());
      places[static_cast<std::size_t>(same - all.begin())].insert(change.place);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i].place = joined_places(places[i]);
  return all;
}

std::vector<Change> changes_of_overrides(const Json& overrides) {
  std::vector<Change> single;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const Json& entry = overrides[i];
    const std::string pointer = fmt::format("/overrides/{}", i), match = entry.value("match", std::string());
    if (const auto link = entry.find("link"); link != entry.end() && link->is_array() && link->size() == 2) {
      const std::string ends = fmt::format("{} - {}", (*link)[0].get<std::string>(), (*link)[1].get<std::string>());
      single.push_back({"overrides.link", ends, "overrides.link", "broken", "whole", {pointer}, true, false});
    }
    if (entry.contains("cube"))
      collect(topology::cube_section(), entry["cube"], "cube", pointer + "/cube", match, single);
    if (entry.contains("pe")) collect(topology::pe_section(), entry["pe"], "pe", pointer + "/pe", match, single);
  }
  return together(single);
}
}  // namespace

namespace {
/// With those whose `to` is null.
std::vector<Change> all_changes_of(const Json& config) {
  std::vector<Change> changes;
  collect(topology::root_section(), config, "", "", "", changes);
  if (const auto overrides = config.find("overrides"); overrides != config.end() && overrides->is_array()) {
    const std::vector<Change> more = changes_of_overrides(*overrides);
    changes.insert(changes.end(), more.begin(), more.end());
  }
  return changes;
}
}  // namespace

std::vector<Change> changes_of(const Json& config) {
  std::vector<Change> changes = all_changes_of(config);
  changes.erase(
      std::remove_if(changes.begin(), changes.end(), [](const Change& change) { return change.to.is_null(); }),
      changes.end());
  return changes;
}

std::vector<std::string> keys_at_their_best(const Json& config) {
  std::vector<std::string> keys;
  for (const Change& change : all_changes_of(config)) {
    if (change.to.is_null()) keys.push_back(change.name());
  }
  return keys;
}

Json without_refresh(Json config) {
  bool refreshes = false;
  const auto stop = [&](const Json::json_pointer& at) {
    if (!config.contains(at) || config[at] == "none") return;
    config[at] = "none";
    refreshes = true;
  };
  stop(Json::json_pointer("/cube/hbm/refresh"));
  const std::size_t overrides = config.value("overrides", Json::array()).size();
  for (std::size_t i = 0; i < overrides; ++i)
    stop(Json::json_pointer(fmt::format("/overrides/{}/cube/hbm/refresh", i)));
  return refreshes ? config : Json();
}

namespace {
/// `change` into `config`; entries of `overrides` that go are added to `gone`.
void apply(const Change& change, Json& config, std::set<std::size_t, std::greater<>>& gone) {
  for (const Change& end : change.ends) apply(end, config, gone);
  for (const std::string& pointer : change.pointers) {
    if (change.removes) {
      gone.insert(std::stoul(pointer.substr(pointer.rfind('/') + 1)));
    } else {
      config[Json::json_pointer(pointer)] = change.to;
    }
  }
}
}  // namespace

Json changed(Json config, const std::vector<const Change*>& changes) {
  std::set<std::size_t, std::greater<>> gone;  // the last ones first: the places of the others stay
  for (const Change* change : changes) apply(*change, config, gone);
  for (const std::size_t entry : gone) config["overrides"].erase(entry);
  return config;
}

}  // namespace kernbench::compare
