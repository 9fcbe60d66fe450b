#include <fmt/format.h>

#include "sc_main/cli/tool.h"
#include "sc_main/explore/compare/diff.h"
#include "sc_main/explore/report/run_page.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/options.h"
#include "sc_main/run/output_names.h"
#include "sc_main/run/result_file.h"
#include "sc_main/run/terminal.h"
#include "tlm/config/json_text.h"

namespace kernbench {
namespace {
struct DiffOptions {
  std::string a, b, json, html;

  void add_to(po::options_description_easy_init& add) {
    add("a", po::value(&a)->value_name("A.json"), "a result of 'kernbench run --json'; also the first argument");
    add("b", po::value(&b)->value_name("B.json"), "another one; also the second argument");
    add("json", po::value(&json)->value_name("FILE|-"), "the differences as JSON");
    add("html", po::value(&html)->value_name("FILE"), "the differences as a page for the browser");
  }
};

constexpr const char* kDiffUsage =
    "Usage: kernbench diff A.json B.json [OPTIONS]\n\nWhat changed from one run to another: settings, configuration "
    "by dotted key, results row by row (matched by\nwhat they measure: op, size, layer), layers and their kernels, "
    "energy.\n\n{}\nExample:\n  kernbench run p2p --topology minimal --json a.json\n"
    "  kernbench run p2p --topology minimal --set cube.noc.clock=\"2 GHz\" --json b.json\n"
    "  kernbench diff a.json b.json\n";
}  // namespace

int diff_command(const Arguments& arguments) {
  DiffOptions options;
  if (!parse_or_help(arguments, kDiffUsage, described(options), {"a", "b"})) return 0;
  if (options.a.empty() || options.b.empty())
    throw UsageError("two result files are wanted", "kernbench diff A.json B.json");
  const nlohmann::ordered_json a = read_rows_json(options.a, fmt::format("'{}'", options.a)),
                               b = read_rows_json(options.b, fmt::format("'{}'", options.b));
  for (const std::string& result : {options.a, options.b})
    refuse_same_files({{"the result file", result}, {"--json", options.json}, {"--html", options.html}});
  refuse_foreign_endings({{"--json", options.json}, {"--html", options.html}});
  DocumentOutput json(options.json), html(options.html);
  const auto found =
      with_results(fmt::format("'{}' or '{}'", options.a, options.b), [&] { return compare::diff(a, b); });
  if (options.json != "-") show_text(compare::diff_text(found, options.a, options.b));
  json.write(json_text(found, 2) + "\n");
  if (html.wanted()) html.write(report::render_diff(found, options.a, options.b));
  return 0;
}

}  // namespace kernbench
