#include "topology/show/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tlm/config/json_text.h"

namespace kernbench::topology {

namespace {

struct Style {
  const char* name;
  const char* fill;
  const char* stroke;
};

// Paul Tol's "bright" and "light" schemes, which colour-blind readers can tell apart.
constexpr Style kStyles[] = {
    {"sip", "#f4f6fa", "#5b6b84"},     {"cube", "#e8eef7", "#5b6b84"},   {"chiplet", "#fdf3e1", "#b07d2b"},
    {"router", "#ffffff", "#4477aa"},  {"pe", "#dcefdf", "#228833"},     {"hbm", "#f9dfe0", "#c5444f"},
    {"sram", "#eadff2", "#8e4f9e"},    {"cpu", "#fdf3e1", "#b07d2b"},    {"ucie", "#dff1f5", "#2e8aa0"},
    {"zone", "#f1f1f1", "#bbbbbb"},    {"engine", "#dcefdf", "#228833"}, {"memory", "#f9dfe0", "#c5444f"},
    {"outside", "#ffffff", "#999999"}, {"fabric", "#fdf3e1", "#b07d2b"},
};
constexpr Style kLines[] = {
    {"noc", "#4477aa", ""},       {"pe_local", "#228833", ""}, {"hbm_port", "#c5444f", ""},
    {"sram_port", "#8e4f9e", ""}, {"cpu_port", "#b07d2b", ""}, {"ucie", "#2e8aa0", ""},
    {"io", "#b07d2b", ""},        {"pcie", "#555555", ""},     {"inter_sip", "#aa3377", ""},
    {"command", "#999999", ""},
};

const Style& style_of(const std::string& name) {
  for (const Style& style : kStyles) {
    if (name == style.name) return style;
  }
  throw std::logic_error("no style of boxes is called " + name);
}

std::string colour_of(const std::string& kind) {
  for (const Style& line : kLines) {
    if (kind == line.name) return line.fill;
  }
  throw std::logic_error("no kind of line is called " + kind);
}

/// Grey over yellow to red.
std::string heat(double utilisation) {
  const double u = std::clamp(utilisation, 0.0, 1.0);
  const auto mix = [&](double low, double middle, double high) {
    return static_cast<int>(u < 0.5 ? low + (middle - low) * 2 * u : middle + (high - middle) * (2 * u - 1));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0xc8, 0xf0, 0xc0), mix(0xc8, 0xb4, 0x10), mix(0xc8, 0x20, 0x10));
}

std::string line_colour(const Drawing::Line& line, bool coloured) {
  if (line.utilisation) return heat(*line.utilisation);
  return coloured ? "#c8c8c8" : colour_of(line.kind);
}

}  // namespace

const Drawing::Box& Drawing::box(const std::string& id) const {
  const auto found = std::find_if(boxes_.begin(), boxes_.end(), [&](const Box& box) { return box.id == id; });
  if (found == boxes_.end()) throw std::logic_error("no box is called " + id);
  return *found;
}

bool Drawing::uses(const std::string& kind) const {
  return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) { return line.kind == kind; }) ||
         std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) { return box.style == kind; });
}

Drawing::Extent Drawing::extent() const {
  Extent all{1e9, 1e9, -1e9, -1e9};
  const auto cover = [&](double x, double y) {
    all = {std::min(all.left, x), std::min(all.top, y), std::max(all.right, x), std::max(all.bottom, y)};
  };
  for (const Box& box : boxes_) {
    cover(box.x - box.w / 2, box.y - box.h / 2);
    cover(box.x + box.w / 2, box.y + box.h / 2);
  }
  for (const Line& line : lines_) {
    const Box &a = box(line.from), &b = box(line.to);
    cover((a.x + b.x) / 2 + std::abs(line.bend) * 0.6, (a.y + b.y) / 2 + std::abs(line.bend) * 0.6);
    cover((a.x + b.x) / 2 - std::abs(line.bend) * 0.6, (a.y + b.y) / 2 - std::abs(line.bend) * 0.6);
  }
  return all;
}

