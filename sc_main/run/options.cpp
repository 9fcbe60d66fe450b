#include "sc_main/run/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>
#include <typeinfo>

#include "sc_main/run/exit_code.h"
#include "sc_main/run/fidelity_option.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/output_names.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"
#include "waves/gtkw_file.h"

namespace kernbench {
namespace {
/// Options that never change a result: outputs, display, testing; and what finds the configuration that is embedded.
constexpr std::array<const char*, 27> kNotPartOfResult{
    "json",     "vcd",          "oplog",        "wave-filter",  "wave-window",   "recorder-window",
    "watchdog", "max-sim-time", "quiet",        "verbose",      "no-progress",   "color",
    "from",     "help",         "debug",        "stats",        "stats-in-json", "stats-slices",
    "trace",    "trace-filter", "trace-window", "trace-detail", "critical-path", "what-if",
    "report",   "outputs",      "stats-detail"};

constexpr std::uint64_t kReplaySample = 64;  ///< of `--replay on`: one repeat in so many is simulated

Ps parse_time(const std::string& option, const std::string& text) {
  const QuantityResult time = parse_quantity(text, Dimension::time);
  if (!time.ok)
    throw UsageError(fmt::format("{} is {}{}", option, quote(text), time.problem),
                     time.hint.empty() ? "give a time, e.g. '10 us'" : time.hint);
  return time.value;
}

template <class T>
std::string whole_number(const po::option_description& option, const std::string& value) {
  constexpr std::array<std::pair<const char*, int>, 5> kLeast{
      {{"recorder-window", 1}, {"stepfactor", 2}, {"iters", 1}, {"jobs", 1}, {"warmup", 0}}};
  if (!value.empty() && value.find_first_not_of("0123456789") == std::string::npos)
    return fmt::format("give at most {}", std::numeric_limits<T>::max());
  for (const auto& [name, least] : kLeast) {
    if (option.long_name() == name) return fmt::format("give an integer of at least {}", least);
  }
  return std::is_signed_v<T> ? "give an integer" : "give an integer of at least 0";
}

const std::type_info& type_of(const po::option_description& option) {
  const auto* typed = dynamic_cast<const po::typed_value_base*>(option.semantic().get());
  return typed == nullptr ? typeid(void) : typed->value_type();
}

/// What an option allows whose values are numbers, of which `value` is none. Empty: it takes texts.
std::string allowed(const po::option_description& option, const std::string& value) {
  const std::type_info& type = type_of(option);
  if (type == typeid(int)) return whole_number<int>(option, value);
  if (type == typeid(unsigned)) return whole_number<unsigned>(option, value);
  if (type == typeid(std::int64_t)) return whole_number<std::int64_t>(option, value);
  if (type == typeid(std::uint64_t)) return whole_number<std::uint64_t>(option, value);
  return type == typeid(double) ? "give a number" : std::string();
}

bool takes_one(const po::option_description& option) {
  return option.semantic()->max_tokens() <= 1 && !option.semantic()->is_composing();
}

bool is_unsigned(const po::option_description& option) {
  const std::type_info& type = type_of(option);
  return type == typeid(std::uint64_t) || type == typeid(unsigned);
}

/// Reads one option as the parser would, which wraps "-1" around.
void refuse_value(const po::option& option, const po::parsed_options& given, const po::options_description& options,
                  Refusals& refusals) {
  const po::option_description* known = options.find_nothrow(option.string_key, false);
  const std::string value = option.value.empty() ? std::string() : option.value.front();
  const std::string hint = known == nullptr || option.value.empty() ? std::string() : allowed(*known, value);
  const auto refuse = [&](const char* text) {
    if (hint.empty())
      refusals.add(text, "see --help");
    else
      refusals.add(fmt::format("--{} is {}", option.string_key, quote(value)), hint);
  };
  if (known != nullptr && is_unsigned(*known) && value.rfind('-', 0) == 0) return refuse("");
  try {
    po::parsed_options alone(&options, given.m_options_prefix);
    alone.options = {option};
    po::variables_map ignored;
    po::store(alone, ignored);
  } catch (const po::error& error) {
    refuse(error.what());
  }
}

std::vector<std::string> names_of(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

UsageError unknown(const std::string& given, const po::options_description& options) {
  const std::string name = given.substr(0, given.find('='));
  const std::string near = nearest(name, names_of(options));
  return UsageError(fmt::format("unknown option {}", quote(name)),
                    near.empty() ? "see --help" : fmt::format("did you mean '{}'?", near));
}

/// Empty, these would say nothing of what was meant, as in --ccl "$CCL" of a script.
constexpr std::string_view kNeverEmpty =
    " algorithm ccl comm-group-configuration csv expect export from gemm-placement inputs json max-sim-time maxbytes "
    "minbytes oplog out-placement output outputs pattern plot replay report requests schedule stats stepbytes store "
    "trace trace-detail trace-filter trace-window vcd wave-filter wave-window weights ";

bool is_empty(const po::option& option) {
  return option.value == std::vector<std::string>{""} &&
         kNeverEmpty.find(' ' + option.string_key + ' ') != std::string_view::npos;
}

/// Refuses all values that are not of their option's type, and options given twice that take one value.
void refuse_values(const po::parsed_options& given, const po::options_description& options) {
  std::map<std::string, int> times;
  Refusals refusals;
  for (const po::option& option : given.options) {
    refuse_value(option, given, options, refusals);
    if (is_empty(option))
      refusals.add(fmt::format("--{} is ''", option.string_key), "give a value, or leave the option out");
    const po::option_description* known = options.find_nothrow(option.string_key, false);
    if (++times[option.string_key] == 2 && known != nullptr && takes_one(*known))
      refusals.add(fmt::format("option '--{}' cannot be specified more than once", option.string_key), "see --help");
  }
  refusals.throw_if_any();
}

/// Refuses all options that there are not, and values of the others.
void refuse_unknown(const Arguments& arguments, const po::options_description& options, int style) {
  po::parsed_options loose =
      po::command_line_parser(arguments).options(options).style(style).allow_unregistered().run();
  Refusals refusals;
  po::parsed_options known(&options, loose.m_options_prefix);
  for (const po::option& option : loose.options) {
    if (option.string_key.empty()) continue;  // a word that may have been meant as an unknown option's value
    if (!option.unregistered) {
      known.options.push_back(option);
    } else {
      refusals.from([&] { throw unknown(option.original_tokens.front(), options); });
    }
  }
  refusals.from([&] { refuse_values(known, options); });
  refusals.throw_if_any();
}
}  // namespace

po::options_description MachineOptions::describe() {
  po::options_description options("Machine");
  auto add = options.add_options();
  add("topology", po::value(&topology)->value_name("FILE|PRESET"),
      "the machine; 'kernbench list' names the presets (default: default)");
  add("set", po::value(&sets)->value_name("KEY=VALUE")->composing(),
      "changes a value of the topology, e.g. sip.cube_mesh.w=2; repeatable");
  return options;
}

po::options_description CommonOptions::describe() {
  po::options_description options("Every run");
  auto add = options.add_options();
  add("plugin", po::value(&plugins)->value_name("FILE")->composing(),
      "shared library with workloads of your own; repeatable; docs/api.md");
  add("ccl", po::value(&ccl)->value_name("FILE"), "ccl.yaml with the collective algorithms (default: built in)");
  add("data", po::value(&data)->value_name("on|off"),
      "off: no contents and no check. The simulated times stay the same with --replay off; in the fast grade replay is "
      "then on by default, and they differ a little (default: on)");
  add("fidelity", po::value(&fidelity)->value_name("GRADE|PART=GRADE,..."),
      "accurate or fast, for all or for parts: 'noc=fast,hbm=accurate'; parts: noc, hbm (default: accurate)");
  add("scheduling", po::value(&scheduling)->value_name("concurrent|rounds"),
      "ranks resume each when its own work is done, or all at one point in rounds (default: concurrent)");
  add("host-io", po::value(&host_io)->value_name("debug|timed"),
      "host copies of tensors take no simulated time, or go through the PCIe endpoint (default: debug)");
  add("replay", po::value(&replay)->value_name("on|off|N"),
      "launches and collectives that equal earlier ones take their times, with --data off; one repeat in N (on: 64) is "
      "simulated and compared (default: on in the fast grade, unless waves of the whole run are written)");
  add("seed", po::value(&seed)->value_name("N"), "of the data (default: 1)");
  add("debug", po::bool_switch(&debug), "extra checks: reads of unwritten bytes, races between PEs");
  add("json", po::value(&json)->value_name("FILE|-"),
      "results as JSON; '-' is standard output, with nothing else on it");
  add("vcd", po::value(&vcd)->value_name("FILE[.gz]"),
      "waves, with a GTKWave save file beside it; an FST if the name ends in .fst");
  add("wave-filter", po::value(&wave_filters)->value_name("GLOB")->composing(),
      "only these signals, e.g. 'sip0.cube3.**'; repeatable");
  add("wave-window", po::value(&wave_window)->value_name("FROM..TO"), "only this time, e.g. '10us..20us'");
  add("oplog", po::value(&oplog)->value_name("FILE[.gz]"),
      "every op of every engine, as JSON lines; as a database if the name ends in .sqlite, .sqlite3 or .db; "
      "docs/oplog.md");
  add("report", po::value(&report)->value_name("FILE.html"),
      "a page for the browser: where the time went, timeline, the machine, roofline, bounds");
  add("what-if", po::bool_switch(&what_if),
      "afterwards, the run again with every rate and room of the machine doubled and every time halved, one by one: "
      "which change saves most; see 'kernbench what-if --help'");
  add("stats", po::value(&stats)->value_name("FILE[.gz]"),
      "what every part of the machine did, in total and over time, as JSON; docs/statistics.md");
  add("stats-in-json", po::bool_switch(&stats_in_json), "the same in the file of --json, as 'statistics'");
  add("stats-slices", po::value(&stats_slices)->value_name("N"),
      "slices of time in the statistics, at most (default: 256)");
  add("stats-detail", po::bool_switch(&stats_detail),
      "virtual channels, and each reason of waiting, over time, too (--stats, --report): larger files, some 10 % more "
      "time");
  add("critical-path", po::bool_switch(&critical_path),
      "the chain of causes of the run and of each launch: what the time went for, and where; docs/critical_path.md");
  add("explain", po::bool_switch(&explain),
      "why launches take as long as they do: use of the arrays, bytes against the least, roofline, what they wait for "
      "and the keys that govern it; of a collective its bounds, and why auto chose what it chose");
  add("trace", po::value(&trace)->value_name("FILE.json[.gz]"),
      "ops, states and levels as Chrome trace events, for Perfetto; docs/trace.md");
  add("trace-filter", po::value(&trace_filters)->value_name("GLOB")->composing(),
      "only these tracks, e.g. 'sip0.cube3.**'; repeatable");
  add("trace-window", po::value(&trace_window)->value_name("FROM..TO"), "only this time, e.g. '10us..20us'");
  add("trace-detail", po::value(&trace_detail)->value_name("TIME"),
      "what of a state or level is closer together is shown as one (default: 10 ns)");
  add("watchdog", po::value(&watchdog)->value_name("SECONDS"),
      "ends a run that makes no progress for so long, by the wall clock; 0: never (default: 600)");
  add("max-sim-time", po::value(&max_sim_time)->value_name("TIME"),
      "ends the run at this simulated time, e.g. '10 ms'");
  add("from", po::value(&from)->value_name("RESULT.json"), "runs again what a result file describes");
  add("recorder-window", po::value(&recorder_window)->value_name("OPS"),
      "ops that a kernel is recorded ahead; changes no result; for testing (default: 64)");
  add("quiet,q", po::bool_switch(&quiet), "results only");
  add("verbose,v", po::bool_switch(&verbose), "machine, events and host time on standard error");
  add("no-progress", po::bool_switch(&no_progress), "no progress line on a terminal");
  add("color", po::value(&color)->value_name("auto|never"), "colours on standard error (default: auto)");
  add("help,h", "this text");
  return options;
}

void CommonOptions::check_values(Refusals& refusals) const {
  const auto one_of = [&](const char* option, const std::string& value, const char* one, const char* other) {
    if (value != one && value != other)
      refusals.add(fmt::format("{} is {}", option, quote(value)), fmt::format("give '{}' or '{}'", one, other));
  };
  one_of("--data", data, "on", "off");
  one_of("--scheduling", scheduling, "concurrent", "rounds");
  one_of("--host-io", host_io, "debug", "timed");
  one_of("--color", color, "auto", "never");
  if (recorder_window == 0) refusals.add("--recorder-window is '0'", "give an integer of at least 1");
  if (stats_slices < 2 || stats_slices > 65536)
    refusals.add(fmt::format("--stats-slices is '{}'", stats_slices), "give an integer from 2 to 65536");
  if (!(watchdog >= 0 && watchdog <= 1e9))
    refusals.add(fmt::format("--watchdog is '{}'", watchdog), "give seconds, 0 for never");
  refusals.from([this] { traced_detail(); });
  refusals.from([this] { limit(); });
  refusals.from([this] { run_options(); });
  if (!replay.empty()) refusals.from([this] { repeats_per_sample(); });
}

void CommonOptions::check(Refusals& refusals) const {
  check_values(refusals);
  if (stats_in_json && json.empty()) refusals.add("--stats-in-json without --json", "give --json FILE as well");
  if (stats_slices != kStatsSlices && stats.empty() && !stats_in_json && report.empty() && trace.empty())
    refusals.add("--stats-slices without --stats, --stats-in-json, --report or --trace", "give --stats FILE as well");
  if (stats_detail && stats.empty() && !stats_in_json && report.empty())
    refusals.add("--stats-detail without --stats, --stats-in-json or --report", "give --stats FILE as well");
  refusals.from([this] { check_outputs(); });
  refuse_foreign_endings(outputs(), refusals);
  if (vcd.empty() && !wave_filters.empty()) refusals.add("--wave-filter without --vcd", "give --vcd FILE as well");
  if (vcd.empty() && !wave_window.empty()) refusals.add("--wave-window without --vcd", "give --vcd FILE as well");
  refusals.from([this] { waves(); });
  if (trace.empty() && (!trace_filters.empty() || !trace_window.empty() || trace_detail != kTraceDetail))
    refusals.add("--trace-filter, --trace-window or --trace-detail without --trace", "give --trace FILE as well");
  refusals.from([this] { traced(); });
  if (!replay.empty()) refusals.from([this] { replay_sample(); });
}

bool CommonOptions::writes_repeats() const { return !oplog.empty() || (!trace.empty() && trace_window.empty()); }

bool CommonOptions::looks_closer() const { return !vcd.empty() && wave_window.empty(); }

std::vector<ReplayWindow> CommonOptions::watched() const {
  std::vector<ReplayWindow> windows;
  const auto add = [&](const WaveSelection& selection) { windows.push_back({selection.from, selection.to}); };
  if (!vcd.empty()) add(waves());
  if (!trace.empty() && !trace_window.empty()) add(traced());
  return windows;
}

bool CommonOptions::simulates_repeats() const {
  return replay.empty() && data == "off" && parse_fidelity(fidelity).trains() && looks_closer();
}

std::uint64_t CommonOptions::repeats_per_sample() const {
  if (replay == "off") return 0;
  const bool number = replay.size() <= 9 && replay.find_first_not_of("0123456789") == std::string::npos;
  const std::uint64_t sample = replay == "on" ? kReplaySample : number ? std::stoull(replay) : 0;
  if (sample == 0)
    throw UsageError(fmt::format("--replay is {}", quote(replay)), "give on, off or an integer of at least 1");
  return sample;
}

std::uint64_t CommonOptions::replay_sample() const {
  const bool written = looks_closer();
  if (replay.empty()) return data == "off" && parse_fidelity(fidelity).trains() && !written ? kReplaySample : 0;
  const std::uint64_t sample = repeats_per_sample();
  if (sample > 0 && data != "off")
    throw UsageError(fmt::format("--replay {} needs --data off", replay), "what is repeated has no contents", "replay");
  if (sample > 0 && written)
    throw UsageError(fmt::format("--replay {} with waves of the whole run", replay),
                     "repeats have none: leave it out, or give --wave-window", "replay");
  return sample;
}

RunOptions CommonOptions::run_options() const {
  RunOptions options;
  options.data = data == "on";
  options.debug = debug;
  options.recorder_window = recorder_window;
  options.fidelity = parse_fidelity(fidelity);
  options.timed_host_io = host_io == "timed";
  options.scheduling = scheduling == "rounds" ? SchedulingKind::rounds : SchedulingKind::concurrent;
  return options;
}

void refuse_foreign_text(const std::string& option, const Arguments& words) {
  for (const std::string& word : words) {
    if (!is_utf8(word))
      throw UsageError(fmt::format("{} is no UTF-8, as the JSON of {} has to be", quote(word), option),
                       "rename the file");
  }
}

void CommonOptions::check_outputs() const {
  for (const auto& [option, path] :
       {std::pair("--vcd", &vcd), std::pair("--oplog", &oplog), std::pair("--stats", &stats),
        std::pair("--trace", &trace), std::pair("--report", &report)}) {
    if (*path == "-")
      throw UsageError(fmt::format("{} is '-'", option), "give a file; only --json goes to standard output");
  }
  refuse_same_files(outputs());
  for (const auto& output : outputs()) {
    // What --json writes over it is the same once more.
    if (output.first != "--json") refuse_same_files({{"--from", from}, output});
  }
}

std::vector<std::pair<std::string, std::string>> CommonOptions::outputs() const {
  std::vector<std::pair<std::string, std::string>> all{{"--json", json},
                                                       {"--report", report},
                                                       {"--vcd", vcd},
                                                       {"--oplog", oplog},
                                                       {"--stats", stats},
                                                       {"--trace", trace},
                                                       {"the save file of --vcd", vcd.empty() ? vcd : gtkw_path(vcd)},
                                                       {"the folder of --vcd", vcd.empty() ? vcd : states_path(vcd)}};
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& output) { return output.second.empty(); }),
            all.end());
  return all;
}

