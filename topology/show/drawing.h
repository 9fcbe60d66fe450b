#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kernbench::topology {

/// Boxes joined by lines, at given places; written as SVG or as Graphviz DOT with positions.
class Drawing {
 public:
  explicit Drawing(std::string title, std::string subtitle = {})
      : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

  struct Box {
    std::string id, label, note;        ///< `note`: a second, smaller line
    std::string style;                  ///< names a colour, see kStyles
    double x = 0, y = 0, w = 0, h = 0;  ///< centre and size
    double label_at = 0.5;              ///< vertical place of the label, 0 top to 1 bottom
  };
  struct Line {
    std::string from, to, kind, label;
    double bend = 0;  ///< sideways offset of the middle of a curve
    std::optional<double> utilisation;
    double label_at = 0.5;  ///< along the line
    std::string ends = {};  ///< structural names of what it joins, "a b", where they are not those of the boxes
  };
  void add(Box box) { boxes_.push_back(std::move(box)); }
  void add(Line line) { lines_.push_back(std::move(line)); }
  /// A line of text in the legend for a kind of line or a style of box; shown if it occurs.
  void explain(const std::string& kind, const std::string& text) { explained_.push_back({kind, text}); }

  std::string svg() const;
  std::string dot() const;
  std::string json() const;  ///< {title, subtitle, boxes, lines}, as the members are called; for pages that draw it

 private:
  struct Extent {
    double left, top, right, bottom;
  };
  Extent extent() const;
  const Box& box(const std::string& id) const;
  bool uses(const std::string& kind) const;

  std::string title_, subtitle_;
  std::vector<Box> boxes_;
  std::vector<Line> lines_;
  std::vector<std::pair<std::string, std::string>> explained_;
};

}  // namespace kernbench::topology