std::string Drawing::svg() const {
  const Extent all = extent();
  const double margin = 30, head = 56, row = 20;
  std::vector<std::pair<std::string, std::string>> legend;
  for (const auto& entry : explained_) {
    if (uses(entry.first)) legend.push_back(entry);
  }
  const double width = std::max(all.right - all.left + 2 * margin, 460.0);
  const int columns = std::max(1, static_cast<int>((width - 2 * margin) / 180));
  const double rows = std::ceil(static_cast<double>(legend.size()) / columns);
  const double height = all.bottom - all.top + 2 * margin + head + rows * row;
  const double dx = width / 2 - (all.left + all.right) / 2, dy = margin + head - all.top;
  const bool coloured =
      std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.utilisation.has_value(); });

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{2:.0f}\" y=\"30\" font-size=\"18\" font-weight=\"bold\" fill=\"#222222\">{3}</text>\n"
      "<text x=\"{2:.0f}\" y=\"50\" fill=\"#555555\">{4}</text>\n",
      width, height, margin, xml_text(title_), xml_text(subtitle_));
  const auto draw_box = [&](const Box& box) {
    const Style& style = style_of(box.style);
    const double x = box.x + dx, y = box.y + dy, top = y - box.h / 2;
    out += fmt::format(
        "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" "
        "stroke=\"{}\"/>",
        xml_text(box.id), x - box.w / 2, top, box.w, box.h, style.fill, style.stroke);
    const double label_y = top + box.h * box.label_at + (box.note.empty() ? 4 : -3);
    const double size = std::clamp(1.7 * box.w / std::max<double>(static_cast<double>(box.label.size()), 1), 7.0, 12.0);
    const double label_x = box.label_at < 0.2 ? x - box.w / 2 + 20 : x;  // containers: lines run through the middle
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"{:.1f}\" fill=\"#222222\">{}</text>",
        label_x, label_y, size, xml_text(box.label));
    if (!box.note.empty()) {
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#666666\">{}</text>", x,
          label_y + 14, xml_text(box.note));
    }
    out += "</g>\n";
  };
  // Containers lie below the lines, everything else above.
  const auto container = [](const Box& box) { return box.style == "zone" || box.label_at < 0.2; };
  for (const Box& box : boxes_) {
    if (container(box)) draw_box(box);
  }
  std::string labels;
  for (const Line& line : lines_) {
    const Box &a = box(line.from), &b = box(line.to);
    const double ax = a.x + dx, ay = a.y + dy, bx = b.x + dx, by = b.y + dy;
    const double length = std::max(std::hypot(bx - ax, by - ay), 1.0);
    const double cx = (ax + bx) / 2 - (by - ay) / length * line.bend,
                 cy = (ay + by) / 2 + (bx - ax) / length * line.bend;
    out += fmt::format(
        "<path d=\"M{:.1f},{:.1f} Q{:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
        ax, ay, cx, cy, bx, by, line_colour(line, coloured), line.kind == "inter_sip" || line.kind == "ucie" ? 3 : 2,
        line.kind == "command" ? " stroke-dasharray=\"4 3\"" : "");
    if (line.label.empty()) continue;
    const double t = line.label_at;
    const double lx = (1 - t) * (1 - t) * ax + 2 * t * (1 - t) * cx + t * t * bx;
    const double ly = (1 - t) * (1 - t) * ay + 2 * t * (1 - t) * cy + t * t * by;
    const double w = 5.6 * static_cast<double>(line.label.size()) + 6;
    labels += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\" rx=\"3\" fill=\"#ffffff\" "
        "fill-opacity=\"0.85\"/>"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#333333\">{}</text>\n",
        lx - w / 2, ly - 7, w, lx, ly + 4, xml_text(line.label));
  }
  for (const Box& box : boxes_) {
    if (!container(box)) draw_box(box);
  }
  out += labels;
  for (std::size_t i = 0; i < legend.size(); ++i) {
    const auto& [kind, text] = legend[i];
    const std::size_t column = i % static_cast<std::size_t>(columns), line = i / static_cast<std::size_t>(columns);
    const double x = margin + static_cast<double>(column) * 180;
    const double y = all.bottom + dy + margin + static_cast<double>(line) * row;
    const bool is_line =
        std::any_of(lines_.begin(), lines_.end(), [&, k = kind](const Line& line) { return line.kind == k; });
    if (is_line) {
      out += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" stroke-width=\"3\"/>", x,
          x + 22, y, coloured ? "#c8c8c8" : colour_of(kind));
    } else {
      const Style& style = style_of(kind);
      out +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"12\" rx=\"2\" fill=\"{}\" stroke=\"{}\"/>",
                      x, y - 6, style.fill, style.stroke);
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#333333\">{}</text>\n", x + 30, y + 4, xml_text(text));
  }
  return out + "</svg>\n";
}