namespace {
WaveSelection selection_of(const std::string& option, const std::vector<std::string>& globs,
                           const std::string& window) {
  WaveSelection selection;
  selection.globs = globs;
  if (window.empty()) return selection;
  const auto dots = window.find("..");
  const std::string hint = "give FROM..TO, e.g. '10us..20us'";
  if (dots == std::string::npos) throw UsageError(fmt::format("{} is {}", option, quote(window)), hint);
  if (dots > 0) selection.from = parse_time(option, window.substr(0, dots));
  if (dots + 2 < window.size()) selection.to = parse_time(option, window.substr(dots + 2));
  if (selection.from >= selection.to)
    throw UsageError(fmt::format("{} is {}, which is empty", option, quote(window)), hint);
  return selection;
}
}  // namespace

WaveSelection CommonOptions::waves() const { return selection_of("--wave-window", wave_filters, wave_window); }
WaveSelection CommonOptions::traced() const { return selection_of("--trace-window", trace_filters, trace_window); }
Ps CommonOptions::traced_detail() const { return parse_time("--trace-detail", trace_detail); }

Ps CommonOptions::limit() const { return max_sim_time.empty() ? kNever : parse_time("--max-sim-time", max_sim_time); }

std::vector<std::string> Parsed::values(const std::string& option) const {
  std::vector<std::string> values;
  for (const po::option& o : given.options) {
    if (o.string_key == option) values.insert(values.end(), o.value.begin(), o.value.end());
  }
  return values;
}

