#include <fmt/format.h>

#include "sc_main/cli/tool.h"
#include "sc_main/explore/compare/what_if.h"
#include "sc_main/explore/report/run_page.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/options.h"
#include "sc_main/run/run.h"
#include "sc_main/run/terminal.h"
#include "tlm/config/nearest.h"

namespace kernbench {
namespace {

int print_help(const WorkloadCatalogue& catalogue, Workload* workload) {
  CommonOptions common;
  MachineOptions machine;
  if (workload == nullptr) {
    fmt::print(
        "Usage: kernbench run WORKLOAD [OPTIONS]\n       kernbench run --from RESULT.json\n\nWorkloads ('kernbench run "
        "WORKLOAD --help' for its options):\n");
    for (const auto& entry : catalogue.all()) fmt::print("  {:<18}{}\n", entry->name(), entry->help());
    fmt::print("\nExample:\n  kernbench run all_reduce -b 1K -e 64K -f 4 --topology minimal\n");
    return 0;
  }
  po::options_description own(workload->name()), all;
  all.add(machine.describe()).add(common.describe());
  workload->add_options(all);  // refuses names of a plug-in that are taken
  workload->add_options(own);
  fmt::print("Usage: kernbench run {} [OPTIONS]\n\n{}\n\n", workload->name(), workload->help());
  for (const po::options_description& group : {own, machine.describe(), common.describe()}) {
    fmt::print("{}\n", help_of(group));
  }
  fmt::print("Example:\n  {}\n", workload->example());
  return 0;
}

/// The run again and again first, in processes of their own: no machine may stand in this one yet.
int run_with_what_if(Run& run) {
  const topology::Resolved resolved = run.resolve();
  const nlohmann::ordered_json block = try_what_if(run, resolved);
  run.attach_what_if(block);
  const ExitCode code = run.execute();
  (run.common().json == "-" ? say : show_text)(compare::text_of(block));
  return static_cast<int>(code == ExitCode::success && compare::failures(block) > 0 ? ExitCode::sweep_failed : code);
}
}  // namespace

int run_command(const Arguments& arguments) {
  if (asks_for_help(arguments)) {
    Arguments rest = arguments;
    const WorkloadCatalogue catalogue = catalogue_of(rest);
    const std::string name = take_workload(catalogue, rest);
    const auto workload = catalogue.make(name);
    if (!name.empty() && workload == nullptr)
      throw UsageError(fmt::format("unknown workload {}", quote(name)), suggest(name, catalogue.names(), "workloads"));
    return print_help(catalogue, workload.get());
  }
  Run run(arguments);
  run.render_with([&run](const nlohmann::ordered_json& result, const topology::Plan& plan) {
    return report::render_run(result, plan, run.workload() + " on " + plan.spec.name);
  });
  if (run.common().what_if) return run_with_what_if(run);
  return static_cast<int>(run.execute());
}

}  // namespace kernbench
