#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "ccl/select/registry.h"
#include "sc_main/run/errors.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/fidelity_option.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/interrupt.h"
#include "sc_main/run/options.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/result_file.h"
#include "sc_main/run/run.h"
#include "sc_main/run/run_forked.h"
#include "sc_main/run/terminal.h"
#include "sc_main/workloads/sizes.h"
#include "tlm/config/config_node.h"
#include "tlm/config/enum_names.h"
#include "tlm/config/nearest.h"
#include "tlm/kernel/operations.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench {
namespace {

// A user's ccl.yaml as text, whose comments and order stay.

bool same(const ConfigNode& a, const ConfigNode& b) {
  const auto same_entry = [&b](const ConfigNode::Entry& entry) {
    const ConfigNode* other = b.find(entry.key);
    return other != nullptr && same(entry.value, *other);
  };
  return a.kind == b.kind && a.text == b.text && a.quoted == b.quoted && a.entries.size() == b.entries.size() &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::all_of(a.entries.begin(), a.entries.end(), same_entry);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A ccl.yaml without the lines of its `tuned`. Comments at the start of a line before the next key are that key's.
std::string without_times(const std::string& text, const ConfigNode& root) {
  const std::vector<std::string> lines = lines_of(text);
  const ConfigNode::Entry* tuned = root.entry("tuned");
  std::size_t begin = lines.size(), end = lines.size();  // counted from 0
  if (tuned != nullptr) {
    begin = tuned->key_where.line - 1;
    for (const ConfigNode::Entry& entry : root.entries) {
      if (entry.key_where.line > tuned->key_where.line) end = std::min<std::size_t>(end, entry.key_where.line - 1);
    }
    while (end > begin + 1 && end < lines.size() && lines[end - 1].rfind('#', 0) == 0) --end;
  }
  std::string rest;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i < begin || i >= end) rest += lines[i] + "\n";
  }
  return rest;
}

/// The text of the ccl.yaml `file` with `times` (a `tuned:` and its list) at its end, in place of those that it has.
/// Throws ConfigError if it would not read back as just that.
std::string with_times(const std::string& text, const std::string& file, const std::string& times) {
  ConfigNode wanted = parse_config(text, file);
  const std::string result = without_times(text, wanted) + times;
  wanted.set("tuned", wanted.where, *parse_config(times, "tuned times").find("tuned"));
  try {
    if (same(parse_config(result, file), wanted)) return result;  // JSON it is no longer, if it was
  } catch (const ConfigError&) {                                  // of a text that nobody has seen
  }
  throw ConfigError(
      wanted.where, "times cannot be written into this file",
      "begin 'algorithms' and 'tuned' at the start of a line each, in one document without braces around it");
}

/// The text of the ccl.yaml `from`, which reads without errors, for a file `to`: if that lies in another folder,
/// modules that are named from the old one get their full paths. Throws ConfigError at one that cannot be replaced.
std::string moved(const std::string& text, const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  const fs::path old_folder = fs::absolute(from).parent_path(), folder = fs::absolute(to).parent_path();
  std::error_code unknown;
  if (fs::equivalent(old_folder, folder, unknown)) return text;
  std::vector<std::string> lines = lines_of(text);
  const ConfigNode root = parse_config(text, from);
  for (const ConfigNode::Entry& entry : root.find("algorithms")->entries) {
    const ConfigNode& module = *entry.value.find("module");
    if (fs::path(module.text).is_absolute() || ccl::is_builtin(module.text)) continue;
    std::string& line = lines[module.where.line - 1];
    const std::size_t at = module.where.column - 1 + (module.quoted ? 1 : 0);
    if (at > line.size() || line.compare(at, module.text.size(), module.text) != 0)
      throw ConfigError(module.where, fmt::format("the path of a module cannot be carried over to {}", to),
                        "give it in full");
    line.replace(at, module.text.size(), (old_folder / module.text).lexically_normal().string());
  }
  std::string result;
  for (const std::string& line : lines) result += line + "\n";
  return result;
}

