#include <fmt/format.h>

#include <utility>

#include "ccl/import/entry.h"
#include "sc_main/run/options.h"
#include "sc_main/workloads/plugin.h"
#include "tlm/kernel/dtype.h"
#include "topology/spec/embedded_presets.h"

namespace kernbench {
namespace {

/// What is simplified in this version; docs/architecture.md says the same, by a test.
void list_limits() {
  static constexpr std::pair<const char*, const char*> kLimits[] = {
      {"fidelity",
       "`fast` is a model of its own for `noc` and `hbm`; `ucie` and `link` have the same ports in both grades, `pe` "
       "has one grade. Trains of 4 to 64 KiB only where every part is fast; what shares their virtual channel waits "
       "for a whole train."},
      {"router",
       "input-queued, one flit per cycle and port; no speculation, adaptive routes, output buffers or speed-up. A "
       "virtual channel is chosen by source and destination, not by load."},
      {"UCIe and inter-SIP links",
       "bit errors are replayed, but links do not train, retrain or sleep; acknowledgements take no room on the wire; "
       "a packet starts on a wire when its tail has won its way, not with its head."},
      {"HBM",
       "no power-down, ECC, temperature, refresh management or postponed refreshes; the controller adds a constant "
       "latency."},
      {"TCM",
       "the engines' operand traffic loads all banks alike, as a rate; single words do not conflict below saturation."},
      {"PCIe",
       "one pool of flow control credits per direction, not one per class, header and data; no retry, no DLLPs."},
      {"machines with missing PEs",
       "tensors use equally many PEs of every cube, among those that all SIPs have; the others of such a cube stay "
       "idle."},
      {"GEMM", "a composite reads a and b again for every output tile; operands are not pinned in TCM."},
      {"energy", "M_CPU, IO_CPU and the instructions of PE_CPU are not counted."},
      {"collectives",
       "`send` and `recv` of two ranks run on their default streams; the barrier of ranks is a matter of the host and "
       "takes no simulated time. A call whose algorithm is a kernel, not a schedule, works in place only."},
      {"execution traces",
       "a rank of a Chakra trace communicates one thing at a time, and its computing is time only: it takes no memory "
       "bandwidth from communication. Memory, storage and checkpoint nodes are refused."},
      {"pipelines",
       "an exchange is among parts of one SIP or among SIPs, not both; a slot does one supertask at a time; supertasks "
       "that are not alike share no memory; an embedding's indices are read by the host, and computed ones take the "
       "time of seeded rows."},
      {"foreign TLM",
       "a foreign initiator sits beside the PEs or in the place of one, a foreign target in that of a memory; there is "
       "no DMI."},
      {"checks",
       "`--debug` finds races between PEs of one launch on one SIP and kernels that meet in a queue, in the order of "
       "this run."},
      {"critical path",
       "contention inside a router network is not told apart by router; in fast networks what holds up packets from "
       "outside is named for those that wait at its border."},
  };
  for (const auto& [part, text] : kLimits) fmt::print("- {}: {}\n", part, text);
}

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
  if (limits) list_limits();
  return 0;
}

}  // namespace kernbench
