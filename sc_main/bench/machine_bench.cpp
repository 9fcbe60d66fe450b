#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <systemc>
#include <vector>

#include "runtime/runtime.h"
#include "sc_main/bench/bench.h"
#include "tlm/machine/run_options.h"
#include "topology/machine.h"
#include "topology/plan.h"
#include "topology/resolve.h"

namespace kernbench::bench {
namespace {
double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// The tool itself as a process, with its output dropped.
Measured run_tool_process(const std::vector<std::string>& arguments) {
  const pid_t process = ::fork();
  if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(127);
    std::string tool = "/proc/self/exe";
    std::vector<std::string> copies = arguments;
    std::vector<char*> argv{tool.data()};
    for (std::string& argument : copies) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(tool.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  while (::wait4(process, &status, 0, &usage) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "wait4");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error(fmt::format("'kernbench {}' failed", fmt::join(arguments, " ")));
  return {1, seconds(usage.ru_utime), 0, static_cast<double>(usage.ru_maxrss) * 1024};
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
  const double begin = user_cpu_s();
  const topology::Resolved resolved = topology::resolve(
      "default", {fmt::format("system.sips.count={}", width * height), "system.sips.topology=torus_2d",
                  fmt::format("system.sips.w={}", width), fmt::format("system.sips.h={}", height)});
  const topology::Plan plan(resolved.spec);
  const Model model(plan);
  sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  double pes = 0;
  for (std::uint16_t sip = 0; sip < plan.map.sips; ++sip) pes += static_cast<double>(plan.map.pes(sip).size());
  return {pes, user_cpu_s() - begin, 0, peak_bytes()};
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