Parsed parse(const Arguments& arguments, const po::options_description& options,
             const std::vector<std::string>& positional, const Arguments& earlier) {
  // No guessing of abbreviations: an unknown name is an error with the nearest one.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::positional_options_description order;
  for (const std::string& name : positional) order.add(name.c_str(), 1);
  try {
    Parsed parsed{po::command_line_parser(arguments).options(options).positional(order).style(style).run(), {}, {}};
    po::parsed_options before = po::command_line_parser(earlier).options(options).style(style).run();
    for (auto option = before.options.begin(); option != before.options.end();) {
      const bool holds = decides_result(option->string_key);
      if (!holds) parsed.dropped.push_back("--" + option->string_key);
      option = holds ? std::next(option) : before.options.erase(option);
    }
    refuse_values(parsed.given, options);
    po::variables_map variables;
    po::store(parsed.given, variables);
    po::store(before, variables);  // does not replace what is stored
    po::notify(variables);

    const auto keep = [&](const po::option& option) {
      if (decides_result(option.string_key))
        parsed.reproducible.insert(parsed.reproducible.end(), option.original_tokens.begin(),
                                   option.original_tokens.end());
    };
    for (const po::option& option : before.options) {
      if (option.string_key == "set" || parsed.values(option.string_key).empty()) keep(option);
    }
    for (const po::option& option : parsed.given.options) keep(option);
    return parsed;
  } catch (const po::unknown_option& error) {
    refuse_unknown(arguments, options, style);
    throw unknown(error.get_option_name(), options);
  } catch (const po::too_many_positional_options_error&) {
    const po::parsed_options loose =
        po::command_line_parser(arguments).options(options).style(style).allow_unregistered().run();
    const std::vector<std::string> words = po::collect_unrecognized(loose.options, po::include_positional);
    throw UsageError(fmt::format("unexpected argument {}",
                                 quote(words.size() > positional.size() ? words[positional.size()] : std::string())),
                     "an option's value follows its name");
  } catch (const po::error& error) {
    throw UsageError(error.what(), "see --help");
  }
}

