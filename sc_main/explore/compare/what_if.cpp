#include "sc_main/explore/compare/what_if.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "sc_main/explore/compare/changes.h"
#include "sc_main/explore/compare/link_ends.h"
#include "sc_main/explore/sweep/executor.h"
#include "sc_main/explore/sweep/record.h"
#include "sc_main/explore/sweep/task.h"
#include "sc_main/process/pool.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/run.h"
#include "tlm/config/nearest.h"
#include "topology/spec/resolve.h"

namespace kernbench::compare {
namespace {
using Json = nlohmann::ordered_json;

constexpr std::size_t kPairedKeys = 6;  ///< 15 pairs: as many runs as a few parts have keys
constexpr double kNearlyAsGood =
    0.9;  ///< of what a clock saves, for a value of its block to stand before it, and the like
constexpr int kPollMs = 100;

/// A run of its own process.
struct Attempt {
  std::string state;  ///< "ran", "refused", "failed"
  double ns = 0;
  int exit_code = 0;
  std::string error;
  Json algorithms;  ///< of its rows
  Json mappings;    ///< of its GEMMs, by name
  Json result;      ///< as a file has it, without the machine; null unless asked for
};

Json algorithms_of(const Json& result) {
  Json names = Json::array();
  for (const Json& row : result["results"]) {
    if (row.contains("algorithm") && row["algorithm"].is_string()) names.push_back(row["algorithm"]);
  }
  return names;
}

/// Of a layer the kernels' names; where a name has several, the first. Rows that are sums of others stand for those.
Json mappings_of(const Json& result) {
  Json mappings = Json::object();
  const Json& rows = result["results"];
  const bool sums =
      std::any_of(rows.begin(), rows.end(), [](const Json& row) { return is_total(row) && row.contains("kernels"); });
  const auto note = [&](const std::string& name, const Json& one) {
    if (one.contains("mapping") && !mappings.contains(name)) mappings[name] = one["mapping"];
  };
  for (const Json& row : rows) {
    if (sums && !is_total(row)) continue;
    note(row.value("op", ""), row);
    for (const Json& kernel : row.value("kernels", Json::array()))
      note(row.value("phase", "") + (row.contains("phase") ? " " : "") + kernel.value("name", ""), kernel);
  }
  return mappings;
}

/// "prefill mlp.down passed:32x32x512 -> ring:32x32x512" of each that is another.
Json changed_mappings(const Json& before, const Json& after) {
  Json changed = Json::array();
  for (const auto& [name, mapping] : after.items()) {
    const auto was = before.find(name);
    if (was != before.end() && *was != mapping)
      changed.push_back(fmt::format("{} {} -> {}", name, was->get<std::string>(), mapping.get<std::string>()));
  }
  return changed;
}

/// In a process of its own: builds the machine, runs, and answers as sweep::record_of() reads it.
std::string answer_of(const Arguments& arguments, const Json& config, const std::string& name, TimeOf measure,
                      bool whole) {
  return sweep::answer_of([&](Json& answer) {
    Run run(arguments);
    const Run::Finished finished = run.execute_silently(topology::resolve_json(config, name));
    const RunTime time = time_of(finished.json, measure);
    answer["result"] = {
        {"ns", time.ns}, {"algorithms", algorithms_of(finished.json)}, {"mappings", mappings_of(finished.json)}};
    for (const char* key : {"sim_time_ps", "results", "data"}) {
      if (whole) answer["result"]["whole"][key] = finished.json[key];
    }
    return finished.wrong;
  });
}

Attempt read(const sweep::Record& record) {
  Attempt attempt;
  attempt.exit_code = record.exit_code;
  attempt.error = record.error;
  const bool refused = record.exit_code == static_cast<int>(ExitCode::bad_input);
  attempt.state = record.status == sweep::Status::ok ? "ran" : refused ? "refused" : "failed";
  if (!record.result.is_object()) return attempt;
  attempt.ns = record.result.value("ns", 0.0);
  attempt.algorithms = record.result.value("algorithms", Json::array());
  attempt.mappings = record.result.value("mappings", Json::object());
  attempt.result = record.result.value("whole", Json());
  return attempt;
}

/// Runs of the same program on several machines.
class Trials {
 public:
  Trials(const WhatIf& run, const std::atomic<bool>& stop)
      : run_(run), stop_(stop), jobs_(run.jobs == 0 ? sweep::usable_cores() : run.jobs), start_(Clock::now()) {}

