#pragma once
#include <boost/program_options.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "sc_main/run/arguments.h"
#include "tlm/base/time.h"
#include "tlm/config/refusals.h"
#include "tlm/machine/run_options.h"
#include "waves/vcd_writer.h"

namespace kernbench {
namespace po = boost::program_options;

/// Options of every command that reads a machine.
struct MachineOptions {
  std::string topology = "default";
  std::vector<std::string> sets;

  po::options_description describe();
};

/// What `option` writes as JSON holds `words`, and JSON is UTF-8; before the work, since afterwards its result would be
/// lost. Throws UsageError.
void refuse_foreign_text(const std::string& option, const Arguments& words);

/// Options that every run has.
struct CommonOptions {
  static constexpr const char* kTraceDetail = "10 ns";
  std::string ccl, data = "on", fidelity = "accurate", json, vcd, oplog, stats, trace, trace_window,
                   trace_detail = kTraceDetail, wave_window, max_sim_time, color = "auto", from,
                   scheduling = "concurrent", host_io = "debug", report, replay;
  std::vector<std::string> wave_filters, trace_filters, plugins;
  std::uint64_t seed = 1;
  unsigned recorder_window = 64;
  static constexpr unsigned kStatsSlices = 256;
  unsigned stats_slices = kStatsSlices;
  bool stats_detail = false;
  double watchdog = 600;  ///< s without progress
  bool stats_in_json = false, critical_path = false, explain = false, debug = false, quiet = false, verbose = false,
       no_progress = false, what_if = false;

  po::options_description describe();
  /// Checks what the parser cannot.
  void check(Refusals& refusals) const;
  /// Of that, what a value is refused for whatever the other options are.
  void check_values(Refusals& refusals) const;

  RunOptions run_options() const;  ///< throws UsageError
  /// One repeat in so many is simulated; 0: nothing is repeated. Throws UsageError.
  std::uint64_t replay_sample() const;
  bool writes_repeats() const;                ///< ops, or a trace of the whole run
  bool looks_closer() const;                  ///< waves of the whole run
  bool simulates_repeats() const;             ///< for these, what otherwise would be repeated
  std::vector<ReplayWindow> watched() const;  ///< of waves and trace; throws UsageError
  WaveSelection waves() const;                ///< throws UsageError
  WaveSelection traced() const;               ///< the same of --trace
  Ps traced_detail() const;                   ///< of --trace-detail; throws UsageError
  Ps limit() const;                           ///< throws UsageError; kNever without --max-sim-time
  /// By option, those that are given.
  std::vector<std::pair<std::string, std::string>> outputs() const;

 private:
  void check_outputs() const;
  std::uint64_t repeats_per_sample() const;  ///< that --replay says; 0: off. Throws UsageError
};

/// A command line, parsed.
struct Parsed {
  po::parsed_options given;  ///< the options that stand in it
  /// What decides the result: without outputs, display and test options; earlier options that were not given again
  /// first.
  Arguments reproducible;
  std::vector<std::string> dropped;  ///< earlier options that decide no result, outputs among them: they do not hold

  std::vector<std::string> values(const std::string& option) const;  ///< as given, in order
};

/// Parses `arguments` into the variables of `options`; `positional` are taken in order. `earlier`: options of an
/// earlier command line that hold where `arguments` do not say otherwise; outputs and display do not. Throws
/// UsageError: an unknown option with the nearest name, an option of a later version by name, a value that does not
/// fit.
Parsed parse(const Arguments& arguments, const po::options_description& options,
             const std::vector<std::string>& positional = {}, const Arguments& earlier = {});

bool asks_for_help(const Arguments& arguments);
/// The options as --help lists them.
std::string help_of(const po::options_description& options);

/// What a command takes, by its add_to(), and --help.
template <class Options>
po::options_description described(Options& options) {
  po::options_description all("Options");
  auto add = all.add_options();
  options.add_to(add);
  add("help,h", "this text");
  return all;
}
/// Parses as parse() does, unless help is asked for: then shows `usage`, with the options for its "{}"; false.
bool parse_or_help(const Arguments& arguments, const char* usage, const po::options_description& options,
                   const std::vector<std::string>& positional = {});

/// Whether an option, by its long name, decides the result; outputs, display and test options do not.
bool decides_result(const std::string& option);

/// Where no workload is named, the place of the word that was meant to name one; their number: there is none.
std::size_t misnamed_workload(const std::vector<std::string>& arguments);

}  // namespace kernbench
