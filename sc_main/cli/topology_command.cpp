#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "sc_main/run/exit_code.h"
#include "sc_main/run/file_identity.h"
#include "sc_main/run/options.h"
#include "sc_main/run/plan_of.h"
#include "sc_main/run/terminal.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/units.h"
#include "tlm/machine/names.h"
#include "topology/plan/cube_mesh.h"
#include "topology/plan/plan.h"
#include "topology/show/show.h"
#include "topology/show/view.h"
#include "topology/spec/parse.h"
#include "topology/spec/resolve.h"
#include "topology/spec/schema.h"

namespace kernbench {
namespace {
constexpr const char* kTopologyUsage =
    R"(Usage: kernbench topology show   [FILE|PRESET] [--stage N | --view VIEW [--format FORMAT]]
       kernbench topology check  [FILE|PRESET]
       kernbench topology export [FILE|PRESET] [--what config|cube-mesh|schema]

show     prints a stage of the elaboration: 1 parse, 2 resolve, 3 lay out, 4 connect, 5 route, 6 elaborate;
         or a view: system, sip, cube, pe
check    reads and checks a machine; says what it is, or every problem in it
export   the resolved configuration, the layout of a cube to pin (cube_mesh.yaml), or the JSON Schema of topology.yaml

)";
constexpr const char* kExample = R"(Examples:
  kernbench topology show minimal --stage 2
  kernbench topology show default --view system --format svg --output system.svg
  kernbench topology check ring8 --set system.links.latency="300 ns"
)";

struct TopologyOptions {
  std::string action, machine = "default", view, at, format = "dot", what = "config", output = "-";
  int stage = 2;
  std::vector<std::string> sets;

  void add_to(po::options_description_easy_init& add) {
    add("stage", po::value(&stage)->value_name("1..6"), "which stage to show (default: 2)");
    add("view", po::value(&view)->value_name("VIEW"), "system, sip, cube or pe");
    add("format", po::value(&format)->value_name("dot|svg|json"), "of a view (default: dot)");
    add("at", po::value(&at)->value_name("PE"), "which part a view shows, e.g. sip0.cube3.pe5 (default: the first)");
    add("what", po::value(&what)->value_name("WHAT"), "what to export: config, cube-mesh or schema (default: config)");
    add("set", po::value(&sets)->value_name("KEY=VALUE")->composing(), "changes a value of the topology; repeatable");
    add("output,o", po::value(&output)->value_name("FILE"), "instead of standard output");
  }
};

void require(const std::string& option, const std::string& value, const std::vector<std::string>& valid) {
  for (const std::string& name : valid) {
    if (value == name) return;
  }
  throw UsageError(fmt::format("{} is {}", option, quote(value)), suggest(value, valid, "valid"));
}

/// An option that would change nothing is refused.
void check_combination(const TopologyOptions& options, const Parsed& parsed) {
  struct Use {
    const char *option, *action;
  };
  constexpr std::array<Use, 5> kUses{
      {{"stage", "show"}, {"view", "show"}, {"format", "show"}, {"at", "show"}, {"what", "export"}}};
  const auto given = [&](const std::string& option) { return !parsed.values(option).empty(); };
  for (const auto& [option, action] : kUses) {
    if (given(option) && options.action != action)
      throw UsageError(fmt::format("--{} together with '{}'", option, options.action),
                       fmt::format("it belongs to 'kernbench topology {}'", action));
  }
  if (given("stage") && given("view")) throw UsageError("--stage together with --view", "give one of them");
  for (const char* option : {"format", "at"}) {
    if (given(option) && !given("view"))
      throw UsageError(fmt::format("--{} without --view", option), "give --view system, sip, cube or pe as well");
  }
  if (options.machine.empty())
    throw UsageError("the argument FILE|PRESET is ''", "give a file or a preset; 'kernbench list' names the presets");
}

std::string check(const TopologyOptions& options) {
  const topology::Resolved resolved = topology::resolve(options.machine, options.sets);
  const topology::Plan plan = plan_of(resolved, options.machine);
  say(throttle_warnings(resolved, plan, options.machine));
  const MachineMap& map = plan.map;
  std::int64_t pes = 0;
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) pes += static_cast<std::int64_t>(map.pes(sip).size());
  return fmt::format("{}: ok: {} ({}), {} ({} x {}) per SIP, {}; channel dependencies are acyclic; configuration {}\n",
                     options.machine, counted(map.sips, "SIP"), to_string(map.sip_topology),
                     counted(map.cubes_per_sip(), "cube"), map.cube_w, map.cube_h, counted(pes, "PE"), resolved.hash);
}

