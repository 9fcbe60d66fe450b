#include "sc_main/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <set>
#include <stdexcept>
#include <systemc>

#include "ccl/select/registry.h"
#include "ccl/select/tuned_table.h"
#include "models/pe/cpu/race_detector.h"
#include "sc_main/run/critical_path.h"
#include "sc_main/run/errors.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/fidelity_option.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/launch_table.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/progress.h"
#include "sc_main/run/replay_energy.h"
#include "sc_main/run/simulation.h"
#include "sc_main/run/terminal.h"
#include "sc_main/run/version.h"
#include "tlm/config/config_node.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"
#include "tlm/ext/page_table.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {
/// With the prefix that people read: "51.2 uJ".
std::string joules(double pj) {
  static constexpr const char* kUnits[] = {"pJ", "nJ", "uJ", "mJ", "J"};
  std::size_t unit = 0;
  for (; pj >= 1e3 && unit + 1 < std::size(kUnits); ++unit) pj /= 1e3;
  return fmt::format("{:.4g} {}", pj, kUnits[unit]);
}

/// Energy of a run and of its components, the largest first.
std::string describe(std::vector<topology::EnergyRow> rows) {
  const auto sum = [](const topology::EnergyRow& row) { return row.dynamic_pj + row.static_pj; };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return sum(a) > sum(b); });
  double standing = 0;
  std::string parts;
  for (const topology::EnergyRow& row : rows) {
    standing += row.static_pj;
    if (sum(row) > 0) parts += fmt::format("{} {} {}", parts.empty() ? ":" : ",", row.component, joules(sum(row)));
  }
  const double total = topology::total_pj(rows);
  return fmt::format("kernbench: energy {}, {:.1f} % of it static{}\n", joules(total),
                     total > 0 ? 100 * standing / total : 0.0, parts);
}

std::string describe_replay(const std::optional<ReplayReport>& replay, bool left_out) {
  if (left_out) return "# replay: off: what is looked at is simulated\n";
  if (!replay) return {};
  const std::uint64_t repeated = replay->repeated_launches + replay->repeated_collectives;
  const std::uint64_t all = replay->launches + replay->collectives;
  std::string text = fmt::format("# replay: {} of {} launches and collectives repeated, {:.1f} % of their time; ",
                                 repeated, all, replay->time > 0 ? 100 * replay->repeated / replay->time : 0.0);
  text += replay->samples == 0
              ? "none simulated as well"
              : fmt::format("{} simulated as well: {:+.2f} % in all, at most {:.2f} % ({})", replay->samples,
                            100 * replay->all, 100 * replay->largest, replay->largest_of);
  if (replay->refused > 0) text += fmt::format("; {} of {} kinds not repeated", replay->refused, replay->kinds);
  if (replay->disturbed > 0) text += fmt::format("; {} repeats met by others", replay->disturbed);
  return text + "\n";
}

/// Without the values of `option`, which it returns.
Arguments taken_out(const std::string& option, Arguments& arguments) {
  Arguments values = values_of(option, arguments);
  Arguments rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size())
      ++i;
    else if (arguments[i].rfind(option + "=", 0) != 0)
      rest.push_back(arguments[i]);
  }
  arguments = rest;
  return values;
}

/// What `before` would load is loaded only if the user names it himself: a result file comes from anywhere.
void refuse_code(const std::string& from, const Arguments& before, const Arguments& arguments) {
  if (!values_of("--ccl", arguments).empty()) return;
  for (const std::string& file : values_of("--ccl", before)) {
    for (const std::string& module : ccl::Registry::of(file)->module_files()) {
      if (std::filesystem::path(module).extension() == ".xml") continue;  // a schedule
      throw UsageError(fmt::format("--from '{}' is of a run with the module {} of {}, and a result file runs no code",
                                   from, quote(module), quote(file)),
                       fmt::format("give --ccl {} again if you trust it", file));
    }
  }
}

/// Thrown where the simulation would begin, when a run is only checked.
struct NothingRefused {};

/// What a plug-in's run() throws is its program's failure, whatever its type says of the tool's own workloads; what it
/// has from the tool and the machine stays what it is.
std::exception_ptr as_programs(const std::exception_ptr& error, const std::string& plugin) {
  std::string text;
  const ExitCode code = classify(error, text);
  try {
    std::rethrow_exception(error);
  } catch (const SpawnError& failure) {
    if (code != ExitCode::bad_input) return error;
    return std::make_exception_ptr(RunEnded(ExitCode::program_failed, failure.what()));
  } catch (const sc_core::sc_report&) {
    return error;
  } catch (const NothingRefused&) {
    return error;
  } catch (...) {
    return code == ExitCode::internal ? std::make_exception_ptr(PluginError(plugin, "run()", error)) : error;
  }
}