struct TuneOptions {
  MachineOptions machine;
  std::string ccl, output = "-", fidelity = "fast", scope = "sip",
                   ops = "all_reduce,all_gather,reduce_scatter,all_to_all";
  SizeRange sizes;
  unsigned iterations = 4;
  unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
  bool quiet = false;

  void add_to(po::options_description_easy_init& add) {
    add("ops", po::value(&ops)->value_name("LIST"),
        "operations, joined by commas (default: all_reduce,all_gather,reduce_scatter,all_to_all)");
    add("minbytes,b", po::value(&sizes.least)->default_value("1K"), "smallest size of f32, as nccl-tests counts it");
    add("maxbytes,e", po::value(&sizes.most)->default_value("16M"), "largest size");
    add("stepfactor,f", po::value(&sizes.factor)->default_value(4), "factor from size to size");
    add("iters,n", po::value(&iterations)->value_name("N"),
        "iterations whose mean counts: one alone may meet a refresh of the HBM (default: 4)");
    add("scope", po::value(&scope)->value_name("SCOPE"), "sip, cube or pe (default: sip)");
    add("fidelity", po::value(&fidelity)->value_name("LEVEL"), "accurate or fast, or parts (default: fast)");
    add("ccl", po::value(&ccl)->value_name("FILE"),
        "algorithms to measure, and earlier times to keep (default: the built-in ones)");
    add("output,o", po::value(&output)->value_name("FILE|-"),
        "ccl.yaml to write, for --ccl of later runs (default: standard output)");
    add("jobs", po::value(&jobs)->value_name("N"), "processes at a time (default: one per core)");
    add("quiet,q", po::bool_switch(&quiet), "no table on standard error");
  }
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<CollectiveOp> operations_with_data() {
  std::vector<CollectiveOp> list;
  for (int op = 0; op < kCollectiveOps; ++op) {
    if (kOperations[op].has_data) list.push_back(static_cast<CollectiveOp>(op));
  }
  return list;
}

/// Measures every algorithm at every size, and writes the ccl.yaml that `auto` then chooses by.
class Tuning {
 public:
  explicit Tuning(TuneOptions options) : options_(std::move(options)) {
    Refusals refusals;
    for (const std::string& op : split(options_.ops)) {
      refusals.from([&] { ops_.push_back(parse_name("--ops", op, operations_with_data())); });
    }
    if (std::set<CollectiveOp>(ops_.begin(), ops_.end()).size() != ops_.size())
      refusals.add(fmt::format("--ops is '{}'", options_.ops), "give each operation once");
    if (options_.ops.empty()) refusals.add("--ops is empty", "give at least one operation");
    refusals.from([this] { sizes_ = options_.sizes.sizes(); });
    refusals.from([this] { scope_ = parse_name<Scope>("--scope", options_.scope, 3); });
    refusals.from([this] { parse_fidelity(options_.fidelity); });
    if (options_.iterations == 0) refusals.add("--iters is '0'", "give an integer of at least 1");
    if (options_.iterations > unsigned{kMostIterations})
      refusals.add(fmt::format("--iters is '{}'", options_.iterations),
                   fmt::format("give at most {}", kMostIterations));
    if (options_.jobs == 0) refusals.add("--jobs is '0'", "give an integer of at least 1");
    refusals.throw_if_any();
    registry_ = ccl::Registry(options_.ccl);
  }

