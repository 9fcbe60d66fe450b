#include "runtime/placement_file.h"

#include <fmt/format.h>

#include <vector>

#include "tlm/config/enum_names.h"
#include "tlm/config/read.h"

namespace kernbench {

namespace {
constexpr std::uint64_t kMaxUnits = 256;  // of a physical address

/// Reports unknown and forbidden keys.
void check_placement_keys(const ConfigNode& map, const std::string& what, const std::vector<std::string>& valid,
                          Problems& problems) {
  for (const ConfigNode::Entry& entry : map.entries) {
    bool known = false;
    for (const std::string& key : valid) known = known || key == entry.key;
    if (known) continue;
    const std::string instead = forbidden_placement_key(entry.key);
    problems.add(entry.key_where, fmt::format("unknown key {} in '{}'", quote(entry.key), what),
                 instead.empty() ? suggest(entry.key, valid) : instead);
  }
}

}  // namespace

std::string forbidden_placement_key(const std::string& key) {
  if (key == "sip" || key == "sips" || key == "num_sips") {
    return "placement has no SIP axis: a tensor lives on its rank's SIP, chosen by set_device(rank); which rank owns "
           "what is tensor parallelism";
  }
  if (key == "pe_index" || key == "pe_id") return "there is no flat PE index: give 'sip', 'cube' and 'pe'";
  return {};
}

DPPolicy read_dp_policy(const ConfigNode& node, const std::string& what, Problems& problems) {
  const std::vector<std::string> keys = {"cube", "pe", "num_cubes", "num_pes"};
  DPPolicy policy;
  if (!expect_map(node, what, keys, problems)) return policy;
  check_placement_keys(node, what, keys, problems);
  if (const ConfigNode* cube = node.find("cube")) {
    if (const auto split = read_name(*cube, dotted(what, "cube"), names_of<CubeSplit>(3), problems))
      policy = policy.cube(static_cast<CubeSplit>(*split));
  }
  if (const ConfigNode* pe = node.find("pe")) {
    if (const auto split = read_name(*pe, dotted(what, "pe"), names_of<PeSplit>(5), problems))
      policy = policy.pe(static_cast<PeSplit>(*split));
  }
  if (const ConfigNode* count = node.find("num_cubes")) {
    if (const auto value = read_integer(*count, dotted(what, "num_cubes"), {1, kMaxUnits}, problems))
      policy = policy.cubes(static_cast<int>(*value));
  }
  if (const ConfigNode* count = node.find("num_pes")) {
    if (const auto value = read_integer(*count, dotted(what, "num_pes"), {1, kMaxUnits}, problems))
      policy = policy.pes(static_cast<int>(*value));
  }
  return policy;
}

DPPolicy load_dp_policy(const std::string& path) {
  Problems problems;
  const ConfigNode root = load_config(path, &problems);
  const DPPolicy policy = read_dp_policy(root, "policy", problems);
  problems.throw_if_any();
  return policy;
}

}  // namespace kernbench
