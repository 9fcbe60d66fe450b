#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "sc_main/bench/bench.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/fidelity_option.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/options.h"
#include "sc_main/run/result_file.h"
#include "sc_main/run/run_forked.h"
#include "sc_main/run/terminal.h"
#include "sc_main/run/version.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"

namespace kernbench {
namespace {
using bench::Bench;
using bench::Bound;
using bench::Measured;

struct BenchOptions {
  std::string fidelity = "accurate", json, filter;
  unsigned repeat = 3;
  bool check = false, sample = false;

  void add_to(po::options_description_easy_init& add) {
    add("fidelity", po::value(&fidelity)->value_name("LEVEL"), "accurate or fast (default: accurate)");
    add("repeat", po::value(&repeat)->value_name("N"), "runs of each; the median counts (default: 3)");
    add("filter", po::value(&filter)->value_name("GLOB"), "only benchmarks of this name, e.g. 'noc_*'");
    add("sample", po::bool_switch(&sample), "leaves out the ones that take a minute");
    add("check", po::bool_switch(&check), "exit code 1 if a bound is missed");
    add("json", po::value(&json)->value_name("FILE|-"), "results as JSON; '-' is standard output");
  }
};

/// A benchmark and its yardstick, measured side by side.
struct Outcome {
  Bench bench;
  Measured measured;
  double calibration_ns = 0;  ///< CPU time of one loop, beside the run that counts
  double loops = 0;           ///< CPU time per unit, in loops
  bool bounded() const { return !bench.bounds.empty(); }

  double value_of(const Bound& bound) const {
    const Measured& m = measured;
    const double values[] = {0, loops, m.cpu_s, m.peak_bytes, m.overhead_ms, m.idle_percent, m.watching_percent};
    return values[static_cast<std::size_t>(bound.of)];
  }
  bool passed() const {
    return std::all_of(bench.bounds.begin(), bench.bounds.end(),
                       [this](const Bound& bound) { return value_of(bound) <= bound.most; });
  }
};

/// In a process of its own.
Measured run_apart(const std::function<Measured()>& run, const Interrupt& interrupt) {
  const auto figures =
      run_forked({[&run] {
                   const Measured m = run();
                   return std::vector<double>{m.units,       m.cpu_s,        m.extra,           m.peak_bytes,
                                              m.overhead_ms, m.idle_percent, m.watching_percent};
                 }},
                 1, interrupt.flag());
  const std::vector<double>& m = figures.front();
  return {m.at(0), m.at(1), m.at(2), m.at(3), m.at(4), m.at(5), m.at(6)};
}

double loop_ns(const Interrupt& interrupt) {
  const Measured loop = run_apart(&bench::run_calibration, interrupt);
  return loop.cpu_s / loop.units * 1e9;
}

/// Each run stands between two of the yardstick; the run of median ratio counts.
Outcome measure(const Bench& bench, unsigned repeat, const Interrupt& interrupt) {
  std::vector<Outcome> runs;
  double before = loop_ns(interrupt);
  for (unsigned i = 0; i < repeat; ++i) {
    Outcome one{bench, run_apart(bench.run, interrupt), 0, 0};
    const double after = loop_ns(interrupt);
    one.calibration_ns = (before + after) / 2;
    one.loops = one.measured.cpu_s / one.measured.units * 1e9 / one.calibration_ns;
    runs.push_back(one);
    before = after;
  }
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const Outcome& a, const Outcome& b) { return a.loops < b.loops; });
  return *middle;
}

const char* unit_of(Bound::Of of) {
  constexpr const char* kUnits[] = {"",
                                    "loops per unit",
                                    "CPU s",
                                    "bytes of memory",
                                    "ms per unit beside the simulation",
                                    "% of the cores' time idle",
                                    "% more CPU time than without"};
  return kUnits[static_cast<std::size_t>(of)];
}

