#include "ccl/select/tuned_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/contract/legal.h"
#include "ccl/import/entry.h"
#include "ccl/schedule/level_cost.h"
#include "tlm/config/enum_names.h"
#include "tlm/config/read.h"

namespace kernbench::ccl {
namespace {

constexpr IntegerRange kBytes{1, std::uint64_t{1} << 50}, kTime{0, std::uint64_t{1} << 50};

/// All of a list, or nothing if one is wrong.
std::optional<std::vector<std::uint64_t>> read_numbers(const ConfigNode& list, const std::string& what,
                                                       const IntegerRange& range, Problems& problems) {
  if (!expect_list(list, what, "integers", problems)) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const ConfigNode& item : list.items) {
    if (const auto number = read_integer(item, what, range, problems)) numbers.push_back(*number);
  }
  if (numbers.size() != list.items.size()) return std::nullopt;
  return numbers;
}

/// Times of packets from each PE to its memory, to PE 0 of its SIP, and to its like on the next SIP, all together:
/// where PEs stand and what networks take moves one of them.
Ps ways(const MachineMap& map) {
  const std::vector<PeCoord> pes = map.pes(0);
  Ps sum = 0;
  for (const PeCoord pe : pes) {
    const NodeId self = map.pe(pe);
    sum += map.packet_latency(self, map.hbm_port(pe), kShortMessage);
    if (pe != pes.front()) sum += map.packet_latency(self, map.pe(pes.front()), kShortMessage);
    const PeCoord like{1, pe.cube, pe.pe};
    if (map.sips > 1 && map.has(like)) sum += map.packet_latency(self, map.pe(like), kShortMessage);
  }
  return sum;
}

}  // namespace

std::string machine_key(const MachineMap& map) {
  std::string key = fmt::format("{}_{}", to_string(map.sip_topology), map.sips);
  if (map.sip_w > 0) key += fmt::format("_{}x{}", map.sip_w, map.sip_h);
  key += fmt::format("_cubes_{}x{}_pes_{}", map.cube_w, map.cube_h, map.pes_per_cube);
  const auto link = [](const std::vector<LinkBundle>& links) {
    if (links.empty()) return std::string("none");
    return fmt::format("{:.0f}MBps_{}ns", static_cast<double>(links.front().capacity.bytes_per_second()) / 1e6,
                       links.front().latency / 1000);
  };
  key += fmt::format("_sip_{}_cube_{}_hbm_{:.0f}MBps_slots_{}x{}", link(map.sip_links), link(map.cube_links),
                     static_cast<double>(map.hbm_slice.peak.bytes_per_second()) / 1e6, map.ipcq_slots,
                     map.ipcq_slot_bytes);
  key += fmt::format("_port_{:.0f}MBps_tcm_{:.0f}MBps", static_cast<double>(map.pe_port.bytes_per_second()) / 1e6,
                     static_cast<double>(map.tcm.peak.bytes_per_second()) / 1e6);
  if (map.packet_latency) key += fmt::format("_ways_{}ps", ways(map));
  return map.fingerprint.empty() ? key : key + "_rest_" + map.fingerprint;
}

