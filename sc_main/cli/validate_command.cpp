#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "sc_main/run/exit_code.h"
#include "sc_main/run/fidelity_option.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/options.h"
#include "sc_main/run/result_file.h"
#include "sc_main/run/run_forked.h"
#include "sc_main/run/terminal.h"
#include "sc_main/run/version.h"
#include "sc_main/validate/validate.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"
#include "waves/output_file.h"

namespace kernbench {
namespace {
namespace fs = std::filesystem;
using validate::Case;
using validate::Domain;
using validate::Group;
using validate::Judged;

struct ValidateOptions {
  std::string domain, reference, fidelity = "accurate", json, filter, plot, color = "auto";
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool sample = false, quiet = false, no_progress = false;

  void add_to(po::options_description_easy_init& add) {
    add("domain", po::value(&domain), "what to hold against its references; also the first argument");
    add("reference", po::value(&reference)->value_name("DIR"),
        "folder of tables: one folder per domain, or the tables of this one (default: the tool's own)");
    add("fidelity", po::value(&fidelity)->value_name("LEVEL"),
        "accurate or fast, or parts: 'noc=fast' (default: accurate)");
    add("sample", po::bool_switch(&sample), "a representative part that takes seconds");
    add("filter", po::value(&filter)->value_name("GLOB"), "only the tables or rows of this name, e.g. 'mesh4x4_*'");
    add("jobs", po::value(&jobs)->value_name("N"), "processes at a time (default: one per core)");
    add("json", po::value(&json)->value_name("FILE|-"), "all cases as JSON; '-' is standard output");
    add("plot", po::value(&plot)->value_name("DIR"), "draws reference against measured into SVG files there");
    add("quiet,q", po::bool_switch(&quiet), "only the cases outside their limits, and the summary");
    add("no-progress", po::bool_switch(&no_progress), "no progress line on a terminal");
    add("color", po::value(&color)->value_name("auto|never"), "colours on standard error (default: auto)");
  }
};

const Domain& find_domain(const std::string& name) {
  std::vector<std::string> names;
  for (const Domain& domain : validate::domains()) {
    if (domain.name == name) return domain;
    names.emplace_back(domain.name);
  }
  if (name.empty()) throw UsageError("no domain given", "domains: " + join(names));
  throw UsageError(fmt::format("unknown domain {}", quote(name)), suggest(name, names, "domains"));
}

int print_help(ValidateOptions& options) {
  fmt::print(
      "Usage: kernbench validate DOMAIN [OPTIONS]\n\nRuns the cases of reference tables and closed forms and "
      "compares.\n\nDomains:\n");
  for (const Domain& domain : validate::domains()) show_format("  {:<18}{}\n", domain.name, domain.help);
  show_format("\n{}\nExample:\n  kernbench validate noc --sample\n", help_of(described(options)));
  return 0;
}

struct Summary {
  std::size_t cases = 0, judged = 0, within = 0;
  double worst = 0;
  std::string worst_case;

  explicit Summary(const std::vector<Case>& all) : cases(all.size()) {
    for (const Case& one : all) {
      if (!one.judged) continue;
      ++judged;
      if (one.within()) ++within;
      if (one.deviation() > worst || worst_case.empty()) {
        worst = one.deviation();
        worst_case = one.name;
      }
    }
  }
  bool passed() const { return within == judged; }
};

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

/// A validation from its command line to its verdict.
class Validation {
 public:
  explicit Validation(ValidateOptions options) : options_(std::move(options)), domain_(find_domain(options_.domain)) {
    fidelity_ = parse_fidelity(options_.fidelity);
    if (options_.jobs == 0) throw UsageError("--jobs is '0'", "give an integer of at least 1");
    if (options_.color != "auto" && options_.color != "never")
      throw UsageError(fmt::format("--color is {}", quote(options_.color)), "give 'auto' or 'never'");
  }

  int execute() {
    DocumentOutput json(options_.json);
    make_plot_folder();
    const std::vector<Group> groups = selected();
    for (const Group& group : groups) {
      for (const std::string& row : group.skipped) say(row + "\n  that row is skipped\n");
      skipped_ += group.skipped.size();
    }
    const std::vector<validate::Figures> figures = run(groups);

    std::size_t next = 0;
    for (const Group& group : groups) {
      const auto begin = figures.begin() + static_cast<std::ptrdiff_t>(next);
      next += group.runs.size();
      Judged judged = group.verdict({begin, begin + static_cast<std::ptrdiff_t>(group.runs.size())});
      cases_.insert(cases_.end(), judged.cases.begin(), judged.cases.end());
      if (options_.plot.empty()) continue;
      for (const validate::Plot& plot : judged.plots) write_plot(plot);
    }
    if (cases_.empty() && skipped_ > 0)
      throw UsageError(fmt::format("nothing was compared: all rows are skipped, {} of them", skipped_),
                       "give a table with rows of known names");
    if (!options_.plot.empty()) write_plot(validate::error_plot(domain_.name, cases_));
    const Summary summary(cases_);
    if (options_.json != "-") print(summary);
    json.write(json_text(to_json(summary), 2) + "\n");
    return static_cast<int>(summary.passed() ? ExitCode::success : ExitCode::check_failed);
  }

