#include <fmt/format.h>

#include "ccl/contract/entry.h"
#include "sc_main/cli/limits.h"
#include "sc_main/run/options.h"
#include "sc_main/workloads/plugin.h"
#include "tlm/kernel/dtype.h"
#include "topology/spec/embedded_presets.h"

namespace kernbench {
namespace {
void list_workloads(const std::vector<std::string>& plugins) {
  WorkloadCatalogue catalogue;
  for (const std::string& plugin : plugins) catalogue.add_plugin(plugin);
  fmt::print("Workloads (kernbench run WORKLOAD):\n");
  for (const auto& workload : catalogue.all()) fmt::print("  {:<18}{}\n", workload->name(), workload->help());
}

void list_presets() {
  fmt::print("Presets (--topology PRESET):\n");
  for (const topology::PresetInfo& preset : topology::presets())
    fmt::print("  {:<18}{}\n", preset.name, preset.summary);
}

void list_algorithms() {
  fmt::print("Algorithms of collectives (--algorithm NAME):\n");
  for (const std::string& name : ccl::builtin_algorithms()) fmt::print("  {}\n", name);
}

void list_dtypes() {
  fmt::print("Data types (--dtype NAME):\n");
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    fmt::print("  {:<18}{} B\n", to_string(dtype), size_of(dtype));
  }
}
}  // namespace

int list_command(const Arguments& arguments) {
  bool limits = false, only_workloads = false, only_presets = false, only_algorithms = false, only_dtypes = false;
  std::vector<std::string> plugins;
  po::options_description options("Options");
  options.add_options()("plugin", po::value(&plugins)->composing(), "shared library with more workloads")(
      "workloads", po::bool_switch(&only_workloads), "what can be run")("presets", po::bool_switch(&only_presets),
                                                                        "machines that ship with the tool")(
      "algorithms", po::bool_switch(&only_algorithms), "collective algorithms")(
      "dtypes", po::bool_switch(&only_dtypes), "data types")("limits", po::bool_switch(&limits),
                                                             "what the model simplifies")("help,h", "this text");
  if (asks_for_help(arguments)) {
    fmt::print("Usage: kernbench list [OPTIONS]\n\nWithout options: all but the limits.\n\n");
    fmt::print("{}\nExample:\n  kernbench list --limits\n", help_of(options));
    return 0;
  }
  parse(arguments, options);
  const bool all = !(limits || only_workloads || only_presets || only_algorithms || only_dtypes);
  if (all || only_workloads) list_workloads(plugins);
  if (all || only_presets) list_presets();
  if (all || only_algorithms) list_algorithms();
  if (all || only_dtypes) list_dtypes();
  if (limits) fmt::print("{}", limitations_text());
  return 0;
}

}  // namespace kernbench
