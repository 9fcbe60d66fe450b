#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sc_main/cli/tool.h"
#include "sc_main/explore/report/page.h"
#include "sc_main/explore/report/run_page.h"
#include "sc_main/explore/report/store_study.h"
#include "sc_main/explore/sweep/store.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/options.h"
#include "sc_main/run/output_names.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/result_file.h"
#include "sc_main/run/terminal.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"
#include "topology/spec/resolve.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {

struct ReportOptions {
  std::string store, output, sweep, title;

  void add_to(po::options_description_easy_init& add) {
    add("store", po::value(&store)->value_name("FILE"),
        "results of a sweep or a search, or the JSON of a run; also the first argument");
    add("output,o", po::value(&output)->value_name("FILE.html"),
        "the report; - is standard output (default: beside the file, with ending .html)");
    add("sweep", po::value(&sweep)->value_name("NAME"), "which, if the store holds several");
    add("title", po::value(&title)->value_name("TEXT"),
        "heading of the report (default: the sweep's name, or the run)");
  }
};

constexpr const char* kReportUsage =
    "Usage: kernbench report STORE|RUN.json [OPTIONS]\n\nDraws the results of a sweep or a search: one HTML file "
    "with summary, scatter and Pareto front,\nparallel coordinates, sensitivity of each axis, convergence of "
    "searches, and every point with its\nconfiguration and the command that reproduces it. Of a run's JSON: where "
    "the time went, timeline, the machine, roofline, bounds and what-if,\nas far as the file has them. It needs no "
    "network.\n\n{}\nExample:\n  kernbench sweep sweep.yaml --store results.sqlite && kernbench report "
    "results.sqlite -o report.html\n";

constexpr const char* kTakes = "give a result of 'kernbench run --json', or a store of 'kernbench sweep' or 'search'";

/// The sweep that is meant: the one named, else the only sweep, else the only search.
std::string choose(const std::vector<report::StoredSweep>& stored, const ReportOptions& options) {
  std::vector<std::string> names, sweeps;
  for (const report::StoredSweep& one : stored) {
    names.push_back(one.name);
    if (one.kind == "sweep") sweeps.push_back(one.name);
  }
  if (names.empty()) throw UsageError(fmt::format("{} holds no sweep", quote(options.store)));
  if (!options.sweep.empty()) {
    if (std::find(names.begin(), names.end(), options.sweep) == names.end())
      throw UsageError(fmt::format("{} has no sweep {}", quote(options.store), quote(options.sweep)),
                       suggest(options.sweep, names, "sweeps"));
    return options.sweep;
  }
  if (names.size() == 1) return names.front();
  if (sweeps.size() == 1) return sweeps.front();
  throw UsageError(fmt::format("{} holds {} sweeps", quote(options.store), names.size()),
                   "choose one with --sweep: " + join(names));
}

/// A result of `run --json`, not a store: it is text and begins with a brace. Throws where it is neither.
bool is_json(const std::string& path) {
  constexpr std::string_view kDatabase = "SQLite format 3";
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string head(kDatabase.size(), '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!in.is_open() || in.bad())
    throw OutputError(
        fmt::format("cannot read '{}': {}\n  hint: {}", path, std::strerror(errno == 0 ? EISDIR : errno), kTakes));
  head.resize(static_cast<std::size_t>(in.gcount()));
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && head[first] == '{') return true;
  if (head != kDatabase)
    throw UsageError(fmt::format("'{}' is no result of a run, and no store of a sweep", path), kTakes);
  return false;
}

/// What its command calls the machine.
std::string machine_of(const nlohmann::ordered_json& result) {
  Arguments command;
  for (const auto& word : result["command"]) command.push_back(word.get<std::string>());
  const Arguments named = values_of("--topology", command);
  return named.empty() ? MachineOptions().topology : named.back();
}

/// "-" is standard output, which has nothing else on it.
void write_page(const std::string& output, const std::string& page, const std::string& about) {
  if (output == "-") return show_document(page);
  write_file(output, page);
  say(fmt::format("kernbench: wrote {}{}\n", output, about));
}

int report_run(const ReportOptions& options) {
  if (!options.sweep.empty()) throw UsageError("--sweep with a result of 'kernbench run'", "leave it out");
  const nlohmann::ordered_json result = read_rows_json(options.store, fmt::format("'{}'", options.store));
  const std::string page = with_results(quote(options.store), [&] {
    topology::Resolved machine = topology::resolve_json(result["config"], options.store);
    machine.spec.name = machine_of(result);
    const topology::Plan plan = plan_of(machine, options.store);
    const std::string title =
        options.title.empty() ? result.value("workload", "run") + ": " + options.store : options.title;
    return report::render_run(result, plan, title);
  });
  write_page(options.output, page, "");
  return 0;
}
}  // namespace

int report_command(const Arguments& arguments) {
  ReportOptions options;
  if (!parse_or_help(arguments, kReportUsage, described(options), {"store"})) return 0;
  if (options.store.empty()) throw UsageError("no file given", kTakes);
  if (options.output.empty()) options.output = std::filesystem::path(options.store).replace_extension(".html").string();
  refuse_same_files({{"the store", options.store}, {"--output", options.output}});
  refuse_foreign_endings({{"--output", options.output}});
  if (is_json(options.store)) return report_run(options);
  sweep::Store store(options.store, sweep::Store::Mode::read);
  try {
    report::Study study =
        report::read_study(store.database(), choose(report::stored_sweeps(store.database()), options));
    if (!options.title.empty()) study.title = options.title;
    write_page(options.output, report::render(study),
               fmt::format(": {}, {} on the front", counted(static_cast<std::int64_t>(study.points.size()), "point"),
                           study.front().size()));
  } catch (const SQLite::Exception& error) {
    throw OutputError(fmt::format("cannot read '{}': {}", options.store, error.what()));
  }
  return 0;
}

}  // namespace kernbench