 private:
  void write_plot(const validate::Plot& plot) const {
    write_file((fs::path(options_.plot) / (plot.file + ".svg")).string(), to_svg(plot));
  }

  void make_plot_folder() const {
    if (options_.plot.empty()) return;
    std::error_code error;
    fs::create_directories(options_.plot, error);
    if (error) throw OutputError(fmt::format("cannot make folder '{}': {}", options_.plot, error.message()));
  }

  std::vector<Group> selected() const {
    validate::Request request;
    request.fidelity = fidelity_;
    request.fast = fidelity_.of(domain_.part) == Grade::fast;
    request.sample = options_.sample;
    const std::string folder = domain_.folder;
    if (!folder.empty()) request.reference = validate::reference_folder(options_.reference, folder);
    if (folder.empty() && !options_.reference.empty())
      throw UsageError(fmt::format("--reference: '{}' has closed forms, no tables", domain_.name), "leave it out");
    std::vector<Group> groups = domain_.groups(request);
    if (options_.filter.empty()) return groups;
    std::vector<Group> chosen;
    for (Group& group : groups) {
      if (::fnmatch(options_.filter.c_str(), group.name.c_str(), 0) == 0) chosen.push_back(std::move(group));
    }
    if (chosen.empty())
      throw UsageError(fmt::format("--filter {} matches nothing", quote(options_.filter)),
                       groups.empty() ? std::string() : fmt::format("names are like '{}'", groups.front().name));
    return chosen;
  }

  std::vector<validate::Figures> run(const std::vector<Group>& groups) const {
    std::vector<std::function<validate::Figures()>> runs;
    for (const Group& group : groups) runs.insert(runs.end(), group.runs.begin(), group.runs.end());
    const Interrupt interrupt;
    const bool progress = Terminal().interactive() && !options_.no_progress && !options_.quiet;
    const auto done = [&](std::size_t finished) {
      if (progress) std::fputs(fmt::format("\r{} of {} runs\033[K", finished, runs.size()).c_str(), stderr);
    };
    try {
      std::vector<validate::Figures> figures = run_forked(runs, options_.jobs, interrupt.flag(), done);
      if (progress) std::fputs("\r\033[K", stderr);
      return figures;
    } catch (const RunsUnfinished&) {
      throw RunEnded(ExitCode::interrupted, "interrupted");
    }
  }

  static std::string percent(double fraction) {
    return std::isfinite(fraction) ? fmt::format("{:+.2f}%", fraction * 100) : "none";
  }

  void print(const Summary& summary) const {
    show_format("# {}, {}{}\n", domain_.name, to_string(fidelity_), options_.sample ? ", sample" : "");
    show_format("# {:<57} {:<45} {:>12}{:>12} {:>10}{:>9}  verdict\n", "case", "metric", "reference", "measured",
                "error", "limit");
    for (const Case& one : cases_) {
      const bool outside = one.judged && !one.within();
      if (options_.quiet && !outside) continue;
      show_format("  {:<57} {:<45} {:>12.6g}{:>12.6g} {:>10}{:>9}  {}\n", one.name, one.metric, one.reference,
                  one.measured, percent(one.error), fmt::format("{:.4g}%", one.limit * 100),
                  outside      ? "OUTSIDE"
                  : one.judged ? "within"
                               : "reported only: " + one.reason);
    }
    show_format("# {}: {} of {} judged cases within their limits, worst error {:.2f}% ({}); {} reported only{}\n",
                domain_.name, summary.within, summary.judged, summary.worst * 100,
                summary.worst_case.empty() ? "none" : summary.worst_case, summary.cases - summary.judged,
                skipped_ == 0 ? std::string()
                              : fmt::format(", {} skipped", counted(static_cast<std::int64_t>(skipped_), "row")));
  }

  nlohmann::ordered_json to_json(const Summary& summary) const {
    nlohmann::ordered_json json;
    json["version"] = kVersion;
    json["domain"] = domain_.name;
    json["fidelity"] = to_string(fidelity_);
    json["sample"] = options_.sample;
    json["cases"] = nlohmann::ordered_json::array();
    for (const Case& one : cases_) {
      json["cases"].push_back({{"case", one.name},
                               {"metric", one.metric},
                               {"reference", number(one.reference)},
                               {"measured", number(one.measured)},
                               {"error", number(one.error)},
                               {"limit", number(one.limit)},
                               {"within", one.within()},
                               {"judged", one.judged},
                               {"reason", one.reason}});
    }
    json["summary"] = {{"cases", summary.cases},
                       {"judged", summary.judged},
                       {"within", summary.within},
                       {"skipped", skipped_},
                       {"worst_error", number(summary.worst)},
                       {"worst_case", summary.worst_case}};
    json["host"] = host_.json();
    return json;
  }

  HostClock host_;
  const ValidateOptions options_;
  const Domain& domain_;
  Fidelity fidelity_;
  std::vector<Case> cases_;
  std::size_t skipped_ = 0;  // rows of tables
};
}  // namespace

int validate_command(const Arguments& arguments) {
  ValidateOptions options;
  if (asks_for_help(arguments)) return print_help(options);
  parse(arguments, described(options), {"domain"});
  return Validation(std::move(options)).execute();
}

}  // namespace kernbench
