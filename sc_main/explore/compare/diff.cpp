#include "sc_main/explore/compare/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sc_main/explore/compare/run_time.h"
#include "tlm/config/json_text.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;
using Flat = std::vector<std::pair<std::string, Json>>;

/// Leaves by dotted key. Entries of `overrides` go by what they match.
void flatten(const Json& json, const std::string& path, Flat& flat) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [key, value] : json.items()) flatten(value, path.empty() ? key : path + "." + key, flat);
  } else if (json.is_array() && path == "overrides") {
    for (const Json& entry : json) {
      std::string name = entry.value("match", std::string());
      if (const auto link = entry.find("link"); link != entry.end()) name = "link " + json_text(*link);
      Json rest = entry;
      for (const char* key : {"match", "link"}) rest.erase(key);
      flatten(rest.empty() ? Json("broken") : rest, fmt::format("overrides[{}]", name), flat);
    }
  } else {
    flat.emplace_back(path, json);
  }
}

Flat flattened(const Json& json) {
  Flat flat;
  flatten(json, "", flat);
  return flat;
}

/// Values that differ, in the order of `a`, then what only `b` has; null: there is none.
Json differences(const Flat& a, const Flat& b) {
  std::map<std::string, Json> others(b.begin(), b.end());
  Json list = Json::array();
  std::set<std::string> seen;
  for (const auto& [key, value] : a) {
    seen.insert(key);
    const auto other = others.find(key);
    if (other != others.end() && other->second == value) continue;
    list.push_back({{"key", key}, {"a", value}, {"b", other == others.end() ? Json() : other->second}});
  }
  for (const auto& [key, value] : b) {
    if (seen.count(key) == 0) list.push_back({{"key", key}, {"a", nullptr}, {"b", value}});
  }
  return list;
}

Json ratio_of(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number() || a.get<double>() == 0) return nullptr;
  return b.get<double>() / a.get<double>();
}

/// Rows by what they measure; equals by their order.
template <class Name>
std::vector<std::pair<std::string, const Json*>> named(const Json& rows, const Name& name_of) {
  std::vector<std::pair<std::string, const Json*>> out;
  std::map<std::string, int> times;
  for (const Json& row : rows) {
    std::string name = name_of(row);
    const int time = ++times[name];
    out.emplace_back(time == 1 ? name : fmt::format("{} #{}", name, time), &row);
  }
  return out;
}

/// Calls `both(name, a, b)` for rows of one name, and returns the names that only one side has.
template <class Name, class Both>
std::pair<Json, Json> matched(const Json& a, const Json& b, const Name& name_of, const Both& both) {
  const auto rows = named(a, name_of), others = named(b, name_of);
  const std::map<std::string, const Json*> by_name(others.begin(), others.end());
  std::set<std::string> found;
  Json only_a = Json::array(), only_b = Json::array();
  for (const auto& [name, row] : rows) {
    const auto other = by_name.find(name);
    if (other == by_name.end()) {
      only_a.push_back(name);
    } else {
      found.insert(name);
      both(name, *row, *other->second);
    }
  }
  for (const auto& [name, row] : others) {
    if (found.count(name) == 0) only_b.push_back(name);
  }
  return {only_a, only_b};
}

Json member(const Json& json, const char* key, const Json& otherwise) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? otherwise : *found;
}

/// Values of a row that differ, with b / a for numbers; what the row holds lists of is left to others.
Json row_values(const Json& a, const Json& b) {
  const auto scalars = [](const Json& row) {
    Flat flat = flattened(row), plain;
    for (auto& [key, value] : flat) {
      if (!value.is_array() && !value.is_object() && key.rfind("explain", 0) != 0) plain.emplace_back(key, value);
    }
    return plain;
  };
  Json list = differences(scalars(a), scalars(b));
  for (Json& value : list) value["ratio"] = ratio_of(value["a"], value["b"]);
  return list;
}

Json results_of(const Json& a, const Json& b) {
  Json rows = Json::array();
  const auto [only_a, only_b] =
      matched(a, b, row_name, [&](const std::string& name, const Json& row, const Json& other) {
        const char* key = time_key(row);
        Json entry{{"row", name}, {"time_key", nullptr}, {"a_ns", nullptr}, {"b_ns", nullptr}, {"ratio", nullptr}};
        if (key != nullptr && other.contains(key)) {
          entry["time_key"] = key;
          entry["a_ns"] = row[key];
          entry["b_ns"] = other[key];
          entry["ratio"] = ratio_of(row[key], other[key]);
        }
        entry["values"] = row_values(row, other);
        rows.push_back(std::move(entry));
      });
  return {{"rows", std::move(rows)}, {"only_a", only_a}, {"only_b", only_b}};
}

