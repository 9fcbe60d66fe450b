#pragma once
#include <string>
#include <utility>
#include <vector>

namespace kernbench::validate {

/// Points of one kind in a plot.
struct Series {
  std::string label;  ///< empty: not in the legend
  std::vector<std::pair<double, double>> points;
  bool reference = false;  ///< drawn as open markers; else as a line with small dots
  unsigned color = 0;      ///< series of the same colour belong together
  bool plain = false;      ///< a line without markers
};

/// A chart of reference against measured.
struct Plot {
  std::string file;  ///< without folder and extension
  std::string title, x_label, y_label;
  bool log_y = false;
  std::vector<Series> series;
};

/// The chart as a self-contained SVG document.
std::string to_svg(const Plot& plot);

}  // namespace kernbench::validate
