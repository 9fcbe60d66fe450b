#include <fmt/format.h>

#include <algorithm>

#include "sc_main/explore/compare/diff.h"
#include "tlm/config/json_text.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostKernels = 5;  ///< of a layer
constexpr std::size_t kMostShown = 40;   ///< of any other list

std::string shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return json_text(value);
}
std::string times(const Json& ratio) { return ratio.is_number() ? fmt::format("x {:.3f}", ratio.get<double>()) : "-"; }
std::string us(const Json& ns) { return ns.is_number() ? fmt::format("{:.3f}", ns.get<double>() / 1e3) : "-"; }

std::string rest(std::size_t all, const char* what) {
  return all > kMostShown ? fmt::format("# ... and {} more {}\n", all - kMostShown, what) : "";
}

std::string pairs_text(const Json& list, const char* what) {
  if (list.empty()) return fmt::format("# {}: the same\n", what);
  std::size_t width = 4;
  for (const Json& one : list) width = std::max(width, one["key"].get<std::string>().size());
  std::string text = fmt::format("# {}: {} differ\n", what, list.size());
  for (std::size_t i = 0; i < std::min(list.size(), kMostShown); ++i)
    text += fmt::format("  {:<{}}  {} -> {}\n", list[i]["key"].get<std::string>(), width, shown(list[i]["a"]),
                        shown(list[i]["b"]));
  return text + rest(list.size(), what);
}

std::string rows_text(const Json& results) {
  std::size_t width = 3;
  for (const Json& row : results["rows"]) width = std::max(width, row["row"].get<std::string>().size());
  std::string text =
      fmt::format("# {:<{}}  {:>14}  {:>14}  {:>9}  other values\n", "row", width, "A (us)", "B (us)", "B / A");
  for (const Json& row : results["rows"]) {
    std::string others;
    std::size_t count = 0;
    for (const Json& value : row["values"]) {
      if (value["key"] == row["time_key"] || ++count > 3) continue;
      others += fmt::format("{}{} {} -> {}", others.empty() ? "" : "; ", value["key"].get<std::string>(),
                            shown(value["a"]), shown(value["b"]));
    }
    if (count > 3) others += fmt::format("; {} more", count - 3);
    text += fmt::format("  {:<{}}  {:>14}  {:>14}  {:>9}  {}\n", row["row"].get<std::string>(), width, us(row["a_ns"]),
                        us(row["b_ns"]), times(row["ratio"]), others);
  }
  for (const char* side : {"only_a", "only_b"}) {
    for (const Json& name : results[side])
      text += fmt::format("# only in {}: {}\n", std::string(side) == "only_a" ? "A" : "B", name.get<std::string>());
  }
  return text;
}

std::string layers_text(const Json& layers) {
  std::string text;
  for (const Json& layer : layers) {
    if (layer["a_ns"] == layer["b_ns"]) continue;
    text += fmt::format("# {}: {} -> {} us\n", layer["layer"].get<std::string>(), us(layer["a_ns"]), us(layer["b_ns"]));
    for (const Json& part : layer["parts"]) {
      if (part["change_ns"].get<double>() != 0)
        text += fmt::format("  {:<40}  {:>14}  {:>14}  {:>+14.3f}\n", part["part"].get<std::string>(), us(part["a_ns"]),
                            us(part["b_ns"]), part["change_ns"].get<double>() / 1e3);
    }
    std::size_t kernels = 0;
    for (const Json& kernel : layer["kernels"]) {
      if (kernel["change_ns"].get<double>() == 0 || ++kernels > kMostKernels) continue;
      text += fmt::format("  {:<40}  {:>14}  {:>14}  {:>+14.3f}  {}{}\n",
                          "kernel " + kernel["kernel"].get<std::string>(), us(kernel["a_ns"]), us(kernel["b_ns"]),
                          kernel["change_ns"].get<double>() / 1e3, shown(kernel["a_binds"]),
                          kernel["a_binds"] == kernel["b_binds"] ? "" : " -> " + shown(kernel["b_binds"]));
      if (kernel["a_mapping"].is_string() && kernel["b_mapping"].is_string() &&
          kernel["a_mapping"] != kernel["b_mapping"])
        text += fmt::format("    other mapping: {} -> {}\n", shown(kernel["a_mapping"]), shown(kernel["b_mapping"]));
    }
  }
  return text;
}
std::string resources_text(const Json& resources) {
  constexpr std::size_t kMostResources = 15;
  std::string text = fmt::format("# resources: {} differ, the largest change of busy time first\n", resources.size());
  for (std::size_t i = 0; i < std::min(resources.size(), kMostResources); ++i) {
    const Json& one = resources[i];
    text += fmt::format("  {:<36}  {:>11}  busy {:>5.1f}% -> {:>5.1f}%  waiting (us) {} -> {}\n",
                        one["name"].get<std::string>(), one["kind"].get<std::string>(),
                        100 * one["a_utilisation"].get<double>(), 100 * one["b_utilisation"].get<double>(),
                        us(one["a_waiting_ps"].get<double>() / 1e3), us(one["b_waiting_ps"].get<double>() / 1e3));
  }
  return text;
}
}  // namespace

std::string diff_text(const Json& diff, const std::string& a, const std::string& b) {
  std::string text = fmt::format("# A {}\n# B {}\n", a, b);
  const Json& time = diff["time"];
  const std::string a_of = time["a_of"], b_of = time["b_of"];
  text += fmt::format("# {}: {} -> {} us, {}{}\n", a_of, us(time["a_ns"]), us(time["b_ns"]), times(time["ratio"]),
                      a_of == b_of ? std::string() : "; B is " + b_of);
  text += pairs_text(diff["settings"], "settings");
  text += pairs_text(diff["config"], "configuration");
  text += rows_text(diff["results"]);
  text += layers_text(diff["layers"]);
  if (diff.contains("resources")) text += resources_text(diff["resources"]);
  for (const Json& one : diff["energy"])
    text += fmt::format("# energy of {}: {:.4g} -> {:.4g} uJ, {}\n", one["component"].get<std::string>(),
                        one["a_pj"].get<double>() / 1e6, one["b_pj"].get<double>() / 1e6, times(one["ratio"]));
  return text;
}

}  // namespace kernbench::compare
