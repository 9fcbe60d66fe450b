#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sc_main/explore/compare/what_if.h"
#include "tlm/config/json_text.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRows = 25;  ///< of a table: the rest saves less
constexpr int kBarWidth = 30;          ///< characters of the longest bar

std::string value_text(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

std::string bar(double saved, double most) {
  const int length = most > 0 ? static_cast<int>(std::lround(std::abs(saved) / most * kBarWidth)) : 0;
  return std::string(static_cast<std::size_t>(length), saved < 0 ? '-' : '#');
}

double saved_ns(const Json& entry) { return entry["saved_ns"].is_number() ? entry["saved_ns"].get<double>() : 0; }

double most_of(const Json& entries) {
  double most = 0;
  for (const Json& entry : entries) most = std::max(most, std::abs(saved_ns(entry)));
  return most;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string name_of(const Json& change) {
  const std::string place = change["place"].get<std::string>();
  return change["key"].get<std::string>() + (place.empty() ? "" : " of " + place);
}

/// What is not the machine's doing alone.
std::string other_way(const Json& change) {
  if (change.contains("algorithms")) return "  other algorithm: " + value_text(change["algorithms"][0]);
  if (!change.contains("mappings")) return {};
  // "mlp.down passed:32x32x512,... -> ring:32x32x512,...": the one that is another way, if there is one.
  const auto kinds = [](const Json& entry) {
    const std::string text = entry.get<std::string>();
    const std::size_t arrow = text.find(" -> "), name = text.rfind(' ', arrow - 1);
    const auto kind = [&](std::size_t from) { return text.substr(from, text.find(':', from) - from); };
    return std::array<std::string, 3>{text.substr(0, name), kind(name + 1), kind(arrow + 4)};
  };
  const std::size_t more = change["mappings"].size() - 1;
  const std::string others = more > 0 ? fmt::format(" and {} more", more) : "";
  for (const Json& entry : change["mappings"]) {
    const auto [name, from, to] = kinds(entry);
    if (from != to) return fmt::format("  other mapping: {} {} -> {}{}", name, from, to, others);
  }
  return fmt::format("  other tiles: {}{}", kinds(change["mappings"][0])[0], others);
}

/// What refreshes may make of a saving by where they fall.
double chance_ns(const Json& what_if) {
  const auto refreshes = what_if.find("refreshes");
  return refreshes != what_if.end() && refreshes->is_object() ? (*refreshes)["chance_ns"].get<double>() : 0;
}

/// "a, b, c"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Names that did not run, and why: one line each.
std::string not_run(const Json& entry, const std::string& name) {
  const std::string state = entry["state"], why = first_line(entry.value("error", std::string()));
  if (state == "refused") return fmt::format("# refused, no legal machine: {}: {}\n", name, why);
  if (state != "failed") return {};
  return fmt::format("# failed: {} (exit code {}): {}\n", name, entry["exit_code"].get<int>(), why);
}

std::string changes_table(const Json& changes, double chance) {
  std::size_t width = 4, values = 14, rows = 0, nothing = 0;
  for (const Json& change : changes) {
    if (change["state"] == "ran" && saved_ns(change) != 0 && rows < kMostRows) {
      width = std::max(width, name_of(change).size());
      values = std::max({values, value_text(change["from"]).size(), value_text(change["to"]).size()});
      ++rows;
    }
    nothing += change["state"] == "ran" && saved_ns(change) == 0 ? 1 : 0;
  }
  std::string text = fmt::format("# {:>4}  {:<{}}  {:>{}}  {:>{}}  {:>13}  {:>13}  {:>6}\n", "rank", "key", width,
                                 "from", values, "to", values, "time (us)", "saved (us)", "saved");
  const double most = most_of(changes);
  std::size_t shown = 0;
  bool doubtful = false;
  for (const Json& change : changes) {
    if (change["state"] != "ran" || saved_ns(change) == 0 || shown == kMostRows) continue;
    ++shown;
    const bool may_be_chance = std::abs(saved_ns(change)) < chance;
    doubtful |= may_be_chance;
    text += fmt::format("  {:>4}  {:<{}}  {:>{}}  {:>{}}  {:>13.3f}  {:>13.3f}  {:>5.1f}%{} {}{}\n",
                        change["rank"].get<std::size_t>(), name_of(change), width, value_text(change["from"]), values,
                        value_text(change["to"]), values, change["time_ns"].get<double>() / 1e3, saved_ns(change) / 1e3,
                        100 * change["saved_fraction"].get<double>(), may_be_chance ? "?" : " ",
                        bar(saved_ns(change), most), other_way(change));
  }
  if (shown == 0) text += "  no key changes the time\n";
  const auto behind = [](const Json& a, const Json& b) { return saved_ns(a) < saved_ns(b); };
  if (!std::is_sorted(changes.rbegin(), changes.rend(), behind))
    text +=
        "# a clock that paces its whole block, or a value of all places, stands behind one that saves nearly as much\n";
  if (doubtful)
    text += fmt::format(
        "# ? of less than {:.3f} us: where refreshes of the memories fall may make or hide it; more iterations (-n) "
        "tell, "
        "or cube.hbm.refresh=none\n",
        chance / 1e3);
  text += fmt::format("# {} keys change nothing\n", nothing);
  for (const Json& change : changes)
    text += not_run(change,
                    fmt::format("{} {} -> {}", name_of(change), value_text(change["from"]), value_text(change["to"])));
  return text;
}

std::string parts_table(const Json& parts) {
  std::string text = "# whole parts, all of their values at once:\n";
  std::size_t width = 40;
  for (const Json& part : parts) {
    const std::string name = part["part"];
    if (part["state"] == "ran" && saved_ns(part) != 0) width = std::max(width, name.size());
  }
  for (const Json& part : parts) {
    const std::string name = part["part"];
    if (part["state"] != "ran" || saved_ns(part) == 0) continue;
    const std::string more = part.value("less_than", std::string());
    text +=
        fmt::format("  {:<{}}  {:>3} keys  {:>13.3f} us saved  {:>5.1f}%{}{}\n", name, width,
                    part["keys"].get<std::size_t>(), saved_ns(part) / 1e3, 100 * part["saved_fraction"].get<double>(),
                    more.empty() ? "" : fmt::format("  {} alone saves more: the others cost time beside it", more),
                    other_way(part));
  }
  for (const Json& part : parts) {
    // Of one key its row says that.
    if (part["keys"] != 1) text += not_run(part, "all of " + part["part"].get<std::string>());
  }
  return text;
}

/// What was not tried, and why: a line for each reason.
std::string untried_text(const Json& what_if) {
  std::vector<std::string> idle;
  for (const Json& part : what_if["parts"]) {
    if (part["state"] == "ran" && saved_ns(part) == 0 && part["keys"] != 1)
      idle.push_back(part["part"].get<std::string>());
  }
  std::string text;
  if (!idle.empty() && !what_if["untried"].empty())
    text += fmt::format("# not tried one by one, since nothing changes with all at once: {} keys of {}\n",
                        what_if["untried"].size(), listed(idle));
  const std::vector<std::string> at_best = what_if.value("at_best", std::vector<std::string>());
  if (!at_best.empty()) text += fmt::format("# not tried, there is nothing better: {}\n", listed(at_best));
  return text + "# not tried, neither way is better: policies, shapes, sizes that programs see, energy\n";
}
}  // namespace

std::string text_of(const Json& what_if) {
  std::string text = fmt::format("# what if: {}, {:.3f} us; {} runs; rates and rooms doubled, times halved\n",
                                 what_if["measure"].get<std::string>(), what_if["baseline_ns"].get<double>() / 1e3,
                                 what_if["runs"].get<std::size_t>());
  if (!what_if["same"].get<bool>())
    text += fmt::format(
        "# WARNING: the run itself takes {:.3f} us now, and took {:.3f} us in the file: savings count from now\n",
        what_if["baseline_ns"].get<double>() / 1e3, what_if["recorded_ns"].get<double>() / 1e3);
  text += changes_table(what_if["changes"], chance_ns(what_if));
  text += parts_table(what_if["parts"]);
  text += untried_text(what_if);
  if (!what_if.contains("pairs")) return text;
  text += "# pairs of the best keys:\n";
  for (const Json& pair : what_if["pairs"]) {
    const std::string names = pair["keys"][0].get<std::string>() + " + " + pair["keys"][1].get<std::string>();
    if (pair["state"] != "ran") {
      text += fmt::format("# {}: {}: {}\n", pair["state"].get<std::string>(), names,
                          first_line(pair["error"].get<std::string>()));
      continue;
    }
    text +=
        fmt::format("  {:<64}  {:>13.3f} us saved  {:>5.1f}%  alone and added up {:.3f}\n", names, saved_ns(pair) / 1e3,
                    100 * pair["saved_fraction"].get<double>(), pair["sum_of_single_ns"].get<double>() / 1e3);
  }
  return text;
}

}  // namespace kernbench::compare
