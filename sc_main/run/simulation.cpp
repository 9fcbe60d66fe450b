#include "sc_main/run/simulation.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <systemc>

#include "runtime/deadlock.h"
#include "runtime/watchdog.h"
#include "sc_main/run/critical_path.h"
#include "sc_main/run/errors.h"
#include "sc_main/run/progress.h"
#include "sc_main/run/statistics_file.h"
#include "sc_main/run/terminal.h"

namespace kernbench {

/// Taken down only in builds that look for leaks: SystemC's destructors search their registries linearly, so the
/// teardown of a large machine takes longer than its run.
struct Simulation::Model {
  Model(const topology::Plan& plan, const RunOptions& options, Observer* observer)
      : machine(plan, options, observer), runtime("host", machine.map(), machine.dispatcher(), options, observer) {
    for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  }
  topology::Machine machine;
  Runtime runtime;
};

Simulation::Simulation(const topology::Plan& plan, const CommonOptions& options, const Interrupt& interrupt,
                       Observer* listener, bool replays)
    : options_(options), interrupt_(interrupt), plan_(plan) {
  if (!options.vcd.empty()) hub_.add(vcd_.emplace(options.vcd, options.waves()));
  if (!options.oplog.empty()) written_.add(*(oplog_ = open_op_log(options.oplog)));
  if (!options.trace.empty()) written_.add(trace_.emplace(options.trace, options.traced(), options.traced_detail()));
  if (oplog_ || trace_)
    hub_.add(events_.emplace(written_, plan.map.sips, replays && options.writes_repeats(),
                             [this] { return model_->machine.dispatcher().now(); }));
  if (options.explain || !options.report.empty()) hub_.add(launches_.emplace(plan));
  if (listener != nullptr) hub_.add(*listener);
  for (const std::string& file : temporaries()) interrupt.owns(file);
  Observer* observer = vcd_ || oplog_ || trace_ || launches_ || listener != nullptr ? &hub_ : nullptr;
  if (!options.stats.empty()) interrupt.owns(stats_.emplace(options.stats, is_gzip(options.stats)).temporary());
  if (options.critical_path || options.explain || !options.report.empty()) causes_ = std::make_unique<CauseLog>();
  model_ = std::make_unique<Model>(plan, options.run_options(), observer);
  Dispatcher& dispatcher = model_->machine.dispatcher();
  for (unsigned sip = 0; sip < dispatcher.sips(); ++sip) dispatcher.queue(sip).set_causes(causes_.get());
  if (stats_ || options.stats_in_json || !options.report.empty() || trace_)
    usage_.emplace(model_->machine, plan, options.stats_slices, options.stats_detail);
}

std::vector<ReplayRecord*> Simulation::replay_records() {
  std::vector<ReplayRecord*> records;
  const auto host_now = [this] { return model_->machine.dispatcher().now(); };
  if (usage_) records.push_back(&repeated_.emplace(*usage_, options_.stats_slices, host_now));
  if (causes_) records.push_back(&repeated_causes_.emplace(*causes_, host_now));
  if (launches_) records.push_back(&*launches_);
  // Behind the statistics, which have the memories tell what they know.
  if (events_ && options_.writes_repeats()) records.push_back(&*events_);
  return records;
}

Simulation::~Simulation() {
  interrupt_.heard();  // its files are whole or gone
#ifndef KERNBENCH_TEARDOWN
  static_cast<void>(model_.release());
#endif
}

Runtime& Simulation::runtime() { return model_->runtime; }
topology::Machine& Simulation::machine() { return model_->machine; }
Ps Simulation::now() {
  const Dispatcher& dispatcher = model_->machine.dispatcher();
  return dispatcher.limit_reached() ? options_.limit() : dispatcher.latest();
}

void Simulation::run() {
  Dispatcher& dispatcher = model_->machine.dispatcher();
  dispatcher.set_stop(&interrupt_.flag());
  dispatcher.set_limit(options_.limit());
  {
    const Progress progress(Terminal(), dispatcher, !options_.no_progress && !options_.quiet, options_.limit());
    std::optional<Watchdog> watchdog;
    if (options_.watchdog > 0)
      watchdog.emplace(options_.watchdog, dispatcher, model_->runtime.host_progress(), end_at_once());
    running_ = this;
    model_->runtime.run();
    running_ = nullptr;
  }
  dispatcher.set_stop(nullptr);

  if (dispatcher.stopped()) interrupt_.heard();
  if (dispatcher.stopped())
    throw RunEnded(ExitCode::interrupted, fmt::format("interrupted at {} of simulated time", readable(now())));
  if (dispatcher.limit_reached()) {
    throw RunEnded(ExitCode::limit, fmt::format("the simulated time limit of {} (--max-sim-time) was reached",
                                                readable(options_.limit())));
  }
  model_->runtime.rethrow_failures();
  if (sc_core::sc_end_of_simulation_invoked() || sc_core::sc_get_status() == sc_core::SC_STOPPED)
    throw RunEnded(
        ExitCode::program_failed,
        fmt::format("the program called sc_stop() at {} of simulated time: it may only return from its ranks",
                    readable(now())));
  const Runtime::Outcome outcome = model_->runtime.outcome();
  if (!outcome.finished) {
    std::vector<Blocked> blocked;
    model_->machine.explain(blocked);
    throw Deadlock(deadlock_report(blocked, model_->runtime.blocked_ranks(), now(), model_->runtime.host_cycle()));
  }
}

Simulation* Simulation::running_ = nullptr;

void Simulation::end_by_cause() {
  if (running_ == nullptr) return;
  try {
    running_->model_->runtime.rethrow_failures();
  } catch (...) {
    std::string text;
    ExitCode code = classify(std::current_exception(), text);
    if (code == ExitCode::internal || code == ExitCode::bad_input) code = ExitCode::program_failed;
    say("kernbench: error: " + text + "\n");
    for (const std::string& file : running_->temporaries()) std::remove(file.c_str());
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));
  }
}

