#include "sc_main/explore/sweep/evaluator.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "sc_main/explore/sweep/record.h"
#include "sc_main/explore/sweep/task.h"
#include "sc_main/process/pool.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::sweep {
namespace {
double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

nlohmann::ordered_json settings_json(const Point& point) {
  auto json = nlohmann::ordered_json::object();
  for (const Setting& setting : point.settings) json[setting.name] = setting.text;
  return json;
}

/// What every point starts from, as a command.
std::string base_command(const PointMaker& maker) { return maker.command(Point{}).text(); }
}  // namespace

/// The points of one call.
class Evaluator::Batch {
 public:
  Batch(Evaluator& owner, std::vector<Point> points)
      : owner_(owner), points_(std::move(points)), results_(points_.size()), positions_(points_.size()) {
    for (const Point& point : points_) point.refused.empty() ? ++owner_.progress_.total : ++owner_.progress_.refused;
  }

  std::vector<Evaluated> run(Executor& executor) {
    const auto tick = [&](std::size_t running) {
      owner_.progress_.running = running;
      owner_.report();
    };
    executor.run([&] { return next(); },
                 [&](const Task& task, const Record& record) {
                   done(task.identity, record, true);
                   owner_.report();
                 },
                 tick, owner_.stop_);
    owner_.progress_.running = 0;
    owner_.report();
    return std::move(results_);
  }

 private:
  /// Points of one key.
  struct Same {
    std::vector<std::size_t> points;
    bool ended = false;  // it is in the store
  };

  std::unique_ptr<Task> next() {
    while (cursor_ < points_.size()) {
      const std::size_t index = cursor_++;
      const Point& point = points_[index];
      if (!point.refused.empty()) {
        results_[index] = {Status::infeasible, "", point.refused, 0, {}, false};
        continue;
      }
      auto task = make_task(owner_.file_, owner_.maker_, point);
      const std::string& key = task->identity.key;
      positions_[index] = owner_.position_of(point);
      owner_.store_.list(owner_.file_.name, positions_[index], key, to_json(owner_.file_.axes, point.coordinates),
                         settings_json(point));
      Same& same = by_key_[key];
      same.points.push_back(index);
      if (same.ended) {
        take_stored(index, owner_.store_.find(key).value());
      } else if (same.points.size() > 1) {
        continue;  // the first one of its key is under way
      } else if (!use_store(key, same)) {
        if (task->refusal.empty()) return task;
        done(task->identity, refused_record(key, task->refusal_code, task->refusal), false);
      }
    }
    return nullptr;
  }

  bool use_store(const std::string& key, Same& same) {
    const auto record = owner_.store_.find(key);
    if (!record || record->status == Status::lost || (record->status == Status::failed && owner_.options_.retry_failed))
      return false;
    same.ended = true;
    take_stored(same.points.front(), *record);
    return true;
  }

  void take_stored(std::size_t index, const Record& record) {
    owner_.store_.add(take(index, record, metrics_of(record.result), true));
  }

  /// `ran`: else it could not even start.
  void done(const PointIdentity& identity, const Record& record, bool ran) {
    Same& same = by_key_[identity.key];
    const std::map<std::string, double> metrics = metrics_of(record.result);
    std::vector<ObjectiveValue> objectives;
    for (const std::size_t index : same.points) {
      const std::vector<ObjectiveValue> own = take(index, record, metrics, false);
      objectives.insert(objectives.end(), own.begin(), own.end());
    }
    owner_.store_.add(identity, record, metrics, objectives);
    same.ended = true;
    Progress& progress = owner_.progress_;
    if (ran) ++progress.ran;
    progress.cpu_s += record.cpu_s;
    progress.model_cpu_s += record.model_cpu_s;
    progress.process_s += record.wall_s;
    if (record.status != Status::ok && owner_.options_.ended) owner_.options_.ended(identity.command, record);
  }

  /// What became of a point. Returns what its objectives are, for the store.
  std::vector<ObjectiveValue> take(std::size_t index, const Record& record,
                                   const std::map<std::string, double>& metrics, bool cached) {
    ++owner_.progress_.done;
    if (cached) ++owner_.progress_.cached;
    if (record.status == Status::failed) ++owner_.progress_.failed;
    if (record.status == Status::lost) ++owner_.progress_.lost;
    Evaluated& result = results_[index];
    result = {record.status, record.key, record.error, record.exit_code, {}, cached};
    if (record.status != Status::ok) return {};
    result.objectives = owner_.objectives_of(points_[index], metrics);
    std::vector<ObjectiveValue> values;
    for (std::size_t i = 0; i < result.objectives.size(); ++i) {
      if (std::isnan(result.objectives[i])) continue;
      values.push_back({owner_.file_.name, positions_[index], owner_.file_.objectives[i].name, result.objectives[i]});
    }
    return values;
  }

  Evaluator& owner_;
  std::vector<Point> points_;
  std::vector<Evaluated> results_;
  std::vector<std::size_t> positions_;  // in the sweep; of points that may run
  std::size_t cursor_ = 0;
  std::map<std::string, Same> by_key_;
};

Evaluator::Evaluator(const SweepFile& file, PointMaker& maker, Store& store, Options options,
                     const std::atomic<bool>& stop)
    : file_(file), store_(store), options_(std::move(options)), stop_(stop), maker_(maker), start_s_(now_s()) {
  store_.begin(file_, options_.kind, base_command(maker_));
  if (options_.kind == "search") positions_ = store_.positions(file_.name);
}

std::size_t Evaluator::position_of(const Point& point) {
  return positions_.emplace(json_text(to_json(file_.axes, point.coordinates)), positions_.size()).first->second;
}

std::vector<double> Evaluator::objectives_of(const Point& point, const std::map<std::string, double>& metrics) {
  std::vector<double> values = maker_.objectives(point, metrics);
  seen_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) seen_[i] = seen_[i] || !std::isnan(values[i]);
  any_metrics_ = metrics;
  return values;
}

void Evaluator::check_objectives() const {
  Problems problems;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i]) continue;
    const Objective& objective = file_.objectives[i];
    std::vector<std::string> metrics;
    for (const auto& [name, value] : any_metrics_) metrics.push_back(name);
    std::string missing = objective.value.text();
    for (const std::string& name : objective.value.names()) {
      if (any_metrics_.count(name) == 0) missing = name;
    }
    problems.add(objective.where,
                 fmt::format("objective '{}': no point has a metric {}", objective.name, quote(missing)),
                 suggest(missing, metrics, "metrics"));
  }
  problems.throw_if_any();
}

void Evaluator::report() {
  progress_.elapsed_s = now_s() - start_s_;
  if (options_.progress) options_.progress(progress_);
}

std::vector<Evaluated> Evaluator::evaluate(const std::vector<Coordinates>& coordinates) {
  std::vector<Point> points;
  points.reserve(coordinates.size());
  for (const Coordinates& place : coordinates) points.push_back(maker_.make(place));
  return evaluate(std::move(points));
}

std::vector<Evaluated> Evaluator::evaluate(std::vector<Point> points) {
  return Batch(*this, std::move(points)).run(*options_.executor);
}

}  // namespace kernbench::sweep
