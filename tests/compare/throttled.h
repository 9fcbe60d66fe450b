#pragma once
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/tool_runner.h"

namespace kernbench {

/// A machine that is slow in one place on purpose, and a run that feels it.
struct Throttled {
  std::string name;
  std::vector<std::string> run;  ///< what follows `kernbench run`
  std::string overrides;         ///< of machine.yaml, which `run` names; empty: there is none
  std::string key, place;        ///< what is slow: as what-if has to say it
  std::string measure = "rows";
  int sips = 2;  ///< of machine.yaml
};

/// Writes machine.yaml: SIPs of 2 x 2 cubes of 4 PEs, and these overrides.
inline void write_machine(const Tool& tool, const Throttled& machine) {
  std::ofstream(tool.file("machine.yaml"))
      << "extends: ring8\nsystem:\n  sips:\n    count: " << machine.sips << "\noverrides:\n"
      << machine.overrides;
}

/// The block that `kernbench what-if` adds to the result; null, and a failed test, if it does not end well.
inline nlohmann::ordered_json what_if_of(const Tool& tool, const Throttled& machine) {
  std::vector<std::string> run = machine.run;
  run.insert(run.begin(), "run");
  run.insert(run.end(), {"--json", "run.json", "-q"});
  const Outcome first = tool(run);
  EXPECT_EQ(first.code, 0) << machine.name << ": " << first.err;
  const Outcome tried = tool({"what-if", "run.json", "--measure", machine.measure, "--json", "tried.json", "-q"});
  EXPECT_TRUE(tried.code == 0 || tried.code == 6) << machine.name << ": " << tried.err;  // 6: some values failed
  if (first.code != 0 || (tried.code != 0 && tried.code != 6)) return nullptr;
  return nlohmann::ordered_json::parse(read(tool.file("tried.json")))["what_if"];
}

/// "key of place" of all that share the first rank.
inline std::vector<std::string> named_first(const nlohmann::ordered_json& what_if) {
  std::vector<std::string> names;
  for (const auto& change : what_if["changes"]) {
    if (change["rank"] != 1) continue;
    const std::string place = change["place"];
    names.push_back(change["key"].get<std::string>() + (place.empty() ? "" : " of " + place));
  }
  return names;
}
inline std::string wanted(const Throttled& machine) {
  return machine.key + (machine.place.empty() ? "" : " of " + machine.place);
}

/// Ten places to be slow in; `--data off` where the contents do not matter.
inline std::vector<Throttled> throttled_machines() {
  const std::string all_reduce = "all_reduce";
  const auto sized = [&](const std::string& bytes, std::vector<std::string> more) {
    std::vector<std::string> run{all_reduce, "-b", bytes, "-e", bytes, "--data", "off"};
    run.insert(run.end(), more.begin(), more.end());
    return run;
  };
  const std::vector<std::string> own{"--topology", "machine.yaml"};
  const auto two = [](const std::string& set) {
    return std::vector<std::string>{"--topology", "ring8", "--set", "system.sips.count=2", "--set", set};
  };
  return {
      {"slow UCIe side", sized("64K", own), "- match: sip0.cube1\n  cube: {ucie: {lane_rate: 250 MT/s}}\n",
       "cube.ucie.lane_rate", "sip0.cube1"},
      {"few slots", sized("256K", two("pe.ipcq.slots=1")), "", "pe.ipcq.slots", ""},
      {"small link buffers", sized("64K", two("system.links.buffer_packets=2")), "", "system.links.buffer_packets", ""},
      {"narrow crossbar",
       {"stream", "--bytes", "64K", "--topology", "ring8", "--set", "system.sips.count=1", "--set",
        "cube.noc.flit_size=8 B"},
       "",
       "cube.noc.flit_size",
       ""},
      {"one slow HBM",
       {"stream", "--bytes", "64K", "--topology", "machine.yaml"},
       "- match: sip0.cube2\n  cube: {hbm: {clock: 100 MHz}}\n",
       "cube.hbm.clock",
       "sip0.cube2",
       "rows",
       1},
      {"slow dispatch", sized("4K", two("pe.cpu.dispatch=300 ns")), "", "pe.cpu.dispatch", ""},
      {"one slow cube", sized("16K", own), "- match: sip1.cube3\n  cube: {noc: {clock: 50 MHz}}\n", "cube.noc.clock",
       "sip1.cube3"},
      // What auto takes there, one_tree, does without the link.
      {"a broken link", sized("64K", {"--topology", "machine.yaml", "--algorithm", "ring"}), "- link: [sip1, sip2]\n",
       "overrides.link", "sip1 - sip2", "rows", 4},
      {"a narrow host link",
       {"tp_mlp", "--topology", "minimal", "--set", "sip.io.pcie.bandwidth=1 GB/s", "--host-io", "timed"},
       "",
       "sip.io.pcie.bandwidth",
       "",
       "run"},
      {"small TCM",
       {"gemm", "--topology", "minimal", "--data", "off", "--set", "pe.tcm.size=256 KiB", "--set", "pe.ipcq.slots=2"},
       "",
       "pe.tcm.size",
       ""},
  };
}

/// The part that the critical path spends most on: of the longest timed iteration or layer where the program names them
/// and where they are what is measured, else of the run. What no key of the topology governs does not count.
inline nlohmann::ordered_json most_of(const nlohmann::ordered_json& path, bool whole) {
  const nlohmann::ordered_json* parts = &path["parts"];
  std::uint64_t longest = 0;
  for (const auto& stretch : path["stretches"]) {
    const auto takes = stretch["time_ps"].get<std::uint64_t>();
    if (whole || !stretch["timed"].get<bool>() || takes <= longest) continue;
    parts = &stretch["parts"];
    longest = takes;
  }
  std::map<std::string, std::uint64_t> kinds;
  for (const auto& part : *parts) {
    if (part.contains("keys")) kinds[part["spent"]] += part["time_ps"].get<std::uint64_t>();
  }
  const auto most =
      std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& part : *parts) {  // most first
    if (most != kinds.end() && part["spent"] == most->first) return part;
  }
  return {};
}

/// What the critical path names first on that machine: empty if that is the key which is throttled, where it is.
inline std::string named_instead(const Tool& tool, const Throttled& machine) {
  std::vector<std::string> run = machine.run;
  run.insert(run.begin(), "run");
  run.insert(run.end(), {"--critical-path", "--json", "run.json", "-q"});
  const Outcome outcome = tool(run);
  EXPECT_EQ(outcome.code, 0) << machine.name << ": " << outcome.err;
  if (outcome.code != 0) return "nothing";
  const auto json = nlohmann::ordered_json::parse(read(tool.file("run.json")));
  const nlohmann::ordered_json part = most_of(json["critical_path"], machine.measure == "run");
  const std::string place = part.value("place", std::string());
  const auto keys = part.value("keys", std::vector<std::string>()),
             around = part.value("around", std::vector<std::string>());
  const bool key = std::find(keys.begin(), keys.end(), machine.key) != keys.end();
  const bool there = machine.place.empty() || place.rfind(machine.place + ".", 0) == 0 || place == machine.place ||
                     std::find(around.begin(), around.end(), machine.place) != around.end();
  return key && there ? std::string() : part.dump();
}

}  // namespace kernbench