std::vector<std::string> Simulation::temporaries() const {
  std::vector<std::string> temporaries = temporaries_;
  for (const std::string& file : vcd_ ? vcd_->temporaries() : std::vector<std::string>()) temporaries.push_back(file);
  if (oplog_) temporaries.push_back(oplog_->temporary());
  if (trace_) temporaries.push_back(trace_->temporary());
  if (stats_) temporaries.push_back(stats_->temporary());
  return temporaries;
}

std::function<void(const std::string&)> Simulation::end_at_once() const {
  // A host thread that never yields cannot be ended in an orderly way; what it would have written is removed.
  return [temporaries = temporaries()](const std::string& report) {
    for (const std::string& file : temporaries) std::remove(file.c_str());
    Watchdog::exit_with_report(report);
  };
}

std::vector<std::string> Simulation::unmatched_filters() const {
  return vcd_ ? vcd_->unmatched_globs() : std::vector<std::string>();
}

/// Rates of links become counters of the trace.
void Simulation::trace_rates(const topology::RunStatistics& known, const topology::ResourceUse& use) {
  const std::string_view kind = use.kind;
  if (kind != "link" && kind != "ucie" && kind != "pcie") return;
  std::vector<std::uint64_t> bytes;
  for (const Usage::Slice& slice : use.slices) bytes.push_back(slice.bytes);
  trace_->rate(use.name, Ps{1} << known.shift, bytes);
}

nlohmann::ordered_json Simulation::statistics(bool whole, const std::vector<topology::EnergyRow>& energy) {
  if (!usage_) return nullptr;
  const bool in_result = options_.stats_in_json || !options_.report.empty(), writes = stats_ || in_result;
  std::string text;
  StatisticsText writer([&](std::string_view part) {
    if (stats_) stats_->write(part);
    if (in_result) text += part;
  });
  const auto take = [&](const topology::RunStatistics& known, const topology::ResourceUse& use) {
    if (writes) writer.take(known, use);
    if (trace_) trace_rates(known, use);
  };
  topology::RunStatistics statistics =
      usage_->collect(now(), whole, take, repeated_ ? &repeated_->repeated() : nullptr);
  compare(statistics, energy);
  if (writes) writer.finish(statistics);
  if (stats_) stats_->commit();
  if (!statistics.violations.empty()) throw std::logic_error(statistics.violations.front());
  return in_result ? nlohmann::ordered_json::parse(text) : nullptr;
}

nlohmann::ordered_json Simulation::critical_path() {
  const bool wanted = options_.critical_path || !options_.report.empty();
  return wanted ? critical_path_of(*causes_, plan_, now(), stretches()) : nlohmann::ordered_json();
}

nlohmann::ordered_json Simulation::explanation() const {
  return launches_ ? launches_->json(model_->runtime.host_trace(), *causes_) : nlohmann::ordered_json();
}

/// As the program names them; if it does not, what rank 0 has waited for, one after the other.
std::vector<Stretch> Simulation::stretches() {
  std::vector<Stretch> stretches = model_->runtime.stretches(now());
  if (!stretches.empty()) return stretches;
  for (const HostTraceEntry& entry : model_->runtime.host_trace()) {
    const Ps last = stretches.empty() ? 0 : stretches.back().end;
    if (entry.rank == 0 && entry.t_submit >= last && entry.t_complete > entry.t_submit)
      stretches.push_back({entry.name, entry.t_submit, entry.t_complete, true});
  }
  return stretches;
}

void Simulation::finish_outputs() {
  std::exception_ptr error;  // one that cannot be written does not keep the other from being whole
  const auto attempt = [&error](auto&& finish) {
    try {
      finish();
    } catch (const OutputError&) {
      if (!error) error = std::current_exception();
    }
  };
  if (vcd_ || trace_) attempt([this] { model_->machine.flush(); });
  const std::vector<Stretch> stretches = vcd_ || trace_ ? this->stretches() : std::vector<Stretch>();
  if (trace_) trace_->add(stretches);
  if (vcd_) attempt([&] { vcd_->finish(now(), stretches); });
  if (oplog_) attempt([this] { oplog_->finish(); });
  if (trace_) attempt([this] { trace_->finish(); });
  if (error) std::rethrow_exception(error);
}

}  // namespace kernbench
