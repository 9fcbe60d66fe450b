#include "sc_main/explore/sweep/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topology/spec/schema.h"

namespace kernbench::sweep {
namespace {
/// Samples of a range are rounded: 123.4 GB/s says as much as 123.4187654 GB/s.
constexpr int kDigits = 4;

double rounded(double number) {
  if (number == 0) return 0;
  const double scale = std::pow(10.0, kDigits - 1 - std::floor(std::log10(std::abs(number))));
  return std::round(number * scale) / scale;
}
}  // namespace

Arguments option_words(const std::vector<Setting>& settings) {
  Arguments words;
  for (const Setting& setting : settings) {
    if (setting.name == "topology" || topology::find_field(setting.name) != nullptr) continue;
    if (!setting.flag)
      words.push_back("--" + setting.name + "=" + setting.text);
    else if (setting.text == "true")
      words.push_back("--" + setting.name);
  }
  return words;
}

AxisValue Axis::at(double u) const {
  if (!values.empty()) {
    const auto index = static_cast<std::size_t>(u * static_cast<double>(values.size()));
    return values[std::min(index, values.size() - 1)];
  }
  double number = log ? from * std::pow(to / from, u) : from + u * (to - from);
  if (kind.whole() && std::abs(number) < 1e4)
    number = std::round(number);
  else
    number = rounded(number);
  number = std::clamp(number, from, to);
  if (kind.whole()) number = std::round(number);
  const std::string text = kind.text_of(number).value_or(fmt::format("{}", number));
  number = kind.number_of(text).value_or(number);
  return {text, number, {{keys.front(), text, number, false}}, where};
}

nlohmann::ordered_json Axis::json() const {
  nlohmann::ordered_json json{{"name", name}, {"kind", values.empty() ? "range" : "list"},
                              {"log", log},   {"numeric", numeric},
                              {"unit", unit}, {"keys", keys}};
  json["values"] = nlohmann::ordered_json::array();
  for (const AxisValue& value : values) {
    json["values"].push_back({{"label", value.label}, {"number", nullptr}});
    if (value.number) json["values"].back()["number"] = *value.number;
  }
  if (values.empty()) {
    json["from"] = from;
    json["to"] = to;
  }
  return json;
}

nlohmann::ordered_json to_json(const std::vector<Axis>& axes, const Coordinates& coordinates) {
  auto json = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    json[axes[i].name] = {{"label", coordinates[i].label}, {"number", nullptr}};
    if (coordinates[i].number) json[axes[i].name]["number"] = *coordinates[i].number;
  }
  return json;
}

}  // namespace kernbench::sweep