/// Of the first cube's memory.
ReplayRefresh refresh_of(const topology::Plan& plan) {
  const HbmConfig& hbm = plan.spec.cube.hbm;
  const bool all = hbm.refresh == RefreshPolicy::all_bank;
  if (hbm.refresh == RefreshPolicy::none) return {};
  const double clock_ps = 1e12 / static_cast<double>(hbm.ck_hz);
  return {clock_ps * (all ? hbm.timing.t_refi : hbm.timing.t_refi_pb),
          clock_ps * (all ? hbm.timing.t_rfc_ab : hbm.timing.t_rfc_pb)};
}

/// "kernbench: error: --debug found 128 races" and what they are; empty: none.
std::string races_text(const std::vector<RaceKind>& kinds) {
  std::uint64_t races = 0;
  std::string text;
  for (const RaceKind& kind : kinds) {
    races += kind.races;
    text += fmt::format("  {} x kernel '{}': {} and {}\n", kind.races, kind.kernel, kind.first_op, kind.second_op);
  }
  if (races == 0) return {};
  return fmt::format("kernbench: error: --debug found {} race{}\n{}", races, races == 1 ? "" : "s", text);
}

}  // namespace

std::string take_workload(const WorkloadCatalogue& catalogue, Arguments& arguments) {
  const auto taken = [&](std::size_t place) {
    if (place == arguments.size()) return std::string();
    const auto word = arguments.begin() + static_cast<std::ptrdiff_t>(place);
    std::string name = *word;
    arguments.erase(word);
    return name;
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool first = i == 0 && arguments[i].rfind('-', 0) != 0;
    if (first || catalogue.make(arguments[i]) != nullptr) return taken(i);
  }
  return taken(misnamed_workload(arguments));
}

WorkloadCatalogue catalogue_of(const Arguments& arguments) {
  WorkloadCatalogue catalogue;
  for (const std::string& plugin : values_of("--plugin", arguments)) catalogue.add_plugin(plugin);
  return catalogue;
}

Run::Run(Arguments arguments) {
  const Arguments given = arguments;
  Arguments before;
  const Arguments from_option = values_of("--from", arguments);
  const std::string from = from_option.empty() ? std::string() : from_option.front();
  if (!from.empty()) {
    earlier_ = read_result(from);
    before = earlier_->command;
  }
  const Arguments plugins = taken_out("--plugin", before);
  if (!plugins.empty() && values_of("--plugin", arguments).empty())
    throw UsageError(fmt::format("--from '{}' is of a run with the plug-in {}, and a result file runs no code", from,
                                 quote(plugins.front())),
                     fmt::format("give --plugin {} again if you trust it", plugins.front()));
  refuse_code(from, before, arguments);
  const WorkloadCatalogue catalogue = catalogue_of(arguments);
  std::string name = take_workload(catalogue, arguments);
  if (!from.empty()) {
    const std::string earlier_name = take_workload(catalogue, before);
    if (name.empty()) name = earlier_name;
    if (name != earlier_name)
      throw UsageError(fmt::format("--from '{}' is a run of '{}', not of {}", from, earlier_name, quote(name)),
                       "leave the workload out");
  }
  if (name.empty()) throw UsageError("no workload given", "workloads: " + join(catalogue.names()));
  workload_ = catalogue.make(name);
  if (!workload_)
    throw UsageError(fmt::format("unknown workload {}", quote(name)), suggest(name, catalogue.names(), "workloads"));
  plugin_ = catalogue.plugin_of(name);
  po::options_description all;
  all.add(machine_.describe()).add(common_.describe());
  workload_->add_options(all);
  const Parsed parsed = parse(arguments, all, {}, before);
  if (!parsed.dropped.empty())
    say(fmt::format("kernbench: warning: what '{}' says of {} is left out: a result file names no outputs\n", from,
                    join(parsed.dropped)));
  Refusals refusals;
  common_.check(refusals);
  if (machine_.topology.empty())
    refusals.add("--topology is ''", "give a file or a preset; 'kernbench list' names the presets");
  refusals.from([this] { workload_->check_options(); });
  if (earlier_) {
    if (!parsed.values("topology").empty())
      refusals.add("--topology together with --from", "the result file brings its machine; change it with --set");
    machine_.sets = parsed.values("set");  // the earlier ones are part of its configuration
  }
  refusals.from([this] {
    if (!common_.ccl.empty()) ccl::Registry::of(common_.ccl);  // whatever the workload
  });
  if (refusals.any() && !machine_.topology.empty()) refusals.from([this] { resolve(); });
  refusals.throw_if_any();
  if (!common_.ccl.empty()) result_.ccl = ccl::Registry::of(common_.ccl)->text();
  if (earlier_ && parsed.values("ccl").empty() && earlier_->ccl != result_.ccl) {
    if (common_.ccl.empty())
      throw UsageError(fmt::format("'ccl' in {} has a text, but its command names no --ccl", quote(common_.from)),
                       "give a file as 'kernbench run ... --json FILE' wrote it, or --ccl FILE");
    throw UsageError(fmt::format("{} is not what it was in the earlier run", quote(common_.ccl)),
                     "give --ccl FILE to run with it all the same");
  }
  hash_files();
  if (earlier_) {
    compare_plugins(plugins);
    compare_files(given);
  }
  result_.command = {"run", name};
  result_.command.insert(result_.command.end(), parsed.reproducible.begin(), parsed.reproducible.end());
  if (!common_.json.empty()) refuse_foreign_text("--json", result_.command);
  result_.workload = name;
  result_.seed = common_.seed;
  result_.data = common_.data == "on";
  result_.fidelity = common_.run_options().fidelity;
}

