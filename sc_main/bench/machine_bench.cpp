#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <systemc>
#include <vector>

#include "runtime/runtime.h"
#include "sc_main/bench/bench.h"
#include "sc_main/process/cpu_time.h"
#include "sc_main/process/program.h"
#include "tlm/machine/run_options.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::bench {
namespace {
/// The tool itself as a process, with its output dropped.
Measured run_tool_process(std::vector<std::string> words) {
  words.insert(words.begin(), process::own_path());
  const process::ProgramEnd end = process::run_program(words);
  if (end.code != 0) throw std::runtime_error(fmt::format("'{}' failed", fmt::join(words, " ")));
  return {1, end.user_s, 0, end.peak_bytes};
}

/// A machine and its host, as a run has them. Its process ends without taking it down.
struct Model {
  explicit Model(const topology::Plan& plan)
      : machine(*new topology::Machine(plan, RunOptions(), nullptr)),
        runtime(*new Runtime("host", machine.map(), machine.dispatcher(), RunOptions(), nullptr)) {
    for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  }
  topology::Machine& machine;
  Runtime& runtime;
};

/// Resolves, plans and elaborates a torus of default SIPs; no event is ever made.
Measured elaborate(unsigned width, unsigned height) {
  const double begin = process::user_cpu_s();
  const topology::Resolved resolved = topology::resolve(
      "default", {fmt::format("system.sips.count={}", width * height), "system.sips.topology=torus_2d",
                  fmt::format("system.sips.w={}", width), fmt::format("system.sips.h={}", height)});
  const topology::Plan plan(resolved.spec);
  const Model model(plan);
  sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  double pes = 0;
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) pes += static_cast<double>(plan.map.pes(sip).size());
  return {pes, process::user_cpu_s() - begin, 0, peak_bytes()};
}
}  // namespace

std::vector<Bench> machine_benches(Grade grade) {
  const bool fast = grade == Grade::fast;
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const std::string fidelity = to_string(grade);
  std::vector<Bench> list;
  list.push_back({"all_reduce_1MiB_f16_default",
                  "run",
                  "",
                  {{Bound::Of::cpu_s, fast ? 0.5 : 5}},
                  [fidelity] {
                    return run_tool_process({"run", "all_reduce", "-b", "1M", "-e", "1M", "--fidelity", fidelity,
                                             "--no-progress", "--json", "-"});
                  },
                  true});
  if (fast) {
    list.push_back({"all_reduce_256MiB_64_sips",
                    "run",
                    "",
                    {{Bound::Of::cpu_s, 60}},
                    [] {
                      return run_tool_process({"run", "all_reduce", "--topology", "torus8x8", "--set",
                                               "pe.ipcq.slots=2", "--set", "pe.ipcq.slot_size=64 KiB", "-b", "256M",
                                               "--fidelity", "fast", "--data", "off", "-w", "0", "--no-progress",
                                               "--json", "-"});
                    },
                    false});
  }
  list.push_back({"elaboration_1k_pes", "PE", "", {}, [] { return elaborate(4, 2); }, true});
  list.push_back({"elaboration_10k_pes", "PE", "", {}, [] { return elaborate(10, 8); }, false});
  list.push_back({"elaboration_100k_pes",
                  "PE",
                  "",
                  {{Bound::Of::cpu_s, 30}, {Bound::Of::peak_bytes, 8 * kGiB}},
                  [] { return elaborate(28, 28); },
                  false});
  return list;
}

}  // namespace kernbench::bench