  /// In the order of `machines`.
  std::vector<Attempt> operator()(const Arguments& arguments, const std::vector<Json>& machines, bool whole = false) {
    std::vector<Attempt> attempts(machines.size());
    progress_.total += machines.size();
    process::Pool pool(jobs_, {});
    const auto ended = [&](std::size_t id, const process::Ending& ending) {
      attempts[id] = read(sweep::record_of({}, ending, {}));
      ++progress_.done;
      progress_.failed += attempts[id].state == "failed" ? 1 : 0;
    };
    for (std::size_t next = 0; next < machines.size() || pool.running() > 0;) {
      if (stop_.load(std::memory_order_relaxed)) throw sweep::Interrupted();
      if (next < machines.size() && !pool.full()) {
        pool.start(next, [&, next] { return answer_of(arguments, machines[next], run_.name, run_.measure, whole); });
        ++next;
        continue;
      }
      pool.wait(kPollMs, ended);
      progress_.running = pool.running();
      progress_.elapsed_s = std::chrono::duration<double>(Clock::now() - start_).count();
      if (run_.progress) run_.progress(progress_);
    }
    return attempts;
  }
  std::size_t count() const { return progress_.done; }

 private:
  using Clock = std::chrono::steady_clock;
  const WhatIf& run_;
  const std::atomic<bool>& stop_;
  const unsigned jobs_;
  const Clock::time_point start_;
  sweep::Progress progress_;
};

bool has_option(const Arguments& arguments, const std::string& option) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& word) { return word == option || word.rfind(option + "=", 0) == 0; });
}

/// Option and value of what a run took throughout by its own choice: the algorithm of its collectives, the mapping of
/// its GEMM; empty: anything else. Held fast, since what is to be seen is what the machine does: times that ship for a
/// machine are none of a changed one's, and the planner's estimate may take another mapping for a tenth of a per cent.
Arguments own_choice(const Arguments& arguments, const Json& recorded) {
  if (!recorded.is_object() || recorded["results"].empty()) return {};
  const Json& first = recorded["results"][0];
  const bool collective = first.contains("redop");
  const char *option = collective ? "--algorithm" : "--mapping", *key = collective ? "algorithm" : "mapping";
  if (has_option(arguments, option) || !first.contains(key) || !first[key].is_string()) return {};
  for (const Json& row : recorded["results"]) {
    if (row.contains("redop") != collective || row.value(key, Json()) != first[key]) return {};
  }
  return {option, first[key].get<std::string>()};
}

/// The run without a change, and the words of its command line that hold throughout: without contents where the times
/// are the same without.
struct Baseline {
  Arguments arguments;
  Json recorded;
  Attempt attempt;
  bool same = false;
};

[[noreturn]] void end_as(const Attempt& attempt) {
  throw RunEnded(static_cast<ExitCode>(attempt.exit_code),
                 fmt::format("the run itself, without a change: {}", attempt.error));
}

Baseline find_baseline(const WhatIf& run, Trials& trials) {
  Baseline baseline;
  baseline.recorded = run.recorded;
  if (!baseline.recorded.is_object()) {
    const Attempt first = trials(run.arguments, {run.config}, true).front();
    if (first.state != "ran") end_as(first);
    baseline.recorded = first.result;
  }
  const double recorded_ns = time_of(baseline.recorded, run.measure).ns;
  Arguments plain = run.arguments;
  if (!has_option(plain, "--data") && baseline.recorded.value("data", false))
    plain.insert(plain.end(), {"--data", "off"});
  std::vector<Arguments> ways;
  if (const Arguments choice = own_choice(run.arguments, baseline.recorded); !choice.empty()) {
    ways.push_back(plain);
    ways.back().insert(ways.back().end(), choice.begin(), choice.end());
  }
  ways.push_back(plain);
  if (plain != run.arguments) ways.push_back(run.arguments);
  for (const Arguments& way : ways) {
    baseline.arguments = way;
    baseline.attempt = trials(way, {run.config}).front();
    baseline.same = baseline.attempt.state == "ran" && baseline.attempt.ns == recorded_ns;
    if (baseline.same) break;
  }
  if (baseline.attempt.state != "ran") end_as(baseline.attempt);
  return baseline;
}

