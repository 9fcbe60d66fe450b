#include "topology/spec/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tlm/config/nearest.h"

namespace kernbench::topology {

std::string to_string(GridPoint point) { return fmt::format("r{}c{}", point.row, point.col); }

std::optional<GridPoint> parse_point(const std::string& text) {
  constexpr int kMost = 0xFFFF;
  int row = 0, col = 0;
  const bool shaped = text.size() <= 12 && std::sscanf(text.c_str(), "r%dc%d", &row, &col) == 2;
  if (!shaped || row < 0 || col < 0 || row > kMost || col > kMost) return std::nullopt;
  const GridPoint point{static_cast<std::uint16_t>(row), static_cast<std::uint16_t>(col)};
  return text == to_string(point) ? std::optional(point) : std::nullopt;
}

bool contains(const std::vector<GridPoint>& points, GridPoint point) {
  return std::find(points.begin(), points.end(), point) != points.end();
}

std::vector<std::string> Section::keys() const {
  std::vector<std::string> keys;
  for (const Field& field : fields) keys.push_back(field.key);
  return keys;
}

const Field* Section::find(const std::string& key) const {
  for (const Field& field : fields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

namespace {

void read_point(const ConfigNode& node, const std::string& what, std::vector<GridPoint>& points, Problems& problems) {
  const std::string hint = "give a router position such as r2c1 (row 2, column 1)";
  if (!node.is_scalar()) {
    problems.add(node.where, fmt::format("{} is no router position", what), hint);
  } else if (const auto point = parse_point(node.text)) {
    points.push_back(*point);
  } else {
    problems.add(node.where, fmt::format("{} is {}", what, quote(node.text)), hint);
  }
}

void add_paths(const Section& section, const std::string& path, std::vector<std::string>& paths) {
  for (const Field& field : section.fields) {
    if (field.kind == FieldKind::section)
      add_paths(*field.section, dotted(path, field.key), paths);
    else if (field.kind != FieldKind::overrides)
      paths.push_back(dotted(path, field.key));
  }
}

}  // namespace

FieldValue read_value(const Field& field, const ConfigNode& node, const std::string& what, Problems& problems) {
  switch (field.kind) {
    case FieldKind::integer:
      if (const auto value = read_integer(node, what, field.range, problems)) return *value;
      break;
    case FieldKind::quantity:
      if (const auto value = read_quantity(node, what, field.dimension, field.range, problems)) return *value;
      break;
    case FieldKind::boolean:
      if (const auto value = read_bool(node, what, problems)) return std::uint64_t{*value};
      break;
    case FieldKind::enumeration:
      if (const auto value = read_name(node, what, field.names, problems)) return std::uint64_t{*value};
      break;
    case FieldKind::ratio:
      if (const auto value = read_ratio(node, what, problems)) return *value;
      break;
    case FieldKind::text:
      if (const auto value = read_text(node, what, problems)) return *value;
      break;
    case FieldKind::grid_point: {
      std::vector<GridPoint> points;
      read_point(node, what, points, problems);
      return points;
    }
    case FieldKind::grid_points: {
      std::vector<GridPoint> points;
      if (expect_list(node, what, "router positions such as [r0c0, r2c1]", problems)) {
        for (std::size_t i = 0; i < node.items.size(); ++i) {
          read_point(node.items[i], fmt::format("{}[{}]", what, i), points, problems);
        }
      }
      return points;
    }
    case FieldKind::section:
    case FieldKind::overrides:
      break;
  }
  return std::monostate{};
}

const Field* find_field(const std::string& path) {
  const Section* section = &root_section();
  std::size_t from = 0;
  while (true) {
    const std::size_t dot = path.find('.', from);
    const Field* field = section->find(path.substr(from, dot == std::string::npos ? dot : dot - from));
    if (field == nullptr || dot == std::string::npos) return field;
    if (field->kind != FieldKind::section) return nullptr;
    section = field->section.get();
    from = dot + 1;
  }
}

std::vector<std::string> value_paths() {
  std::vector<std::string> paths;
  add_paths(root_section(), "", paths);
  return paths;
}

void read_section(const Section& section, const ConfigNode& map, void* target, const std::string& path,
                  Problems& problems, std::set<std::string>& failed) {
  if (!expect_map(map, path, section.keys(), problems)) {
    failed.insert(path);
    return;
  }
  check_keys(map, path, section.keys(), problems);
  for (const Field& field : section.fields) {
    const ConfigNode* node = map.find(field.key);
    const std::string what = dotted(path, field.key);
    const std::size_t before = problems.reported();
    if (node == nullptr || (node->is_null() && field.optional)) {
      if (!field.optional) {
        problems.add(map.where, fmt::format("missing key '{}'", what), field.doc);
        failed.insert(what);
      }
    } else if (field.kind == FieldKind::section) {
      read_section(*field.section, *node, field.enter(target), what, problems, failed);
    } else if (field.set) {
      const FieldValue value = read_value(field, *node, what, problems);
      if (problems.reported() == before) field.set(target, value);
    }
    if (problems.reported() != before && field.kind != FieldKind::section) failed.insert(what);
  }
}

nlohmann::ordered_json to_json(const Field& field, const FieldValue& value) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::quantity: {
      const auto number = std::get<std::uint64_t>(value);
      if (field.optional && number == 0) return nullptr;
      if (field.kind == FieldKind::quantity) return format_quantity(number, field.dimension);
      return number;
    }
    case FieldKind::boolean:
      return std::get<std::uint64_t>(value) != 0;
    case FieldKind::enumeration:
      return field.names.at(std::get<std::uint64_t>(value));
    case FieldKind::ratio: {
      const Ratio ratio = std::get<Ratio>(value);
      return fmt::format("{}/{}", ratio.parts, ratio.whole);
    }
    case FieldKind::text: {
      const auto& text = std::get<std::string>(value);
      if (text.empty()) return nullptr;
      return text;
    }
    case FieldKind::grid_point:
    case FieldKind::grid_points: {
      const auto& points = std::get<std::vector<GridPoint>>(value);
      if (points.empty()) return nullptr;
      if (field.kind == FieldKind::grid_point) return to_string(points.front());
      auto list = nlohmann::ordered_json::array();
      for (const GridPoint point : points) list.push_back(to_string(point));
      return list;
    }
    case FieldKind::section:
    case FieldKind::overrides:
      break;
  }
  return nullptr;
}

nlohmann::ordered_json to_json(const Section& section, const void* source) {
  auto object = nlohmann::ordered_json::object();
  for (const Field& field : section.fields) {
    if (field.kind == FieldKind::section) {
      // enter() only computes the address of a member.
      auto nested = to_json(*field.section, field.enter(const_cast<void*>(source)));
      if (!nested.empty()) object[field.key] = std::move(nested);
    } else if (field.get) {
      auto value = to_json(field, field.get(source));
      if (!value.is_null()) object[field.key] = std::move(value);
    }
  }
  return object;
}

std::vector<std::string> required_paths(const Section& section, const std::string& path) {
  std::vector<std::string> paths;
  for (const Field& field : section.fields) {
    const std::string what = dotted(path, field.key);
    if (field.required) paths.push_back(what);
    if (field.kind != FieldKind::section) continue;
    for (std::string& nested : required_paths(*field.section, what)) paths.push_back(std::move(nested));
  }
  return paths;
}

std::vector<std::string> uniform_differences(const Section& section, const void* a, const void* b,
                                             const std::string& path) {
  std::vector<std::string> paths;
  for (const Field& field : section.fields) {
    const std::string what = dotted(path, field.key);
    if (field.kind == FieldKind::section) {
      for (std::string& nested : uniform_differences(*field.section, field.enter(const_cast<void*>(a)),
                                                     field.enter(const_cast<void*>(b)), what)) {
        paths.push_back(std::move(nested));
      }
    } else if (field.uniform && to_json(field, field.get(a)) != to_json(field, field.get(b))) {
      paths.push_back(what);
    }
  }
  return paths;
}

}  // namespace kernbench::topology