/// A layer's kernels, the one first whose time has changed most.
Json kernels_of(const Json& a, const Json& b) {
  Json list = Json::array();
  const auto name_of = [](const Json& kernel) { return kernel.value("name", std::string()); };
  const auto entry_of = [](const std::string& name, const Json& one, const Json& other) {
    const Json none;
    const auto said = [](const Json& k, const char* key) { return k.is_object() ? member(k, key, nullptr) : Json(); };
    const auto ns = [&](const Json& k) { return said(k, "kernel_ns"); };
    const double change =
        (ns(other).is_number() ? ns(other).get<double>() : 0) - (ns(one).is_number() ? ns(one).get<double>() : 0);
    return Json{{"kernel", name},
                {"a_ns", ns(one)},
                {"b_ns", ns(other)},
                {"change_ns", change},
                {"ratio", ratio_of(ns(one), ns(other))},
                {"a_binds", said(one, "bound_binds")},
                {"b_binds", said(other, "bound_binds")},
                {"a_mapping", said(one, "mapping")},
                {"b_mapping", said(other, "mapping")}};
  };
  const auto [only_a, only_b] = matched(
      a, b, name_of,
      [&](const std::string& name, const Json& one, const Json& other) { list.push_back(entry_of(name, one, other)); });
  for (const auto& [name, kernel] : named(a, name_of)) {
    if (std::find(only_a.begin(), only_a.end(), Json(name)) != only_a.end())
      list.push_back(entry_of(name, *kernel, nullptr));
  }
  for (const auto& [name, kernel] : named(b, name_of)) {
    if (std::find(only_b.begin(), only_b.end(), Json(name)) != only_b.end())
      list.push_back(entry_of(name, nullptr, *kernel));
  }
  std::stable_sort(list.begin(), list.end(), [](const Json& x, const Json& y) {
    return std::abs(x["change_ns"].get<double>()) > std::abs(y["change_ns"].get<double>());
  });
  return list;
}

/// Layers of tensor-parallel runs: where the difference of their time lies.
Json layers_of(const Json& a, const Json& b) {
  Json layers = Json::array();
  matched(a, b, row_name, [&](const std::string& name, const Json& row, const Json& other) {
    if (!row.contains("layer") || !other.contains("layer")) return;
    Json parts = Json::array();
    for (const char* key :
         {"launch_ns", "collective_ns", "waiting_ns", "hidden_ns", "mapping_ns", "loading_ns", "queues_ns"}) {
      if (!row.contains(key) || !other.contains(key)) continue;
      parts.push_back({{"part", key},
                       {"a_ns", row[key]},
                       {"b_ns", other[key]},
                       {"change_ns", other[key].get<double>() - row[key].get<double>()}});
    }
    const char* key = time_key(row);
    layers.push_back(
        {{"layer", name},
         {"a_ns", row[key]},
         {"b_ns", other[key]},
         {"ratio", ratio_of(row[key], other[key])},
         {"parts", std::move(parts)},
         {"kernels", kernels_of(member(row, "kernels", Json::array()), member(other, "kernels", Json::array()))}});
  });
  return layers;
}

Json energy_of(const Json& a, const Json& b) {
  Json list = Json::array();
  const auto name_of = [](const Json& row) { return row.value("component", std::string()); };
  matched(a, b, name_of, [&](const std::string& name, const Json& one, const Json& other) {
    const auto sum = [](const Json& row) { return row.value("dynamic_pj", 0.0) + row.value("static_pj", 0.0); };
    if (sum(one) == sum(other)) return;
    list.push_back(
        {{"component", name}, {"a_pj", sum(one)}, {"b_pj", sum(other)}, {"ratio", ratio_of(sum(one), sum(other))}});
  });
  return list;
}