bool chosen(const std::string& key, const std::vector<std::string>& globs) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return ::fnmatch(glob.c_str(), key.c_str(), 0) == 0;
         });
}

/// Changes of one section and place.
struct Part {
  std::string name;
  std::vector<std::size_t> changes;
  Attempt attempt;
};

/// The key that saves most, where it saves more by itself than the whole part, with which others cost time; else empty.
std::string saves_more_alone(const Part& part, const std::vector<Change>& changes,
                             const std::vector<std::optional<Attempt>>& attempts, double baseline_ns) {
  if (part.attempt.state != "ran") return {};
  std::string name;
  double least = std::min(part.attempt.ns, baseline_ns);
  for (const std::size_t i : part.changes) {
    if (!attempts[i] || attempts[i]->state != "ran" || attempts[i]->ns >= least) continue;
    least = attempts[i]->ns;
    name = changes[i].name();
  }
  return name;
}

std::vector<Part> parts_of(const std::vector<Change>& changes) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::string name = changes[i].part_name();
    const auto known = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
    if (known == parts.end()) {
      parts.push_back({name, {i}, {}});
    } else {
      known->changes.push_back(i);
    }
  }
  return parts;
}

/// In whole picoseconds, the clock of the machine: nothing less than one is a difference.
double saved_ns(double before, double after) { return std::round((before - after) * 1e3) / 1e3; }

void add_outcome(Json& entry, const Attempt& attempt, const Attempt& baseline) {
  entry["state"] = attempt.state;
  const bool ran = attempt.state == "ran";
  entry["time_ns"] = ran ? Json(attempt.ns) : Json();
  entry["saved_ns"] = ran ? Json(saved_ns(baseline.ns, attempt.ns)) : Json();
  entry["saved_fraction"] = ran && baseline.ns > 0 ? Json(saved_ns(baseline.ns, attempt.ns) / baseline.ns) : Json();
  if (ran && attempt.algorithms != baseline.algorithms) entry["algorithms"] = attempt.algorithms;
  if (const Json others = changed_mappings(baseline.mappings, attempt.mappings); ran && !others.empty())
    entry["mappings"] = others;
  if (attempt.state == "failed" || attempt.state == "refused") entry["error"] = attempt.error;
  if (attempt.state == "failed") entry["exit_code"] = attempt.exit_code;
}

double saved(const Json& entry) { return entry["saved_ns"].is_number() ? entry["saved_ns"].get<double>() : 0; }
std::string part_of(const Json& entry) {
  return entry["part"].get<std::string>() + " of " + entry["place"].get<std::string>();
}

/// A clock that paces its whole block, and a value of the whole machine, say less of what is lacking than a value of
/// the same block, or of one place, that saves nearly as much.
bool says_less(const Json& entry, const Json& other) {
  if (entry.value("paces_block", false) && part_of(entry) == part_of(other)) return true;
  return entry["place"] == "" && other["place"] != "" && entry["part"] == other["part"];
}

/// By the time saved; then what says less behind what says more; equal times share a rank, and what changes nothing has
/// none.
void rank(Json& entries) {
  const auto before = [](const Json& a, const Json& b) {
    const bool ran = a["state"] == "ran", other = b["state"] == "ran";
    return ran != other ? ran : saved(a) > saved(b);
  };
  std::stable_sort(entries.begin(), entries.end(), before);
  for (std::size_t at = 0; at < entries.size(); ++at) {
    if (entries[at].contains("placed") || saved(entries[at]) <= 0) continue;
    Json entry = entries[at];
    std::size_t behind = at;
    for (std::size_t i = at + 1; i < entries.size() && saved(entries[i]) >= kNearlyAsGood * saved(entry); ++i) {
      if (says_less(entry, entries[i])) behind = i;
    }
    if (behind == at) continue;
    entry["placed"] = true;
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
    entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(behind), entry);
    --at;  // what has moved up
  }
  std::size_t ranked = 0;
  const Json* last = nullptr;
  for (Json& entry : entries) {
    entry.erase("paces_block");
    entry.erase("placed");
    if (entry["state"] != "ran" || saved(entry) == 0) continue;
    ++ranked;
    entry["rank"] = last != nullptr && (*last)["saved_ns"] == entry["saved_ns"] ? (*last)["rank"] : Json(ranked);
    last = &entry;
  }
}