std::vector<std::string> Run::inputs() const {
  std::vector<std::string> inputs;
  for (const nlohmann::ordered_json* text : {&result_.ccl, &result_.tuned}) {
    if (!text->is_null()) inputs.push_back(text->get<std::string>());
  }
  for (const auto& [file, hash] : result_.files.items()) inputs.push_back(hash.get<std::string>());
  return inputs;
}

void Run::hash_files() {
  std::vector<std::string> files = workload_->files();
  files.insert(files.end(), common_.plugins.begin(), common_.plugins.end());
  if (!common_.ccl.empty()) {
    const std::vector<std::string> modules = ccl::Registry::of(common_.ccl)->module_files();
    files.insert(files.end(), modules.begin(), modules.end());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (std::filesystem::is_regular_file(file)) result_.files[file] = identity_of(file);
  }
}

void Run::refuse_overwriting(std::vector<std::string> inputs, const NamedFiles& outputs) const {
  inputs.push_back(common_.ccl);
  for (const auto& [file, hash] : result_.files.items()) inputs.push_back(file);
  kernbench::refuse_overwriting(inputs, outputs);
}

void Run::compare_plugins(const Arguments& before) const {
  std::set<std::string> known;
  for (const std::string& file : before) {
    if (earlier_->files.contains(file)) known.insert(earlier_->files[file].get<std::string>());
  }
  for (const std::string& file : before.empty() ? Arguments() : common_.plugins) {
    if (known.count(result_.files.value(file, "")) == 0)
      throw UsageError(fmt::format("{} is not the plug-in of the earlier run", quote(file)),
                       "give the one that it was, or the whole command without --from");
  }
}

void Run::compare_files(const Arguments& given) const {
  const bool other_ccl = !values_of("--ccl", given).empty();
  for (const auto& [file, hash] : earlier_->files.items()) {
    const auto now = result_.files.find(file);
    const bool named = std::any_of(given.begin(), given.end(), [&file = file](const std::string& word) {
      return word.find(file) != std::string::npos;
    });
    if (now == result_.files.end() || *now == hash || named || other_ccl) continue;
    throw UsageError(fmt::format("'{}' is not what it was in the earlier run", file),
                     "give the option that names it again to run with it all the same");
  }
}

topology::Resolved Run::resolve() const {
  if (!earlier_) return topology::resolve(machine_.topology, machine_.sets);
  topology::Resolved resolved = topology::resolve_json(earlier_->config, common_.from, machine_.sets);
  compare_layout(resolved.spec);
  return resolved;
}

void Run::compare_layout(const topology::SystemSpec& spec) const {
  const bool named = std::any_of(machine_.sets.begin(), machine_.sets.end(),
                                 [](const std::string& set) { return set.rfind("cube_mesh=", 0) == 0; });
  if (named || !earlier_->files.contains(spec.cube_mesh)) return;
  if (earlier_->files[spec.cube_mesh] == topology::hash_of(spec.cube_mesh_text)) return;
  throw UsageError(fmt::format("'{}' is not what it was in the earlier run", spec.cube_mesh),
                   fmt::format("give --set cube_mesh={} to run with it all the same", spec.cube_mesh));
}

