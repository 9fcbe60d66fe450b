#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "sc_main/bench/bench.h"
#include "sc_main/process/program.h"

namespace kernbench::bench {
namespace {
/// The tool, run to a good end.
process::ProgramEnd run_watched(const std::vector<std::string>& words) {
  const process::ProgramEnd end = process::run_program(words);
  if (end.code != 0) throw std::runtime_error(fmt::format("'{}' failed", fmt::join(words, " ")));
  return end;
}

/// The same run without and with an option, by turns: the least of five each, since a computer's other work only ever
/// adds.
Measured run_watching(Grade grade, const std::vector<std::string>& option) {
  const Folder folder;
  const std::vector<std::string> plain{process::own_path(),
                                       "run",
                                       "all_reduce",
                                       "-b",
                                       "1M",
                                       "-e",
                                       "1M",
                                       "-w",
                                       "0",
                                       "-q",
                                       "--topology",
                                       "ring8",
                                       "--fidelity",
                                       to_string(grade)};
  std::vector<std::string> watched = plain;
  watched.push_back(option.front());
  for (std::size_t i = 1; i < option.size(); ++i) watched.push_back(folder.file(option[i].c_str()));
  double without = std::numeric_limits<double>::max(), with = without, peak = 0;
  for (int turn = 0; turn < 5; ++turn) {
    without = std::min(without, run_watched(plain).user_s);
    const process::ProgramEnd end = run_watched(watched);
    with = std::min(with, end.user_s);
    peak = std::max(peak, end.peak_bytes);
  }
  Measured measured{1, with, 0, peak};
  measured.watching_percent = std::max(0.0, 100 * (with / without - 1));
  return measured;
}
}  // namespace

// What it may cost to look inside a run: statistics 5% of CPU, critical path 20%, a trace as much as the run; of
// memory at most half of what the run takes without, which is 175 MB.
constexpr double kMostMemory = 256.0 * (1 << 20);

std::vector<Bench> watch_benches(Grade grade) {
  const auto bench = [grade](const char* name, double most, const std::vector<std::string>& option) {
    return Bench{std::string("watching_") + name,
                 "run",
                 "",
                 {{Bound::Of::watching_percent, most}, {Bound::Of::peak_bytes, kMostMemory}},
                 [grade, option] { return run_watching(grade, option); },
                 false};
  };
  return {bench("statistics", 5, {"--stats", "run.stats.json"}), bench("critical_path", 20, {"--critical-path"}),
          bench("trace", 100, {"--trace", "run.trace.json.gz"})};
}

}  // namespace kernbench::bench
