#include "sc_main/explore/sweep/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "sc_main/run/exit_code.h"
#include "sc_main/run/options.h"
#include "tlm/config/nearest.h"
#include "topology/spec/resolve.h"

namespace kernbench::sweep {
namespace {
using topology::Field;
using topology::FieldKind;

/// Options that the sweep file says otherwise: `set`, `plugins`.
bool settable(const std::string& option) { return decides_result(option) && option != "set" && option != "plugin"; }

/// Every option of `kernbench run WORKLOAD`, with what they are bound to.
struct RunDescription {
  RunDescription(const WorkloadCatalogue& catalogue, const std::string& name) : workload(catalogue.make(name)) {
    all.add(machine.describe()).add(common.describe());
    workload->add_options(all);
  }
  std::unique_ptr<Workload> workload;
  MachineOptions machine;
  CommonOptions common;
  po::options_description all;
};

bool takes_fractions(const po::option_description& option) {
  const auto* typed = dynamic_cast<const po::typed_value_base*>(option.semantic().get());
  return typed != nullptr && (typed->value_type() == typeid(double) || typed->value_type() == typeid(float));
}

/// What an option of numbers takes, for a hint.
std::string wanted(const po::option_description& option) {
  const auto* typed = dynamic_cast<const po::typed_value_base*>(option.semantic().get());
  if (typed == nullptr) return {};
  if (takes_fractions(option)) return "give a number";
  for (const std::type_info* type : {&typeid(int), &typeid(unsigned), &typeid(std::int64_t), &typeid(std::uint64_t),
                                     &typeid(std::int32_t), &typeid(std::uint16_t)}) {
    if (typed->value_type() == *type) return "give an integer";
  }
  return {};
}
}  // namespace

std::string formula_name(const std::string& name) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::string anchored(const std::string& folder, const std::string& path) {
  const std::filesystem::path given(path);
  const bool is_path = path.find('/') != std::string::npos || !given.extension().empty();
  return is_path && !folder.empty() && given.is_relative() ? (folder / given).lexically_normal().string() : path;
}

Vocabulary::Vocabulary(const WorkloadCatalogue& catalogue, std::string workload, std::string folder)
    : catalogue_(catalogue),
      workload_(std::move(workload)),
      folder_(std::move(folder)),
      keys_(topology::value_paths()) {
  RunDescription run(catalogue_, workload_);
  const po::options_description common = run.common.describe();
  for (const auto& option : common.options()) common_.insert(option->long_name());
  for (const auto& option : run.all.options()) {
    const std::string& name = option->long_name();
    if (!settable(name)) continue;
    options_.push_back(name);
    if (option->semantic()->max_tokens() == 0) flags_.insert(name);
    if (takes_fractions(*option)) reals_.insert(name);
    const std::string shown = option->canonical_display_name(po::command_line_style::allow_dash_for_short);
    if (shown.size() == 2 && shown[0] == '-') short_names_.emplace_back(shown.substr(1), name);
  }
  for (const std::string& key : keys_) {
    for (const std::string& name : topology::find_field(key)->names) texts_.insert(name);
  }
}

std::string Vocabulary::canonical(const std::string& name) const {
  for (const auto& [brief, full] : short_names_) {
    if (name == brief) return full;
  }
  return name;
}

std::optional<ValueKind> Vocabulary::find(const std::string& name) const {
  ValueKind kind;
  if (std::find(options_.begin(), options_.end(), name) != options_.end()) {
    kind.option = name;
    kind.flag = flags_.count(name) > 0;
    kind.real = reals_.count(name) > 0;
    return kind;
  }
  const Field* field = topology::find_field(name);
  if (field == nullptr || field->kind == FieldKind::section || field->kind == FieldKind::overrides) return std::nullopt;
  kind.field = field;
  return kind;
}

std::optional<ValueKind> Vocabulary::require(const std::string& name, const Location& where, const std::string& in,
                                             Problems& problems) const {
  if (auto kind = find(canonical(name))) return kind;
  if (const Field* field = topology::find_field(name); field != nullptr) {
    const bool section = field->kind == FieldKind::section;
    problems.add(
        where, fmt::format("{} is {} of the topology, no value", quote(name), section ? "a section" : "a list"),
        section ? fmt::format("give one of its keys, such as '{}.{}'", name, field->section->fields.front().key)
                : "give a key that has one value");
    return std::nullopt;
  }
  const bool dotted_name = name.find('.') != std::string::npos;
  if (!dotted_name && name == "max-sim-time") {
    problems.add(where, "'max-sim-time' is a limit, no option of a sweep", "give 'limits: {sim_time: ...}'");
    return std::nullopt;
  }
  std::vector<std::string> all = dotted_name ? keys_ : options_;
  std::string near = nearest(name, all);
  if (near.empty()) near = nearest(name, dotted_name ? options_ : keys_);
  problems.add(where,
               dotted_name ? fmt::format("unknown key {} in '{}'", quote(name), in)
                           : fmt::format("unknown option {} of '{}' in '{}'", quote(name), workload_, in),
               !near.empty() ? fmt::format("did you mean '{}'?", near)
               : dotted_name ? std::string("'kernbench topology show' lists the keys")
                             : fmt::format("'kernbench run {} --help' lists them", workload_));
  return std::nullopt;
}

void Vocabulary::check_option(const std::string& name, const std::string& text, const Location& where,
                              Problems& problems) const {
  RunDescription run(catalogue_, workload_);
  try {
    if (flags_.count(name) > 0) {
      if (text != "true" && text != "false")
        problems.add(where, fmt::format("option '{}' is {}", name, quote(text)), "give true or false");
      return;
    }
    parse({"--" + name + "=" + text}, run.all);
    Refusals refusals;
    run.common.check_values(refusals);
    refusals.throw_if_any();
    if (name == "topology") topology::resolve(text);
  } catch (const Refused& refused) {
    for (const Refusal& refusal : refused.refusals) {
      problems.add(where, refusal.text,
                   refusal.hint == "see --help" ? wanted(run.all.find(name, false)) : refusal.hint);
    }
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) {
      const bool whole_file = problem.where.line == 0;
      problems.add(whole_file ? where : problem.where,
                   whole_file ? fmt::format("{} {}", quote(text), problem.text) : problem.text, problem.hint);
    }
  } catch (const std::invalid_argument& error) {
    problems.add(where, error.what());
  }
}