bool is_end_of(const Change& change, const Change& both) {
  return std::any_of(both.ends.begin(), both.ends.end(),
                     [&](const Change& end) { return end.name() == change.name(); });
}

/// Both ends of a link are worth naming where they save more than each alone, added up: else their own rows say it all.
bool says_nothing_new(const Change& both, const std::vector<Change>& changes,
                      const std::vector<std::optional<Attempt>>& attempts, const Attempt& baseline, double both_ns) {
  if (both.ends.empty()) return false;
  double alone = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (is_end_of(changes[i], both) && attempts[i] && attempts[i]->state == "ran")
      alone += std::max(0.0, saved_ns(baseline.ns, attempts[i]->ns));
  }
  return kNearlyAsGood * saved_ns(baseline.ns, both_ns) <= alone;
}

/// Iterations of a row, whose time is their mean.
double iterations_of(const Arguments& arguments) {
  for (const char* option : {"--iters", "-n"}) {
    const Arguments values = values_of(option, arguments);
    if (!values.empty()) return std::max(1.0, std::atof(values.back().c_str()));
  }
  return 1;
}

/// What refreshes of the memories take of the time, by a run without, and how far off a saving may be by where they
/// fall: each may hold up what is timed for its length or not at all, so that it grows with the root of their number.
Json refreshes(const WhatIf& run, const topology::Plan& plan, const Baseline& baseline, Trials& trials) {
  const Json calm = without_refresh(run.config);
  if (calm.is_null()) return nullptr;
  const Attempt attempt = trials(baseline.arguments, {calm}).front();
  const double take_ns = saved_ns(baseline.attempt.ns, attempt.ns);
  if (attempt.state != "ran" || take_ns == 0) return nullptr;  // of runs that leave the memories alone
  const HbmConfig& hbm = plan.spec.cube.hbm;
  const bool all = hbm.refresh == RefreshPolicy::all_bank;
  const double clock_ns = 1e9 / static_cast<double>(hbm.ck_hz),
               every_ns = clock_ns * static_cast<double>(all ? hbm.timing.t_refi : hbm.timing.t_refi_pb),
               lasts_ns = clock_ns * static_cast<double>(all ? hbm.timing.t_rfc_ab : hbm.timing.t_rfc_pb),
               times = run.measure == TimeOf::rows ? iterations_of(baseline.arguments) : 1,
               number = every_ns > 0 ? std::max(1.0, times * baseline.attempt.ns / every_ns) : 1;
  return {{"take_ns", take_ns}, {"number", number}, {"chance_ns", lasts_ns * std::sqrt(number) / times}};
}

Json pairs_of(const std::vector<Change>& changes, const Json& ranked, const WhatIf& run, const Baseline& baseline,
              Trials& trials) {
  std::vector<const Change*> best;
  std::vector<double> alone;
  for (const Json& entry : ranked) {
    if (best.size() == kPairedKeys || saved(entry) <= 0) break;
    const std::size_t index = entry["index"].get<std::size_t>();
    best.push_back(&changes[index]);
    alone.push_back(saved(entry));
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::vector<Json> machines;
  for (std::size_t a = 0; a < best.size(); ++a) {
    for (std::size_t b = a + 1; b < best.size(); ++b) {
      if (is_end_of(*best[a], *best[b]) || is_end_of(*best[b], *best[a])) continue;
      pairs.emplace_back(a, b);
      machines.push_back(changed(run.config, {best[a], best[b]}));
    }
  }
  const std::vector<Attempt> attempts = trials(baseline.arguments, machines);
  Json entries = Json::array();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [a, b] = pairs[i];
    Json entry{{"keys", {best[a]->name(), best[b]->name()}}, {"sum_of_single_ns", alone[a] + alone[b]}};
    add_outcome(entry, attempts[i], baseline.attempt);
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Json& a, const Json& b) { return saved(a) > saved(b); });
  return entries;
}
}  // namespace