std::optional<PeCoord> first_pe(const MachineMap& map) {
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    if (const std::vector<PeCoord> there = map.pes(sip); !there.empty()) return there.front();
  }
  return std::nullopt;
}

std::string show(const TopologyOptions& options) {
  if (options.stage < 1 || options.stage > 6)
    throw UsageError(fmt::format("--stage is '{}'", options.stage), "give an integer from 1 to 6");
  if (options.stage == 1 && options.view.empty()) return topology::show_parsed(options.machine);
  const topology::Resolved resolved = topology::resolve(options.machine, options.sets);
  if (options.stage == 2 && options.view.empty()) return topology::show_resolved(resolved);
  const topology::Plan plan = plan_of(resolved, options.machine);
  if (options.view.empty()) return topology::show(plan, options.stage);
  require("--view", options.view, {"system", "sip", "cube", "pe"});
  require("--format", options.format, {"dot", "svg", "json"});
  topology::ViewOptions view;
  if (!options.at.empty()) {
    view.at = names::parse_pe(options.at);
  } else if (const std::optional<PeCoord> first = first_pe(plan.map)) {
    view.at = *first;
  }
  if (!plan.map.has(view.at))
    throw UsageError(fmt::format("--at is {}: this machine has no such PE", quote(options.at)),
                     "'kernbench topology check' says how large it is");
  return topology::show_view(plan, options.view, options.format, view);
}

std::string export_it(const TopologyOptions& options) {
  require("--what", options.what, {"config", "cube-mesh", "schema"});
  if (options.what == "schema") return json_text(topology::json_schema(), 2) + "\n";
  const topology::Resolved resolved = topology::resolve(options.machine, options.sets);
  if (options.what == "cube-mesh")
    return topology::export_cube_mesh(resolved.spec.cube, layout_by_rule(resolved, options.machine));
  return topology::show_resolved(resolved);
}

/// Files that the action reads, or could not replace. A layout by rule comes in place of the one that is pinned.
std::vector<std::string> inputs_of(const TopologyOptions& options) {
  const bool parsed = options.action == "show" && options.stage == 1 && options.view.empty();
  const bool exports = options.action == "export";
  if (exports && options.what == "schema") return {options.machine};
  if (!parsed && !(exports && options.what == "cube-mesh"))
    return topology::resolve(options.machine, options.sets).files;
  std::vector<std::string> files;
  for (const topology::Layer& layer : topology::parse(options.machine, {}).layers) {
    if (layer.on_disk) files.push_back(layer.file);
  }
  return files;
}
}  // namespace

int topology_command(const Arguments& arguments) {
  TopologyOptions options;
  const po::options_description shown = described(options);
  if (asks_for_help(arguments) || arguments.empty()) {
    if (arguments.empty())
      throw UsageError("no action given", "kernbench topology show|check|export; see 'kernbench topology --help'");
    fmt::print("{}{}\n{}", kTopologyUsage, help_of(shown), kExample);
    return 0;
  }
  po::options_description all;
  all.add(shown);
  all.add_options()("action", po::value(&options.action))("machine", po::value(&options.machine));
  const Parsed parsed = parse(arguments, all, {"action", "machine"});
  const std::vector<std::string> actions{"show", "check", "export"};
  if (std::find(actions.begin(), actions.end(), options.action) == actions.end())
    throw UsageError(fmt::format("unknown action {}", quote(options.action)),
                     suggest(options.action, actions, "actions"));
  check_combination(options, parsed);

  std::string text;
  if (options.action == "show") {
    text = show(options);
  } else if (options.action == "check") {
    text = check(options);
  } else {
    text = export_it(options);
  }
  if (options.output != "-") refuse_overwriting(inputs_of(options), {{"--output", options.output}});
  show_or_write(text, options.action == "export" || !options.view.empty(), options.output);
  return 0;
}

}  // namespace kernbench