/// Not where somebody looks at what the machine does. Asking for it there is refused.
bool Run::may_replay() const {
  if (workload_->observer() == nullptr && workload_->may_replay()) return true;
  if (common_.replay.empty()) return false;
  throw UsageError(fmt::format("--replay {} with {}", common_.replay, result_.workload),
                   "it reports what the machine counts, which repeats do not: leave it out");
}

Report Run::simulate(const topology::Resolved& resolved, const topology::Plan& plan, const Interrupt& interrupt,
                     const std::vector<const OutputFile*>& files) {
  NamedFiles outputs = common_.outputs();
  for (const std::string& file : workload_->outputs()) outputs.emplace_back("an output", file);
  refuse_overwriting(resolved.files, outputs);
  result_.config = resolved.config;
  // Tuned times that ship decide the result as the machine does.
  const std::string tuned = ccl::TunedTable::shipped(ccl::machine_key(plan.map)).yaml();
  if (!tuned.empty()) result_.tuned = tuned;
  if (earlier_ && earlier_->tuned != result_.tuned && earlier_->config == resolved.config) {
    throw UsageError(
        fmt::format("'tuned' in {} is not what ships for the machine of its 'config'", quote(common_.from)),
        fmt::format("if 'config' was edited, leave it as it was and give --set KEY=VALUE; else run it with the version "
                    "that wrote the file ({}; this is {}), or with --algorithm NAME and without --from",
                    earlier_->version, kVersion));
  }
  result_.config_hash = resolved.hash;
  for (const std::string& input : inputs()) result_.config_hash = topology::hash_of(result_.config_hash + input);
  const topology::SystemSpec& spec = resolved.spec;
  if (!spec.cube_mesh.empty()) result_.files[spec.cube_mesh] = topology::hash_of(spec.cube_mesh_text);
  result_.map = &plan.map;
  result_.fidelity = topology::fidelity_that_holds(plan, result_.fidelity);

  const std::uint64_t sample = common_.replay_sample();
  const bool replays = sample > 0 && may_replay();
  Simulation simulation(plan, common_, interrupt, workload_->observer(), replays);
  for (const OutputFile* file : files) simulation.owns(file->temporary());
  ReplayEnergy replayed(simulation.machine(), plan);
  if (replays) {
    const auto map = [&machine = simulation.machine()](int sip, const MapEntry& entry) {
      machine.page_table(static_cast<std::uint16_t>(sip)).map(entry);
    };
    std::vector<ReplayRecord*> records = simulation.replay_records();
    records.push_back(&replayed);
    simulation.runtime().set_replay({sample, common_.seed, alike_sips(plan), records, common_.watched(),
                                     refresh_of(plan), map, workload_->long_work()});
  }
  Session::Options options;
  options.seed = common_.seed;
  options.ccl_file = common_.ccl;
  options.explain = common_.explain;
  options.only_checked = only_check_;
  options.topology = resolved.spec.name;
  options.run = common_.run_options();
  options.run.fidelity = result_.fidelity;
  options.plan = &plan;
  options.machine = &simulation.machine();
  options.energy = [&simulation, &replayed, &plan](Ps elapsed) {
    std::vector<topology::EnergyRow> rows = topology::energy(simulation.machine(), plan, elapsed);
    replayed.add(rows);
    return rows;
  };
  if (shows_table_) {
    options.tell = [](const std::string& text) {
      show_text(text);
      std::fflush(stdout);
    };
  }
  Session session(plan.map, simulation.runtime(), options, [this, &simulation] {
    if (only_check_) throw NothingRefused();
    simulation.run();
  });

  Report report;
  std::exception_ptr error;
  try {
    report = workload_->run(session);
  } catch (...) {
    error = plugin_.empty() ? std::current_exception() : as_programs(std::current_exception(), plugin_);
  }
  std::string ignored;  // of a run that is refused: outputs of earlier ones stay
  if (error && classify(error, ignored) == ExitCode::bad_input) std::rethrow_exception(error);
  for (const std::string& glob : simulation.unmatched_filters()) {
    say(fmt::format("kernbench: warning: --wave-filter {} matches no signal\n", quote(glob)));
  }
  result_.sim_time = simulation.now();
  result_.energy = options.energy(result_.sim_time);
  if (simulation.runtime().replays()) result_.replay = simulation.runtime().replay_report();
  nlohmann::ordered_json statistics;
  try {
    statistics = simulation.statistics(!error, result_.energy);
  } catch (const std::logic_error&) {
    if (!error) error = std::current_exception();
  }
  races_ = races_text(simulation.machine().races());
  if (!error) result_.critical_path = simulation.critical_path();
  if (!error) result_.explanation = simulation.explanation();
  if (common_.stats_in_json || !common_.report.empty()) result_.statistics = std::move(statistics);
  if (common_.verbose) say_more(simulation);
  simulation.finish_outputs();  // also of a run that failed: its waves say why
  if (!common_.vcd.empty() && common_.waves().from >= result_.sim_time && !common_.wave_window.empty())
    say(fmt::format("kernbench: warning: no waves: the run ended at {}, before --wave-window\n",
                    readable(result_.sim_time)));
  const bool late = !common_.trace_window.empty() && common_.traced().from >= result_.sim_time;
  if (late)
    say(fmt::format("kernbench: warning: the trace is empty: the run ended at {}, before --trace-window\n",
                    readable(result_.sim_time)));
  if (!late && simulation.trace_is_empty())
    say("kernbench: warning: the trace is empty: nothing is within --trace-filter and --trace-window\n");
  if (error) std::rethrow_exception(error);

  result_.results = std::move(report.results);
  return report;
}