void TunedTable::read(const ConfigNode& list, const std::vector<std::string>& algorithms, Problems& problems) {
  if (!expect_list(list, "tuned", "measurements", problems)) return;
  for (const ConfigNode& item : list.items) {
    if (!expect_map(item, "tuned", {"machine", "op", "scope", "bytes", "time_ns"}, problems)) continue;
    check_keys(item, "tuned", {"machine", "op", "scope", "bytes", "time_ns"}, problems);
    const auto need = [&](const char* key) {
      const ConfigNode* node = item.find(key);
      if (node == nullptr)
        problems.add(item.where, fmt::format("a tuned entry has no '{}'", key), "run 'kernbench tune' again");
      return node;
    };
    const ConfigNode *machine = need("machine"), *op = need("op"), *scope = need("scope"), *bytes = need("bytes"),
                     *times = need("time_ns");
    if (machine == nullptr || op == nullptr || scope == nullptr || bytes == nullptr || times == nullptr) continue;
    const std::size_t others = problems.reported();
    Row row;
    if (const auto text = read_text(*machine, "tuned.machine", problems)) row.machine = *text;
    if (const auto index = read_name(*op, "tuned.op", names_of<CollectiveOp>(kCollectiveOps), problems))
      row.op = static_cast<CollectiveOp>(*index);
    if (const auto index = read_name(*scope, "tuned.scope", names_of<Scope>(3), problems))
      row.scope = static_cast<Scope>(*index);
    const auto sizes = read_numbers(*bytes, "tuned.bytes", kBytes, problems);
    row.bytes = sizes.value_or(row.bytes);
    if (std::adjacent_find(row.bytes.begin(), row.bytes.end(), std::greater_equal<>()) != row.bytes.end())
      problems.add(bytes->where, "tuned.bytes do not rise", "give sizes from small to large, each once");
    if (!expect_map(*times, "tuned.time_ns", {}, problems)) continue;
    check_keys(*times, "tuned.time_ns", algorithms, problems);
    for (const auto& [name, key_where, values] : times->entries) {
      const auto ns = read_numbers(values, "tuned.time_ns." + name, kTime, problems);
      if (!ns) continue;
      if (sizes && ns->size() != sizes->size())
        problems.add(values.where, fmt::format("{} times for {} sizes", ns->size(), sizes->size()),
                     "give one time for each of tuned.bytes");
      row.ns[name].assign(ns->begin(), ns->end());
    }
    if (problems.reported() != others) continue;
    if (find(row.machine, row.op, row.scope) != nullptr) {
      problems.add(
          machine->where,
          fmt::format("a second row of {}, scope {}, on this machine", to_string(row.op), to_string(row.scope)),
          "give all sizes in one row, or remove one of them");
    }
    rows_.push_back(std::move(row));
  }
}

std::string TunedTable::yaml() const {
  std::string text;
  for (const Row& row : rows_) {
    text += fmt::format("  - machine: {}\n    op: {}\n    scope: {}\n    bytes: [{}]\n    time_ns:\n", row.machine,
                        to_string(row.op), to_string(row.scope), fmt::join(row.bytes, ", "));
    for (const auto& [name, ns] : row.ns) {
      std::vector<std::uint64_t> whole;
      for (const double one : ns) whole.push_back(static_cast<std::uint64_t>(std::llround(one)));
      text += fmt::format("      {}: [{}]\n", name, fmt::join(whole, ", "));
    }
  }
  return text;
}

void TunedTable::replace(Row row) {
  rows_.erase(std::remove_if(rows_.begin(), rows_.end(),
                             [&](const Row& old) {
                               return old.machine == row.machine && old.op == row.op && old.scope == row.scope;
                             }),
              rows_.end());
  rows_.push_back(std::move(row));
}

const TunedTable::Row* TunedTable::find(const std::string& machine, CollectiveOp op, Scope scope) const {
  for (const Row& row : rows_) {
    if (row.machine == machine && row.op == op && row.scope == scope) return &row;
  }
  return nullptr;
}

std::optional<double> TunedTable::ns(const Row& row, const std::string& algorithm, std::uint64_t bytes) {
  const auto found = row.ns.find(algorithm);
  const auto above = std::lower_bound(row.bytes.begin(), row.bytes.end(), bytes);
  if (found == row.ns.end() || above == row.bytes.end()) return {};
  const auto high = static_cast<std::size_t>(above - row.bytes.begin());
  const double high_ns = found->second[high];
  if (!(high_ns > 0)) return {};
  if (*above == bytes) return high_ns;
  if (high == 0 || !(found->second[high - 1] > 0)) return {};
  const double low_ns = found->second[high - 1];
  const auto log = [](std::uint64_t size) { return std::log(static_cast<double>(size)); };
  const double share = (log(bytes) - log(row.bytes[high - 1])) / (log(row.bytes[high]) - log(row.bytes[high - 1]));
  return low_ns * std::pow(high_ns / low_ns, share);
}

const TunedTable& TunedTable::shipped(const std::string& machine) {
  static std::map<std::string, TunedTable> read;
  const auto [known, is_new] = read.try_emplace(machine);
  TunedTable& table = known->second;
  for (const EmbeddedText* times = kShippedTimes; is_new && times->name != nullptr; ++times) {
    const std::string text = times->text;
    if (text.find("machine: " + machine + "\n") == std::string::npos) continue;
    Problems problems;
    const ConfigNode root = parse_config(text, std::string("ccl/select/tuned/") + times->name + ".yaml", &problems);
    TunedTable all;
    if (const ConfigNode* tuned = root.find("tuned")) all.read(*tuned, builtin_algorithms(), problems);
    problems.throw_if_any();
    for (Row& row : all.rows_) {
      if (row.machine == machine) table.rows_.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace kernbench::ccl