/// Resources of both files' statistics, the one first whose busy time has changed most.
Json resources_of(const Json& a, const Json& b) {
  constexpr std::size_t kMostResources = 500;
  if (!a.contains("statistics") || !b.contains("statistics")) return nullptr;
  Json list = Json::array();
  const auto name_of = [](const Json& resource) { return resource.value("name", std::string()); };
  const auto add = [&](const std::string& name, const Json& one, const Json& other) {
    const auto number = [](const Json& r, const char* key) { return r.is_object() ? r.value(key, 0.0) : 0.0; };
    const auto waits = [](const Json& r) {
      double sum = 0;
      for (const Json& ps : r.is_object() ? r.value("waiting_ps", Json::object()) : Json::object())
        sum += ps.get<double>();
      return sum;
    };
    const double change = number(other, "busy_ps") - number(one, "busy_ps"), waiting = waits(other) - waits(one);
    if (change == 0 && waiting == 0 && number(one, "bytes") == number(other, "bytes")) return;
    list.push_back({{"name", name},
                    {"kind", (one.is_object() ? one : other)["kind"]},
                    {"a_busy_ps", number(one, "busy_ps")},
                    {"b_busy_ps", number(other, "busy_ps")},
                    {"change_ps", change},
                    {"ratio", ratio_of(number(one, "busy_ps"), number(other, "busy_ps"))},
                    {"a_utilisation", number(one, "utilisation")},
                    {"b_utilisation", number(other, "utilisation")},
                    {"a_waiting_ps", waits(one)},
                    {"b_waiting_ps", waits(other)},
                    {"a_bytes", number(one, "bytes")},
                    {"b_bytes", number(other, "bytes")}});
  };
  const Json &of_a = a["statistics"]["resources"], &of_b = b["statistics"]["resources"];
  const auto [only_a, only_b] = matched(of_a, of_b, name_of, add);
  const std::set<std::string> gone(only_a.begin(), only_a.end()), fresh(only_b.begin(), only_b.end());
  for (const Json& resource : of_a) {
    if (gone.count(name_of(resource)) > 0) add(name_of(resource), resource, nullptr);
  }
  for (const Json& resource : of_b) {
    if (fresh.count(name_of(resource)) > 0) add(name_of(resource), nullptr, resource);
  }
  std::stable_sort(list.begin(), list.end(), [](const Json& x, const Json& y) {
    return std::abs(x["change_ps"].get<double>()) > std::abs(y["change_ps"].get<double>());
  });
  if (list.size() > kMostResources) list.erase(list.begin() + kMostResources, list.end());
  return list;
}

Json side(const Json& run) {
  Json out;
  for (const char* key : {"version", "command", "config_hash", "workload", "fidelity", "data", "seed", "sim_time_ps",
                          "energy_pj", "machine"})
    out[key] = run.value(key, Json());
  return out;
}

/// Settings beside the machine.
Json settings_of(const Json& a, const Json& b) {
  Flat of_a, of_b;
  const auto add = [](const Json& run, Flat& flat) {
    for (const char* key : {"version", "workload", "fidelity", "data", "seed", "ccl", "tuned", "files"})
      flat.emplace_back(key, run.value(key, Json()));
    std::string words;
    for (const Json& word : run.value("command", Json::array()))
      words += (words.empty() ? "" : " ") + word.get<std::string>();
    flat.emplace_back("command", words);
  };
  add(a, of_a);
  add(b, of_b);
  Json list = differences(of_a, of_b);
  for (Json& entry : list) {  // texts and hashes: that they differ, not how
    const std::string key = entry["key"];
    if (key != "ccl" && key != "tuned" && key != "files") continue;
    for (const char* which : {"a", "b"}) entry[which] = entry[which].empty() ? "none" : "another one";
  }
  return list;
}
}  // namespace

Json diff(const Json& a, const Json& b) {
  const RunTime time_a = time_of(a, TimeOf::rows), time_b = time_of(b, TimeOf::rows);
  Json out{{"a", side(a)}, {"b", side(b)}};
  out["time"] = {{"a_ns", time_a.ns},
                 {"b_ns", time_b.ns},
                 {"ratio", ratio_of(time_a.ns, time_b.ns)},
                 {"a_of", time_a.of},
                 {"b_of", time_b.of}};
  out["settings"] = settings_of(a, b);
  out["config"] =
      differences(flattened(a.value("config", Json::object())), flattened(b.value("config", Json::object())));
  out["results"] = results_of(a.value("results", Json::array()), b.value("results", Json::array()));
  out["layers"] = layers_of(a.value("results", Json::array()), b.value("results", Json::array()));
  if (Json resources = resources_of(a, b); !resources.is_null()) out["resources"] = std::move(resources);
  out["energy"] = energy_of(a.value("energy", Json::array()), b.value("energy", Json::array()));
  return out;
}

}  // namespace kernbench::compare