ExitCode Run::execute() {
  const Interrupt interrupt(Interrupt::If::soon);
  const topology::Resolved resolved = resolve();
  const topology::Plan plan = plan_of(resolved, machine_name());
  say(throttle_warnings(resolved, plan, machine_name()));
  // Opened before the run: an hour of simulation shall not end at a folder that does not exist.
  std::optional<OutputFile> json, page;
  if (!common_.json.empty() && common_.json != "-") json.emplace(common_.json);
  if (!common_.report.empty() && render_) page.emplace(common_.report);
  std::vector<const OutputFile*> files;
  for (const auto* file : {&json, &page}) {
    if (!*file) continue;
    interrupt.owns((*file)->temporary());
    files.push_back(&**file);
  }
  shows_table_ = common_.json != "-";
  const Report report = simulate(resolved, plan, interrupt, files);
  publish(report, plan, json ? &*json : nullptr, page ? &*page : nullptr);
  if (!races_.empty()) {
    say(races_);
    return ExitCode::check_failed;
  }
  return report.wrong ? ExitCode::check_failed : ExitCode::success;
}

void Run::check(const topology::Resolved& resolved) {
  const Interrupt interrupt;
  only_check_ = true;
  try {
    simulate(resolved, plan_of(resolved, machine_name()), interrupt, {});
  } catch (const NothingRefused&) {
  }
}

Run::Finished Run::execute_silently(const topology::Resolved& resolved) {
  const Interrupt interrupt;
  const topology::Plan plan = plan_of(resolved, machine_name());
  const bool wrong = simulate(resolved, plan, interrupt, {}).wrong;
  return {point_json(result_), wrong};
}

void Run::say_more(Simulation& simulation) const {
  const nlohmann::ordered_json all = to_json(result_, host_), &machine = all["machine"], &host = all["host"];
  const std::string text = fmt::format(
      "kernbench: configuration {}: {}, {}, {}\n"
      "kernbench: {} of simulated time, {} events; wall {:.2f} s, CPU {:.2f} s, memory {:.0f} MiB\n",
      result_.config_hash, counted(machine["sips"].get<int>(), "SIP"),
      counted(machine["cubes"].get<std::int64_t>(), "cube"), counted(machine["pes"].get<std::int64_t>(), "PE"),
      readable(simulation.now()), simulation.machine().dispatcher().executed(), host["wall_s"].get<double>(),
      host["cpu_s"].get<double>(), host["peak_rss_bytes"].get<double>() / (1 << 20));
  say(text + describe(result_.energy));
}

void Run::publish(const Report& report, const topology::Plan& plan, OutputFile* json, OutputFile* page) {
  if (common_.json != "-")
    show_format("{}{}# {}\n", report.text, describe_replay(result_.replay, common_.simulates_repeats() && may_replay()),
                describe(result_.fidelity, common_.run_options().fidelity));
  if (common_.json != "-" && common_.explain) show_text(LaunchTable::text(result_.explanation));
  if (common_.json != "-" && common_.critical_path && !result_.critical_path.is_null())
    show_text(critical_path_text(result_.critical_path));
  if (common_.json.empty() && page == nullptr) return;
  nlohmann::ordered_json result = to_json(result_, host_);
  if (page != nullptr) {
    page->write(render_(result, plan));
    page->commit();
  }
  if (!common_.stats_in_json) result.erase("statistics");
  if (!common_.critical_path) result.erase("critical_path");
  if (common_.json == "-") fmt::print("{}\n", json_text(result, 2));
  if (json == nullptr) return;
  json->write(json_text(result, 2) + "\n");
  json->commit();
}

}  // namespace kernbench