std::vector<Refusal> Vocabulary::refused_together(const Arguments& options) const {
  RunDescription run(catalogue_, workload_);
  try {
    parse(options, run.all);
    Refusals refusals;
    run.common.check(refusals);
    refusals.throw_if_any();
  } catch (const Refused& refused) {
    return refused.refusals;
  }
  return {};
}

std::optional<Setting> Vocabulary::read(const ValueKind& kind, const std::string& name, const ConfigNode& node,
                                        Problems& problems) const {
  const std::size_t before = problems.reported();
  Setting setting{name, flow_text(node), std::nullopt, kind.flag};
  if (kind.field != nullptr) {
    const topology::FieldValue value = topology::read_value(*kind.field, node, name, problems);
    if (kind.numeric()) setting.number = ValueKind::number_of(value);
    // Quotes make no other value of a number or a name, and no formula has them.
    if (node.is_scalar() && kind.field->kind != FieldKind::text) setting.text = node.text;
  } else if (!node.is_scalar()) {
    problems.add(node.where, fmt::format("option '{}' is no single value", name), "give a number or a word");
  } else {
    setting.text = name == "topology" || name == "ccl" ? anchored(folder_, node.text) : node.text;
    setting.number = kind.number_of(setting.text);
    check_option(name, setting.text, node.where, problems);
  }
  if (problems.reported() != before) return std::nullopt;
  return setting;
}

std::optional<Expression> Vocabulary::formula(const ConfigNode& node, const std::string& what, bool metrics,
                                              Problems& problems) const {
  if (!node.is_scalar() || node.text.empty()) {
    problems.add(node.where, fmt::format("{} is no formula", what), "give a text such as 'sip.cube_mesh.w <= 4'");
    return std::nullopt;
  }
  try {
    Expression expression(node.text);
    const std::size_t before = problems.reported();
    for (const std::string& name : expression.names()) check_name(name, node.where, what, metrics, problems);
    if (problems.reported() != before) return std::nullopt;
    return expression;
  } catch (const std::invalid_argument& error) {
    problems.add(node.where, fmt::format("{} {}", what, error.what()), "docs/sweep.md lists operators and functions");
    return std::nullopt;
  }
}

void Vocabulary::check_name(const std::string& name, const Location& where, const std::string& what, bool metrics,
                            Problems& problems) const {
  if (texts_.count(name) > 0) return;
  std::vector<std::string> known = keys_;
  for (const std::string& option : options_) known.push_back(formula_name(option));
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string first = name.substr(0, name.find('.'));
  const bool in_topology = name.find('.') != std::string::npos && topology::root_section().find(first) != nullptr;
  if (metrics && !in_topology) return;
  const std::string near = nearest(name, known);
  problems.add(where, fmt::format("{} names {}, which is no key, option or text", what, quote(name)),
               near.empty() ? "a formula names keys such as 'cube.noc.rows' and options"
                            : fmt::format("did you mean '{}'?", near));
}

}  // namespace kernbench::sweep
