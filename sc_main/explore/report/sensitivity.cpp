#include "sc_main/explore/report/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace kernbench::report {
namespace {

constexpr std::size_t kMostLevels = 12, kRanges = 8;

/// Axis value -> number of its level.
class Levels {
 public:
  Levels(const Study& study, std::size_t axis, const std::vector<std::size_t>& points) : column_(study.axes[axis]) {
    std::vector<double> values;
    values.reserve(points.size());
    for (const std::size_t p : points) values.push_back(study.points[p].axes[axis]);
    std::sort(values.begin(), values.end());
    const std::set<double> distinct(values.begin(), values.end());
    if (column_.scale == Column::Scale::category || distinct.size() <= kMostLevels) {
      for (const double value : distinct) lows_.push_back(value);
      highs_ = lows_;
      return;
    }
    for (std::size_t range = 0; range < kRanges; ++range) {
      const double low = values[range * values.size() / kRanges];
      if (!lows_.empty() && low == lows_.back()) continue;
      lows_.push_back(low);
    }
    for (std::size_t i = 0; i + 1 < lows_.size(); ++i)
      highs_.push_back(*std::prev(std::lower_bound(values.begin(), values.end(), lows_[i + 1])));
    highs_.push_back(values.back());
  }

  std::size_t count() const { return lows_.size(); }
  std::size_t of(double value) const {
    return static_cast<std::size_t>(std::upper_bound(lows_.begin(), lows_.end(), value) - lows_.begin()) - 1;
  }
  double position(std::size_t level) const {
    const double low = lows_[level], high = highs_[level];
    return column_.scale == Column::Scale::log ? std::sqrt(low * high) : (low + high) / 2;
  }
  std::string label(std::size_t level) const {
    if (column_.scale == Column::Scale::category) return column_.categories[static_cast<std::size_t>(lows_[level])];
    if (lows_[level] == highs_[level]) return fmt::format("{:.6g}", lows_[level]);
    return fmt::format("{:.4g} to {:.4g}", lows_[level], highs_[level]);
  }

 private:
  const Column& column_;
  std::vector<double> lows_, highs_;
};

struct Sample {
  std::size_t point;
  double seen;  ///< the metric, or its logarithm
};

double mean_of(const std::vector<Sample>& samples) {
  double sum = 0;
  for (const Sample& sample : samples) sum += sample.seen;
  return sum / static_cast<double>(samples.size());
}

class Analysis {
 public:
  Analysis(const Study& study, std::size_t metric) : study_(study), metric_(metric) {
    result_.log = study.metrics[metric].column.scale == Column::Scale::log;
    for (std::size_t p = 0; p < study.points.size(); ++p) {
      const Point& point = study.points[p];
      const bool placed = std::none_of(point.axes.begin(), point.axes.end(), [](double v) { return std::isnan(v); });
      if (point.status != "ok" || std::isnan(point.values[metric]) || !placed) continue;
      points_.push_back(p);
      samples_.push_back({p, result_.log ? std::log10(point.values[metric]) : point.values[metric]});
    }
  }

  Sensitivity run() {
    if (samples_.size() < 2) return result_;
    for (std::size_t axis = 0; axis < study_.axes.size(); ++axis) levels_.emplace_back(study_, axis, points_);
    result_.balanced = balanced();
    for (std::size_t axis = 0; axis < study_.axes.size(); ++axis) result_.effects.push_back(effect(axis));
    return result_;
  }

 private:
  bool balanced() const {
    std::map<std::vector<std::size_t>, std::size_t> cells;
    std::size_t combinations = 1;
    for (const Levels& levels : levels_) combinations *= levels.count();
    for (const std::size_t p : points_) {
      std::vector<std::size_t> cell;
      for (std::size_t axis = 0; axis < levels_.size(); ++axis)
        cell.push_back(levels_[axis].of(study_.points[p].axes[axis]));
      ++cells[cell];
    }
    if (cells.size() != combinations) return false;
    return std::all_of(cells.begin(), cells.end(),
                       [&](const auto& cell) { return cell.second == cells.begin()->second; });
  }

  Effect effect(std::size_t axis) const {
    const Levels& levels = levels_[axis];
    std::vector<std::vector<Sample>> groups(levels.count());
    for (const Sample& sample : samples_) groups[levels.of(study_.points[sample.point].axes[axis])].push_back(sample);

    Effect effect;
    effect.axis = axis;
    const double mean = mean_of(samples_);
    double total = 0, between = 0;
    for (const Sample& sample : samples_) total += (sample.seen - mean) * (sample.seen - mean);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const double difference = mean_of(groups[g]) - mean;
      between += static_cast<double>(groups[g].size()) * difference * difference;
      effect.levels.push_back(level(levels, g, groups[g]));
    }
    if (!result_.balanced && samples_.size() <= groups.size()) {
      effect.share = kNoFigure;
      return effect;
    }
    if (!result_.balanced) {
      const double within = (total - between) / static_cast<double>(samples_.size() - groups.size());
      between -= static_cast<double>(groups.size() - 1) * within;
    }
    if (total > 0) effect.share = std::clamp(between / total, 0.0, 1.0);
    return effect;
  }

  Level level(const Levels& levels, std::size_t g, const std::vector<Sample>& group) const {
    Level level{levels.label(g), levels.position(g), group.size(), 0, INFINITY, -INFINITY};
    for (const Sample& sample : group) {
      const double value = study_.points[sample.point].values[metric_];
      level.lowest = std::min(level.lowest, value);
      level.highest = std::max(level.highest, value);
    }
    level.mean = result_.log ? std::pow(10, mean_of(group)) : mean_of(group);
    return level;
  }

  const Study& study_;
  const std::size_t metric_;
  std::vector<std::size_t> points_;
  std::vector<Sample> samples_;
  std::vector<Levels> levels_;
  Sensitivity result_;
};
}  // namespace

Sensitivity sensitivity(const Study& study, std::size_t metric) { return Analysis(study, metric).run(); }

}  // namespace kernbench::report