Json what_if(const WhatIf& run, const std::atomic<bool>& stop) {
  std::vector<Change> changes;
  for (Change& change : changes_of(run.config)) {
    if (chosen(change.key, run.keys)) changes.push_back(std::move(change));
  }
  const topology::Plan plan = plan_of(topology::resolve_json(run.config, run.name), run.name);
  for (Change& both : changes_of_both_ends(run.config, changes, plan)) changes.push_back(std::move(both));
  if (changes.empty())
    throw UsageError(fmt::format("no key of this machine matches {}", quote(join(run.keys))),
                     "give keys as 'kernbench topology show --stage 2' has them, e.g. 'cube.ucie.*'");
  Trials trials(run, stop);
  const Baseline baseline = find_baseline(run, trials);

  std::vector<Part> parts = parts_of(changes);
  std::vector<Json> machines;
  for (const Part& part : parts) {
    std::vector<const Change*> all;
    for (const std::size_t i : part.changes) all.push_back(&changes[i]);
    machines.push_back(changed(run.config, all));
  }
  const std::vector<Attempt> of_parts = trials(baseline.arguments, machines);
  std::vector<std::optional<Attempt>> of_changes(changes.size());
  std::vector<std::size_t> wanted;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].attempt = of_parts[p];
    const bool nothing = of_parts[p].state == "ran" && of_parts[p].ns == baseline.attempt.ns;
    if (parts[p].changes.size() == 1) {
      of_changes[parts[p].changes.front()] = of_parts[p];
    } else if (!nothing || run.all_keys) {
      wanted.insert(wanted.end(), parts[p].changes.begin(), parts[p].changes.end());
    }
  }
  machines.clear();
  for (const std::size_t i : wanted) machines.push_back(changed(run.config, {&changes[i]}));
  const std::vector<Attempt> of_wanted = trials(baseline.arguments, machines);
  for (std::size_t i = 0; i < wanted.size(); ++i) of_changes[wanted[i]] = of_wanted[i];

  Json entries = Json::array(), of_part_entries = Json::array(), untried = Json::array();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (!of_changes[i]) {
      untried.push_back(change.name());
      continue;
    }
    if (of_changes[i]->state == "ran" &&
        says_nothing_new(change, changes, of_changes, baseline.attempt, of_changes[i]->ns))
      continue;
    Json entry{{"rank", nullptr},
               {"key", change.key},
               {"place", change.place},
               {"part", change.part},
               {"from", change.from},
               {"to", change.to},
               {"index", i},
               {"paces_block", change.paces_block}};
    add_outcome(entry, *of_changes[i], baseline.attempt);
    entries.push_back(std::move(entry));
  }
  rank(entries);
  for (const Part& part : parts) {
    Json entry{{"part", part.name}, {"keys", part.changes.size()}};
    add_outcome(entry, part.attempt, baseline.attempt);
    if (const std::string key = saves_more_alone(part, changes, of_changes, baseline.attempt.ns); !key.empty())
      entry["less_than"] = key;
    of_part_entries.push_back(std::move(entry));
  }
  std::stable_sort(of_part_entries.begin(), of_part_entries.end(),
                   [](const Json& a, const Json& b) { return saved(a) > saved(b); });

  const RunTime recorded = time_of(baseline.recorded, run.measure);
  Json block{{"measure", recorded.of},     {"options", baseline.arguments},
             {"recorded_ns", recorded.ns}, {"baseline_ns", baseline.attempt.ns},
             {"same", baseline.same},      {"refreshes", refreshes(run, plan, baseline, trials)}};
  if (run.pairs) block["pairs"] = pairs_of(changes, entries, run, baseline, trials);
  for (Json& entry : entries) entry.erase("index");
  block["changes"] = std::move(entries);
  block["parts"] = std::move(of_part_entries);
  block["untried"] = std::move(untried);
  block["at_best"] = Json::array();
  for (const std::string& key : keys_at_their_best(run.config)) {
    if (chosen(key, run.keys)) block["at_best"].push_back(key);
  }
  block["runs"] = trials.count();
  return block;
}

std::size_t failures(const Json& what_if) {
  std::size_t count = 0;
  for (const char* list : {"changes", "parts", "pairs"}) {
    if (!what_if.contains(list)) continue;
    for (const Json& entry : what_if[list]) count += entry["state"] == "failed" ? 1 : 0;
  }
  return count;
}

}  // namespace kernbench::compare