  int execute() {
    const topology::Resolved machine = topology::resolve(options_.machine.topology, options_.machine.sets);
    refuse_overwriting(machine.files, {{"--output", options_.output}});  // a ccl.yaml may get its new times in place
    refuse_overwriting(registry_.module_files(), {{"--output", options_.output}});
    DocumentOutput file(options_.output);
    const topology::Plan plan = plan_of(machine, options_.machine.topology);
    file_text(registry_.tuned());  // better refused before hours of runs
    const std::vector<std::string> names = entries_of_sips();
    const auto [times, ended] = measure(names);
    ccl::TunedTable table = registry_.tuned();
    std::vector<std::string> measured, left, refused;  // operations
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const std::size_t first = i * names.size();
      const auto begin = ended.begin() + static_cast<std::ptrdiff_t>(first);
      const bool whole =
          std::all_of(begin, begin + static_cast<std::ptrdiff_t>(names.size()), [](bool is) { return is; });
      const auto row = whole ? row_of(ccl::machine_key(plan.map), ops_[i], names, times.data() + first) : std::nullopt;
      if (row) table.replace(*row);
      (row ? measured : whole ? refused : left).emplace_back(to_string(ops_[i]));
    }
    if (!measured.empty()) file.write(file_text(table));
    if (!left.empty()) {
      throw RunEnded(ExitCode::interrupted,
                     measured.empty() ? "interrupted: no operation was measured with all algorithms"
                                      : fmt::format("interrupted: what is written has no new times of {}", join(left)));
    }
    if (!refused.empty()) {
      throw UsageError(fmt::format("no algorithm could be measured for {}", join(refused)),
                       "run it without -q to see why; ranks that are PEs (world_size) are not measured");
    }
    return 0;
  }

 private:
  /// What times_of has returned of each operation and, within it, of each of `names`.
  RunsUnfinished measure(const std::vector<std::string>& names) const {
    std::vector<std::function<std::vector<double>()>> runs;
    for (const CollectiveOp op : ops_) {
      for (const std::string& name : names) runs.push_back([this, op, name] { return times_of(op, name); });
    }
    const Interrupt interrupt;
    try {
      return {run_forked(runs, options_.jobs, interrupt.flag()), std::vector<bool>(runs.size(), true)};
    } catch (const RunsUnfinished& left) {
      return left;
    }
  }

  /// `found`: for each of `names` what times_of has returned. Nothing if none could be measured.
  std::optional<ccl::TunedTable::Row> row_of(const std::string& machine, CollectiveOp op,
                                             const std::vector<std::string>& names,
                                             const std::vector<double>* found) const {
    ccl::TunedTable::Row row{machine, op, scope_, {}, {}};
    for (const std::string& name : names) {
      const std::vector<double>& times = *found++;
      if (times.size() != 2 * sizes_.size()) continue;
      row.bytes.clear();
      std::vector<double>& ns = row.ns[name];
      for (std::size_t size = 0; size < sizes_.size(); ++size) {
        // As many as divide, which `auto` asks for: small sizes may become one.
        const auto bytes = static_cast<std::uint64_t>(times[size]);
        if (!row.bytes.empty() && bytes <= row.bytes.back()) continue;
        row.bytes.push_back(bytes);
        ns.push_back(times[sizes_.size() + size]);
      }
    }
    if (row.ns.empty()) return std::nullopt;
    report(row);
    return row;
  }

  /// Tables hold times of all SIPs as ranks: what PEs of one SIP take stands beside them for nothing.
  std::vector<std::string> entries_of_sips() const {
    std::vector<std::string> names;
    for (const std::string& name : registry_.names()) {
      if (!registry_.world_size(name)) {
        names.push_back(name);
      } else if (!options_.quiet) {
        say(fmt::format("# {}: not measured: its ranks are PEs (world_size)\n", name));
      }
    }
    return names;
  }

