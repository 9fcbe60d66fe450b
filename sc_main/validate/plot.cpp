#include "sc_main/validate/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tlm/config/json_text.h"

namespace kernbench::validate {
namespace {
constexpr double kWidth = 840, kHeight = 460;
constexpr double kLeft = 76, kRight = 300, kTop = 44, kBottom = 60;  ///< margins; the legend is on the right
constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;
constexpr double kLegendRow = 20;

/// Colours that people with the common forms of colour blindness tell apart (Okabe and Ito, 2008).
constexpr std::array<const char*, 7> kColors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                             "#56b4e9", "#e69f00", "#000000"};

/// One axis: from values to positions along it, with its ticks.
class Axis {
 public:
  Axis(double least, double most, bool log) : log_(log) {
    if (log_) {
      begin_ = std::floor(std::log10(least) * 2) / 2;  // half a decade
      end_ = std::max(std::ceil(std::log10(most) * 2) / 2, begin_ + 0.5);
      for (int decade = static_cast<int>(std::floor(begin_)); decade <= static_cast<int>(std::ceil(end_)); ++decade) {
        for (const double digit : {1.0, 2.0, 5.0}) add_tick(digit * std::pow(10, decade));
      }
      return;
    }
    const double span = most > least ? most - least : std::max(std::abs(most), 1.0);
    const double rough = span / 6, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
    begin_ = std::floor(least / step) * step;
    end_ = std::max(std::ceil(most / step) * step, begin_ + step);
    for (int i = 0; begin_ + i * step <= end_ + step / 2; ++i) add_tick(begin_ + i * step);
  }

  /// 0 at the beginning of the axis, 1 at its end.
  double at(double value) const { return ((log_ ? std::log10(value) : value) - begin_) / (end_ - begin_); }
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  void add_tick(double value) {
    const double position = at(value);
    if (position > -1e-9 && position < 1 + 1e-9) ticks_.push_back(std::abs(value) < 1e-12 ? 0 : value);
  }

  bool log_;
  double begin_ = 0, end_ = 1;
  std::vector<double> ticks_;
};

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot), x_(axis(plot, true)), y_(axis(plot, false)) {}

  std::string str() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight);
    text(kLeft, 26, "start", plot_.title, " font-size=\"15\"");
    draw_axes();
    for (const Series& series : plot_.series) draw(series);
    draw_legend();
    return out_ + "</svg>\n";
  }

 private:
  static Axis axis(const Plot& plot, bool x) {
    Range range;
    if (x || !plot.log_y) range.add(0);
    for (const Series& series : plot.series) {
      for (const auto& point : series.points) {
        const double value = x ? point.first : point.second;
        if (std::isfinite(value) && (x || !plot.log_y || value > 0)) range.add(value);
      }
    }
    if (!(range.least <= range.most)) range = {1, 10};
    return Axis(range.least, range.most, !x && plot.log_y);
  }

  double px(double value) const { return kLeft + x_.at(value) * kPlotWidth; }
  double py(double value) const { return kTop + (1 - y_.at(value)) * kPlotHeight; }
  bool drawable(const std::pair<double, double>& point) const {
    return std::isfinite(point.first) && std::isfinite(point.second) && (!plot_.log_y || point.second > 0);
  }

  void text(double x, double y, const char* anchor, const std::string& text, const std::string& more = {}) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"#222222\"{}>{}</text>\n", x, y,
                        anchor, more, xml_text(text));
  }

  void line(double x0, double y0, double x1, double y1, const char* color) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x0, y0, x1,
                        y1, color);
  }

  void draw_axes() {
    for (const double tick : x_.ticks()) {
      line(px(tick), kTop, px(tick), kTop + kPlotHeight, "#e6e6e6");
      text(px(tick), kTop + kPlotHeight + 18, "middle", fmt::format("{:g}", tick));
    }
    for (const double tick : y_.ticks()) {
      line(kLeft, py(tick), kLeft + kPlotWidth, py(tick), "#e6e6e6");
      text(kLeft - 8, py(tick) + 4, "end", fmt::format("{:g}", tick));
    }
    out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444444\"/>\n",
                        kLeft, kTop, kPlotWidth, kPlotHeight);
    text(kLeft + kPlotWidth / 2, kHeight - 18, "middle", plot_.x_label);
    text(0, 0, "middle", plot_.y_label,
         fmt::format(" transform=\"translate(20 {:.1f}) rotate(-90)\"", kTop + kPlotHeight / 2));
  }

  void marker(double x, double y, bool open, const char* color) {
    out_ += open ? fmt::format(
                       "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"#ffffff\" stroke=\"{}\" "
                       "stroke-width=\"1.6\"/>\n",
                       x, y, color)
                 : fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" fill=\"{}\"/>\n", x, y, color);
  }

  void draw(const Series& series) {
    const char* const color = kColors[series.color % kColors.size()];
    if (!series.reference) {
      std::string points;
      for (const auto& point : series.points) {
        if (drawable(point)) points += fmt::format("{:.1f},{:.1f} ", px(point.first), py(point.second));
      }
      out_ +=
          fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", points, color);
    }
    for (const auto& point : series.points) {
      if (drawable(point) && !series.plain) marker(px(point.first), py(point.second), series.reference, color);
    }
  }

  void draw_legend() {
    const double x = kWidth - kRight + 18;
    double y = kTop + 12;
    for (const Series& series : plot_.series) {
      if (series.label.empty()) continue;  // goes with the one before it
      const char* const color = kColors[series.color % kColors.size()];
      if (!series.reference)
        out_ += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", x,
            y - 4, x + 24, y - 4, color);
      if (!series.plain) marker(x + 12, y - 4, series.reference, color);
      text(x + 32, y, "start", series.label);
      y += kLegendRow;
    }
  }

  const Plot& plot_;
  Axis x_, y_;
  std::string out_;
};
}  // namespace

std::string to_svg(const Plot& plot) { return Drawing(plot).str(); }

}  // namespace kernbench::validate
