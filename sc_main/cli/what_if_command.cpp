#include <fmt/format.h>

#include "sc_main/cli/tool.h"
#include "sc_main/explore/compare/what_if.h"
#include "sc_main/explore/report/run_page.h"
#include "sc_main/explore/sweep/executor.h"
#include "sc_main/explore/sweep/progress_view.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/options.h"
#include "sc_main/run/output_names.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/result_file.h"
#include "sc_main/run/run.h"
#include "sc_main/run/terminal.h"
#include "tlm/config/json_text.h"
#include "topology/spec/resolve.h"

namespace kernbench {
namespace {
struct WhatIfOptions {
  std::string file, json, html, measure = "rows", ccl, color = "auto";
  std::vector<std::string> keys, plugins;
  unsigned jobs = 0;
  bool all_keys = false, pairs = false, quiet = false, no_progress = false;

  void add_to(po::options_description_easy_init& add) {
    add("result", po::value(&file)->value_name("RESULT.json"),
        "what 'kernbench run --json' wrote; also the first argument");
    add("keys", po::value(&keys)->value_name("GLOB")->composing(),
        "only these keys of the topology, e.g. 'cube.ucie.*'; repeatable (default: all)");
    add("all-keys", po::bool_switch(&all_keys), "also the keys of parts that change nothing as a whole");
    add("pairs", po::bool_switch(&pairs), "also every two of the six best keys");
    add("measure", po::value(&measure)->value_name("rows|run"),
        "the time that counts: of the rows of the result, or of the whole run with set-up (default: rows)");
    add("jobs,j", po::value(&jobs)->value_name("N"), "runs at a time (default: one per core)");
    add("json", po::value(&json)->value_name("FILE|-"), "the result file once more, with what was found as 'what_if'");
    add("html", po::value(&html)->value_name("FILE"), "the ranking as a page for the browser");
    add("plugin", po::value(&plugins)->value_name("FILE")->composing(),
        "of the run, as 'kernbench run --from' wants it");
    add("ccl", po::value(&ccl)->value_name("FILE"), "of the run, likewise");
    add("quiet,q", po::bool_switch(&quiet), "no table");
    add("no-progress", po::bool_switch(&no_progress), "no progress line on a terminal");
    add("color", po::value(&color)->value_name("auto|never"), "colours on standard error (default: auto)");
  }
};

constexpr const char* kWhatIfUsage =
    "Usage: kernbench what-if RESULT.json [OPTIONS]\n\nDoes the run of a result file again with each value of its "
    "machine twice as good (rates, widths, buffers,\nslots and units doubled, times and cycles halved), and ranks "
    "the keys of the topology by the time that they\nsave. The schema of the topology says which values there are; "
    "those that no legal machine can have are named\nas refused. Whole parts are tried first: keys of a part that "
    "changes nothing are left out.\n\n{}\nExample:\n  kernbench run all_reduce -b 16K -e 16K --topology ring8 --json "
    "run.json\n"
    "  kernbench what-if run.json --keys 'system.*'\n";

nlohmann::ordered_json ranked(compare::WhatIf what, const Terminal& terminal, bool progress) {
  const Interrupt interrupt;
  sweep::ProgressView view(terminal, progress);
  what.progress = [&view](const sweep::Progress& now) { view.show(now); };
  try {
    return compare::what_if(what, interrupt.flag());
  } catch (const sweep::Interrupted&) {
    throw RunEnded(ExitCode::interrupted, "interrupted; there is no result");
  }
}
}  // namespace

nlohmann::ordered_json try_what_if(const Run& run, const topology::Resolved& resolved) {
  compare::WhatIf what;
  what.arguments = run.reproducible();
  what.config = resolved.config;
  what.name = "what-if";
  return ranked(std::move(what), Terminal(), !run.common().no_progress && !run.common().quiet);
}

int what_if_command(const Arguments& arguments) {
  WhatIfOptions options;
  if (!parse_or_help(arguments, kWhatIfUsage, described(options), {"result"})) return 0;
  if (options.file.empty()) throw UsageError("no result file given", "name a file that 'kernbench run --json' wrote");
  compare::WhatIf what;
  what.measure = compare::parse_time_of(options.measure);
  what.recorded = read_rows_json(options.file, fmt::format("'{}'", options.file));
  what.config = what.recorded["config"];
  what.name = options.file;
  what.arguments = {"--from", options.file};
  if (!options.ccl.empty()) what.arguments.insert(what.arguments.end(), {"--ccl", options.ccl});
  for (const std::string& plugin : options.plugins) what.arguments.insert(what.arguments.end(), {"--plugin", plugin});
  what.keys = options.keys;
  what.all_keys = options.all_keys;
  what.pairs = options.pairs;
  what.jobs = options.jobs;
  refuse_same_files({{"--json", options.json}, {"--html", options.html}});
  refuse_same_files({{"the result file", options.file}, {"--html", options.html}});  // --json may go on with it
  refuse_foreign_endings({{"--json", options.json}, {"--html", options.html}});
  // What machine and command line are refused for is said once, here.
  const topology::Resolved resolved = topology::resolve_json(what.config, options.file);
  const Run refused_early(what.arguments);
  refused_early.refuse_overwriting({}, {{"--json", options.json}, {"--html", options.html}});
  say(throttle_warnings(resolved, plan_of(resolved, options.file), options.file));
  nlohmann::ordered_json result = what.recorded;
  DocumentOutput json(options.json), html(options.html);
  nlohmann::ordered_json block = with_results(
      quote(options.file), [&] { return ranked(std::move(what), Terminal(), !options.no_progress && !options.quiet); });
  if (!options.quiet && options.json != "-") show_text(compare::text_of(block));
  const bool failed = compare::failures(block) > 0;
  result["what_if"] = std::move(block);
  json.write(json_text(result, 2) + "\n");
  if (html.wanted()) html.write(report::render_what_if(result, "What if: " + options.file));
  return static_cast<int>(failed ? ExitCode::sweep_failed : ExitCode::success);
}

}  // namespace kernbench