  /// The sizes and their times, in a process of its own. Nothing, with the reason on standard error: it does not serve
  /// the operation, or fails.
  std::vector<double> times_of(CollectiveOp op, const std::string& name) const {
    Arguments arguments = {to_string(op),
                           "--topology",
                           options_.machine.topology,
                           "--algorithm",
                           name,
                           "--scope",
                           options_.scope,
                           "-b",
                           options_.sizes.least,
                           "-e",
                           options_.sizes.most,
                           "-f",
                           std::to_string(options_.sizes.factor),
                           "-n",
                           std::to_string(options_.iterations),
                           "--data",
                           "off",
                           "--check",
                           "0",
                           "--dtype",
                           "f32",
                           "--fidelity",
                           options_.fidelity};
    for (const std::string& set : options_.machine.sets) arguments.insert(arguments.end(), {"--set", set});
    if (!options_.ccl.empty()) arguments.insert(arguments.end(), {"--ccl", options_.ccl});
    std::vector<double> found;
    try {
      Run run(arguments);
      const Run::Finished finished = run.execute_silently(run.resolve());
      for (const char* key : {"bytes", "time_ns"}) {
        for (const auto& row : finished.json.at("results")) found.push_back(row.at(key).get<double>());
      }
    } catch (...) {
      std::string reason;
      const ExitCode code = classify(std::current_exception(), reason);
      if (code == ExitCode::interrupted || code == ExitCode::environment) throw;  // says nothing of the algorithm
      if (!options_.quiet) say(fmt::format("# {} {}: not measured: {}\n", to_string(op), name, reason));
      return {};
    }
    return found;
  }

  void report(const ccl::TunedTable::Row& row) const {
    if (options_.quiet) return;
    say(fmt::format("# {}, scope {}, {} (us)\n# {:<28}", to_string(row.op), to_string(row.scope), row.machine, ""));
    for (const std::uint64_t size : row.bytes) say(fmt::format(" {:>11}", readable_bytes(size)));
    say("\n");
    for (const auto& [name, ns] : row.ns) {
      say(fmt::format("# {:<28}", name));
      for (std::size_t i = 0; i < ns.size(); ++i) {
        const bool best = std::all_of(row.ns.begin(), row.ns.end(),
                                      [i, own = ns[i]](const auto& other) { return other.second[i] >= own; });
        say(fmt::format(" {:>10.2f}{}", ns[i] / 1e3, best ? '*' : ' '));
      }
      say("\n");
    }
  }

  /// What --ccl said, or the built-in algorithms, with the times in place of those that stood there.
  std::string file_text(const ccl::TunedTable& table) const {
    std::string text;
    if (options_.ccl.empty()) {
      text = "algorithms:\n";
      for (const std::string& name : registry_.names())
        text += fmt::format("  {}: {{ module: {}{} }}\n", name, ccl::kBuiltinPrefix, name);
    } else {
      text = read_file(options_.ccl);
      if (options_.output != "-") text = moved(text, options_.ccl, options_.output);
    }
    return with_times(
        text, options_.ccl,
        fmt::format("tuned:  # by kernbench tune, the last of them with fidelity {}\n", options_.fidelity) +
            table.yaml());
  }

  const TuneOptions options_;
  ccl::Registry registry_;
  std::vector<std::uint64_t> sizes_;
  Scope scope_ = Scope::sip;
  std::vector<CollectiveOp> ops_;
};

int print_help(TuneOptions& options) {
  fmt::print(
      "Usage: kernbench tune [OPTIONS]\n\nMeasures all algorithms that serve an operation on one machine, and writes a "
      "ccl.yaml with their times.\nWith --ccl of that file `--algorithm auto` takes the fastest, at sizes between the "
      "measured ones too.\n");
  fmt::print(
      "\n{}\nExample:\n  kernbench tune --topology minimal --set system.sips.count=2 --ops all_reduce -e 4K -o "
      "tuned.yaml\n",
      help_of(described(options)) + "\n" + help_of(options.machine.describe()));
  return 0;
}

}  // namespace

int tune_command(const Arguments& arguments) {
  TuneOptions options;
  if (asks_for_help(arguments)) return print_help(options);
  po::options_description all = described(options);
  all.add(options.machine.describe());
  parse(arguments, all);
  return Tuning(std::move(options)).execute();
}

}  // namespace kernbench