std::string Drawing::json() const {
  using Json = nlohmann::ordered_json;
  Json boxes = Json::array(), lines = Json::array();
  for (const Box& box : boxes_) {
    const Style& style = style_of(box.style);
    boxes.push_back({{"id", box.id},
                     {"label", box.label},
                     {"note", box.note},
                     {"style", box.style},
                     {"fill", style.fill},
                     {"stroke", style.stroke},
                     {"x", box.x},
                     {"y", box.y},
                     {"w", box.w},
                     {"h", box.h},
                     {"label_at", box.label_at}});
  }
  for (const Line& line : lines_) {
    lines.push_back({{"from", line.from},
                     {"to", line.to},
                     {"kind", line.kind},
                     {"colour", colour_of(line.kind)},
                     {"label", line.label},
                     {"bend", line.bend},
                     {"label_at", line.label_at},
                     {"ends", line.ends.empty() ? line.from + " " + line.to : line.ends}});
  }
  return json_text(Json{{"title", title_}, {"subtitle", subtitle_}, {"boxes", boxes}, {"lines", lines}});
}

std::string Drawing::dot() const {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : escaped_bytes(text)) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return out + "\"";
  };
  const bool coloured =
      std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.utilisation.has_value(); });
  std::string out = fmt::format(
      "graph machine {{\n  label={}; labelloc=t; layout=neato; splines=true; fontname=Helvetica;\n"
      "  node [shape=box, style=\"filled,rounded\", fixedsize=true, fontname=Helvetica, fontsize=10];\n"
      "  edge [fontname=Helvetica, fontsize=9];\n",
      quoted(title_ + (subtitle_.empty() ? "" : ": " + subtitle_)));
  // Graphviz reads positions and sizes in inches, y upwards; 72 of our units are an inch.
  for (const Box& box : boxes_) {
    const Style& style = style_of(box.style);
    out += fmt::format(
        "  {} [label={}, pos=\"{:.3f},{:.3f}!\", width={:.2f}, height={:.2f}, fillcolor=\"{}\", color=\"{}\"{}];\n",
        quoted(box.id), box.note.empty() ? quoted(box.label) : fmt::format("\"{}\\n{}\"", box.label, box.note),
        box.x / 72, -box.y / 72, box.w / 72, box.h / 72, style.fill, style.stroke,
        box.label_at < 0.2 ? ", labelloc=t" : "");
  }
  for (const Line& line : lines_) {
    out += fmt::format("  {} -- {} [color=\"{}\", penwidth=2{}{}];\n", quoted(line.from), quoted(line.to),
                       line_colour(line, coloured), line.label.empty() ? "" : ", label=" + quoted(line.label),
                       line.kind == "command" ? ", style=dashed" : "");
  }
  return out + "}\n";
}

}  // namespace kernbench::topology