bool decides_result(const std::string& option) {
  return std::find(kNotPartOfResult.begin(), kNotPartOfResult.end(), option) == kNotPartOfResult.end();
}

bool asks_for_help(const Arguments& arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const std::string& a) { return a == "--help" || a == "-h"; });
}

std::string help_of(const po::options_description& options) {
  std::ostringstream text;
  text << options;
  return text.str();
}

bool parse_or_help(const Arguments& arguments, const char* usage, const po::options_description& options,
                   const std::vector<std::string>& positional) {
  const bool help = asks_for_help(arguments);
  if (help) fmt::print(fmt::runtime(usage), help_of(options));
  if (!help) parse(arguments, options, positional);
  return !help;
}

std::size_t misnamed_workload(const std::vector<std::string>& arguments) {
  CommonOptions common;
  MachineOptions machine;
  po::options_description known;
  known.add(machine.describe()).add(common.describe());
  std::size_t values = 0;  // that may follow
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.rfind('-', 0) != 0 && values-- == 0) return i;
    if (word.rfind('-', 0) != 0) continue;
    const bool has_value = word.find('=') != std::string::npos;
    const po::option_description* option = known.find_nothrow(word.rfind("--", 0) == 0 ? word.substr(2) : word, false);
    values = has_value ? 0 : option == nullptr ? arguments.size() : option->semantic()->max_tokens();
  }
  return arguments.size();
}

}  // namespace kernbench
