#include "sc_main/explore/sweep/point_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sc_main/run/terminal.h"
#include "tlm/config/nearest.h"

namespace kernbench::sweep {
namespace {
using PointList = std::vector<const Point*>;

/// Whether a text names what an axis sets: "--m is 0", "cube.noc.rows".
bool names(const std::string& text, const Axis& axis) {
  for (const std::string& key : axis.keys) {
    for (const std::string& word : {"--" + key + " ", "'--" + key + "'", key + " is", "'" + key + "'"}) {
      if (text.find(word) != std::string::npos) return true;
    }
  }
  return false;
}

/// Finds the axis to blame for points that were refused with one text.
class Blame {
 public:
  /// `all`: the points that were checked; `refused`: those of them that were refused, whatever was said.
  Blame(const SweepFile& file, const PointList& all, const std::set<const Point*>& refused)
      : file_(file), all_(all), good_(values_without(refused)) {}

  void add(const std::string& text, const std::string& hint, const PointList& refused, Problems& problems) const {
    // Where no point is good, those are that were refused for something else.
    const bool none = good_.empty() || good_.front().empty();
    const AxisValues good = none ? values_without({refused.begin(), refused.end()}) : good_;
    if (const auto axis = only_axis(text, refused, good)) {
      std::set<std::string> said;
      for (const Point* point : refused) {
        const AxisValue& value = point->coordinates[*axis];
        if (said.insert(value.label).second) problems.add(value.where, text, hint);
      }
    } else if (refused.size() == all_.size()) {
      problems.add(file_.where, "every point is refused: " + text, hint);
    } else {
      problems.add(place_of(text, *refused.front()), fmt::format("{}: {}", described(refused), text),
                   hint.empty() ? "leave such points out with a constraint" : hint);
    }
  }

 private:
  using AxisValues = std::vector<std::set<std::string>>;  // labels, by axis

  /// What is set at points other than these.
  AxisValues values_without(const std::set<const Point*>& points) const {
    AxisValues values(file_.axes.size());
    for (const Point* point : all_) {
      if (points.count(point) > 0) continue;
      for (std::size_t a = 0; a < values.size(); ++a) values[a].insert(point->coordinates[a].label);
    }
    return values;
  }

  /// The axis whose values are bad at every point; of several the one that the text names, then the one with the fewest
  /// such values.
  std::optional<std::size_t> only_axis(const std::string& text, const PointList& refused,
                                       const AxisValues& good) const {
    std::optional<std::size_t> best;
    std::pair<bool, std::size_t> best_rank;
    for (std::size_t a = 0; a < file_.axes.size(); ++a) {
      std::set<std::string> bad;
      for (const Point* point : refused) bad.insert(point->coordinates[a].label);
      const bool sometimes = std::any_of(bad.begin(), bad.end(), [&](const auto& v) { return good[a].count(v) > 0; });
      const bool named = names(text, file_.axes[a]);
      if (sometimes || (good[a].empty() && !named)) continue;
      const std::pair<bool, std::size_t> rank{!named, bad.size()};
      if (!best || rank < best_rank) {
        best = a;
        best_rank = rank;
      }
    }
    return best;
  }

  Location place_of(const std::string& text, const Point& point) const {
    for (std::size_t a = 0; a < file_.axes.size(); ++a) {
      if (names(text, file_.axes[a])) return point.coordinates[a].where;
    }
    return point.coordinates.back().where;
  }

  std::string described(const PointList& refused) const {
    std::vector<std::string> words;
    for (std::size_t a = 0; a < file_.axes.size(); ++a)
      words.push_back(file_.axes[a].name + " = " + refused.front()->coordinates[a].label);
    const std::string more = refused.size() == 1   ? ""
                             : refused.size() == 2 ? " and 1 more point"
                                                   : fmt::format(" and {} more points", refused.size() - 1);
    return "point with " + join(words) + more;
  }

  const SweepFile& file_;
  const PointList& all_;
  const AxisValues good_;  // of points that were not refused
};
}  // namespace

void check_points(const SweepFile& file, const PointMaker& maker, const std::vector<Point>& points, unsigned jobs,
                  const std::function<void(const Progress&)>& progress, const std::atomic<bool>& stop) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  PointList all;
  for (const Point& point : points) {
    if (point.refused.empty()) all.push_back(&point);
  }
  Progress state;
  state.total = all.size();
  std::map<std::string, PointList> same;                // by key
  std::map<std::string, std::vector<Refusal>> refused;  // why, by key
  std::map<std::string, std::string> lost;              // likewise: what this computer lacked says nothing of the point
  std::size_t cursor = 0;
  const auto next = [&]() -> std::unique_ptr<Task> {
    while (cursor < all.size()) {
      const Point* point = all[cursor++];
      auto task = make_task(file, maker, *point);
      const bool is_new = same[task->identity.key].empty();
      same[task->identity.key].push_back(point);
      if (is_new && task->refusal.empty()) return task;
      ++state.done;
      if (!is_new) continue;
      if (status_of_exit(task->refusal_code) == Status::lost)
        lost[task->identity.key] = task->refusal;
      else
        refused[task->identity.key] = task->refusals;
    }
    return nullptr;
  };
  const auto tick = [&](std::size_t running) {
    state.running = running;
    state.elapsed_s = std::chrono::duration<double>(Clock::now() - begin).count();
    progress(state);
  };
  LocalExecutor(jobs, file.limits, check_task)
      .run(
          next,
          [&](const Task& task, const Record& record) {
            ++state.done;
            ++state.ran;
            if (record.status == Status::failed) {
              std::vector<Refusal>& why = refused[task.identity.key] = record.refusals;
              if (why.empty()) why.push_back({record.error, {}});
            }
            if (record.status == Status::lost) lost[task.identity.key] = record.error;
          },
          tick, stop);
  if (!lost.empty()) {
    say(fmt::format("kernbench: warning: {} of {} points could not be checked: {}\n", lost.size(), all.size(),
                    lost.begin()->second));
  }
  Problems problems;
  std::map<std::pair<std::string, std::string>, PointList> by_reason;  // text and hint
  std::set<const Point*> every;
  for (const auto& [key, reasons] : refused) {
    for (const Refusal& one : reasons) {
      PointList& list = by_reason[{Refusal{one.text, {}, one.where}.str(), one.hint}];
      list.insert(list.end(), same[key].begin(), same[key].end());
    }
    every.insert(same[key].begin(), same[key].end());
  }
  const Blame blame(file, all, every);
  for (auto& [reason, list] : by_reason) {
    std::sort(list.begin(), list.end());  // they stand in one vector: the order of the sweep
    blame.add(reason.first, reason.second, list, problems);
  }
  problems.throw_if_any();
}

}  // namespace kernbench::sweep
