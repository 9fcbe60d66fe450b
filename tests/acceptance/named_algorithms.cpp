#include "tests/acceptance/named_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "ccl/import/entry.h"
#include "tests/cli/tool_runner.h"

namespace kernbench::named {
namespace {

/// By kernbench::ccl::TopologyKinds. SIPs: few, in rings of odd length and grids of unlike sides.
struct Sips {
  const char* kind;
  int count;
};
constexpr std::array<Sips, 5> kSips{
    {{"ring_1d", 5}, {"torus_2d", 8}, {"mesh_2d_no_wrap", 8}, {"switch", 5}, {"fully_connected", 5}}};
constexpr std::array<const char*, 2> kGrades{"fast", "accurate"};

/// What runs PE to PE serves data that neither lie in copies nor are to be combined inside a SIP, and no exchange of
/// blocks in place. All else serves whatever its module says.
const std::vector<std::string> kReasons{
    "algorithm 'point_to_point' is for data that cubes or PEs of a rank need not combine",
    "algorithm 'point_to_point' is for data without copies",
    "algorithm 'point_to_point' does not exchange blocks in place"};

matrix::Machine machine_of(const Sips& sips, bool rounds) {
  return {sips.count, sips.kind, rounds ? SchedulingKind::rounds : SchedulingKind::concurrent};
}

/// As CollectiveRows::served() says it.
std::string services(const ccl::Algorithm& algorithm) {
  std::string text;
  for (int op = 0; op < static_cast<int>(CollectiveOp::barrier); ++op) {
    for (const Scope scope : {Scope::sip, Scope::cube, Scope::pe}) {
      const auto what = static_cast<CollectiveOp>(op);
      if ((algorithm.operations & ccl::bit(what)) == 0 || (algorithm.scopes & ccl::bit(scope)) == 0) continue;
      const bool combines = what == CollectiveOp::all_reduce || what == CollectiveOp::reduce ||
                            what == CollectiveOp::reduce_scatter || what == CollectiveOp::broadcast;
      if (algorithm.pe_to_pe && combines && scope != Scope::sip) continue;
      text += fmt::format("{}{}/{}", text.empty() ? "" : " ", to_string(what), to_string(scope));
    }
  }
  return text;
}

std::vector<std::string> command(const Run& run) {
  std::vector<std::string> list = matrix::rows_command(KERNBENCH_COLLECTIVE_ROWS, run.machine);
  *std::next(std::find(list.begin(), list.end(), "--fidelity")) = run.fidelity;
  for (std::string& word : list) {
    if (word.rfind("sip.cube_mesh.w=", 0) == 0) word = fmt::format("sip.cube_mesh.w={}", run.cubes_w);
  }
  list.insert(list.end(), {"--set", fmt::format("sip.cube_mesh.h={}", run.cubes_h), "--algorithm", run.algorithm,
                           "--of-each", run.of_each, "--most", run.most});
  return list;
}

}  // namespace

std::string name(const Run& run) {
  return fmt::format("{}_{}_{}_{}x{}_cubes", run.algorithm, matrix::name(run.machine), run.fidelity, run.cubes_w,
                     run.cubes_h);
}

std::vector<Run> runs() {
  std::vector<Run> list;
  for (const std::string& name : ccl::builtin_algorithms()) {
    const auto algorithm = ccl::load_module(ccl::kBuiltinPrefix + name);
    for (std::size_t kind = 0; kind < kSips.size(); ++kind) {
      if ((algorithm->topologies & ccl::topology_bit(static_cast<std::int32_t>(kind))) == 0) continue;
      Run run;
      run.algorithm = name;
      run.machine = machine_of(kSips[kind], list.size() / 2 % 2 == 1);
      run.fidelity = kGrades[list.size() % 5 == 1 ? 1 : 0];  // the complete list has both of each
      if (algorithm->pe_to_pe) run.of_each = "8";            // some of which have outputs without copies
      list.push_back(std::move(run));
    }
  }
  return list;
}

std::vector<Run> published() {
  std::vector<Run> list;
  for (const char* grade : kGrades) {
    for (std::size_t kind = 0; kind < 3; ++kind) {
      Run run;
      run.algorithm = "lrab_hierarchical_allreduce";
      run.machine = machine_of(kSips[kind], kind % 2 == 1);
      run.fidelity = grade;
      run.cubes_w = run.cubes_h = 4;
      run.of_each = "2";
      list.push_back(std::move(run));
    }
  }
  return list;
}

std::vector<Run> all_runs() {
  std::vector<Run> list;
  for (Run run : runs()) {
    for (const char* grade : kGrades) {
      run.fidelity = grade;
      run.of_each = "10";
      run.most = "1048576";
      list.push_back(run);
    }
  }
  for (Run run : published()) {
    run.of_each = "40";
    run.most = "65536";
    list.push_back(run);
  }
  return list;
}

std::string wrong_with(const Run& run) {
  const Tool tool;
  const std::vector<std::string> words = command(run);
  const Outcome outcome = tool(words);
  std::string line = "kernbench";
  for (const std::string& word : words) line += " " + quoted(word);
  const std::string all = "\n" + line + "\n" + outcome.out + outcome.err;
  if (outcome.code != 0) return "exit code " + std::to_string(outcome.code) + all;
  std::istringstream lines(outcome.out);
  std::string served;
  for (std::string text; std::getline(lines, text);) {
    const std::string refused = " rows refused: ", serves = "served: ";
    if (text.rfind(serves, 0) == 0) served = text.substr(serves.size());
    const std::size_t at = text.find(refused);
    if (at == std::string::npos) continue;
    const std::string why = text.substr(at + refused.size());
    if (std::find(kReasons.begin(), kReasons.end(), why) == kReasons.end()) return "refuses: " + why + all;
  }
  const std::string expected = services(*ccl::load_module(ccl::kBuiltinPrefix + run.algorithm));
  return served == expected ? "" : fmt::format("serves {}\nis to serve {}{}", served, expected, all);
}

}  // namespace kernbench::named