void print(const Outcome& one) {
  const Measured& m = one.measured;
  // A bench of many processes has no peak of its own.
  const std::string memory = m.peak_bytes > 0 ? fmt::format(", {:.0f} MiB", m.peak_bytes / (1 << 20)) : std::string();
  fmt::print("{:<44}{:>14.6g} per CPU s ({}), {:.4g} CPU s, {:.4g} loops each ({:.1f} ns){}\n", one.bench.name,
             m.units / m.cpu_s, one.bench.unit, m.cpu_s, one.loops, one.calibration_ns, memory);
  if (!one.bench.extra_unit.empty())
    fmt::print("{:<44}{:>14.6g} per CPU s ({})\n", "", m.extra / m.cpu_s, one.bench.extra_unit);
  if (one.bench.peer.name != nullptr)
    fmt::print("{:<44}{:>14.3g} times {} ({:g} loops)\n", "", one.bench.peer.loops / one.loops, one.bench.peer.name,
               one.bench.peer.loops);
  for (const Bound& bound : one.bench.bounds) {
    const double value = one.value_of(bound);
    fmt::print("{:<44}{:>14.6g} {}, at most {:g}: {}\n", "", value, unit_of(bound.of), bound.most,
               value <= bound.most ? "pass" : "FAIL");
  }
  std::fflush(stdout);
}

nlohmann::ordered_json to_json(const Outcome& one) {
  const Measured& m = one.measured;
  nlohmann::ordered_json json = {{"name", one.bench.name},     {"unit", one.bench.unit + " per CPU second"},
                                 {"value", m.units / m.cpu_s}, {"units", m.units},
                                 {"cpu_s", m.cpu_s},           {"calibration", one.calibration_ns},
                                 {"ratio", one.loops},         {"peak_bytes", m.peak_bytes}};
  if (!one.bench.extra_unit.empty()) {
    json["extra_unit"] = one.bench.extra_unit + " per CPU second";
    json["extra_value"] = m.extra / m.cpu_s;
  }
  if (one.bench.peer.name != nullptr) {
    json["peer"] = one.bench.peer.name;
    json["peer_loops"] = one.bench.peer.loops;
    json["times_peer"] = one.bench.peer.loops / one.loops;
  }
  json["bounds"] = nlohmann::ordered_json::array();
  for (const Bound& bound : one.bench.bounds) {
    json["bounds"].push_back({{"unit", unit_of(bound.of)},
                              {"value", one.value_of(bound)},
                              {"most", bound.most},
                              {"passed", one.value_of(bound) <= bound.most}});
  }
  return json;
}

constexpr const char* kBenchUsage =
    "Usage: kernbench bench [OPTIONS]\n\nMeasures the simulator's own speed in user CPU time, each beside a loop of "
    "the bare SystemC kernel\n(one SC_METHOD on one timed event), so that figures compare across machines.\n\n{}\n"
    "Example:\n  kernbench bench --filter 'noc_*'\n";

std::vector<Bench> selected(const BenchOptions& options) {
  const Fidelity fidelity = parse_fidelity(options.fidelity);
  if (fidelity != Fidelity::all(fidelity.noc))
    throw UsageError(fmt::format("--fidelity is {}", quote(options.fidelity)), "give 'accurate' or 'fast'");
  if (options.repeat == 0 || options.repeat > 1000) throw UsageError("--repeat is out of range", "give 1 to 1000");
  std::vector<Bench> chosen;
  std::vector<std::string> names;
  for (Bench& one : bench::benches(fidelity.noc)) {
    names.push_back(one.name);
    if (options.sample && !one.quick) continue;
    if (options.filter.empty() || ::fnmatch(options.filter.c_str(), one.name.c_str(), 0) == 0)
      chosen.push_back(std::move(one));
  }
  if (chosen.empty())
    throw UsageError(fmt::format("--filter {} matches nothing", quote(options.filter)), "benchmarks: " + join(names));
  return chosen;
}
}  // namespace

int bench_command(const Arguments& arguments) {
  BenchOptions options;
  if (!parse_or_help(arguments, kBenchUsage, described(options))) return 0;
  const std::vector<Bench> chosen = selected(options);
  DocumentOutput file(options.json);

  const HostClock host;
  const Interrupt interrupt;
  nlohmann::ordered_json json;
  json["version"] = kVersion;
  json["fidelity"] = options.fidelity;
  json["benches"] = nlohmann::ordered_json::array();
  bool passed = true;
  try {
    for (const Bench& one : chosen) {
      const Outcome outcome = measure(one, options.repeat, interrupt);
      if (options.json != "-") print(outcome);
      json["benches"].push_back(to_json(outcome));
      passed = passed && outcome.passed();
    }
  } catch (const RunsUnfinished&) {
    throw RunEnded(ExitCode::interrupted, "interrupted");
  }
  json["host"] = host.json();
  file.write(json_text(json, 2) + "\n");
  return static_cast<int>(passed || !options.check ? ExitCode::success : ExitCode::check_failed);
}

}  // namespace kernbench
