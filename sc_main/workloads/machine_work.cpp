#include "sc_main/workloads/machine_work.h"

#include <fmt/format.h>

namespace kernbench {

namespace {
using Json = nlohmann::ordered_json;

/// By MachineWork::kParts.
const std::array<std::vector<const char*>, MachineWork::kParts.size()>& operations() {
  static const std::array<std::vector<const char*>, MachineWork::kParts.size()> all{
      {{"pe.energy.mac_8bit", "pe.energy.mac_16bit", "pe.energy.mac_32bit", "pe.energy.mac_64bit"},
       {"cube.hbm.energy_per_bit"},
       {"cube.noc.energy_per_bit"},
       {"cube.ucie.energy_per_bit"},
       {"system.links.energy_per_bit"}}};
  return all;
}
}  // namespace

MachineWork::MachineWork(Ps now, const std::vector<topology::EnergyRow>& rows) : time(now), pj(total_pj(rows)) {
  for (const topology::EnergyRow& row : rows) {
    standing_pj += row.static_pj;
    for (const topology::EnergyOperation& done : row.operations) {
      counts[done.operation] += done.count;
      if (done.operation == topology::kRefreshOperation) standing_pj += done.dynamic_pj;
    }
  }
}

MachineWork& MachineWork::add(const MachineWork& other, int sign) {
  time += static_cast<Ps>(sign) * other.time;
  pj += sign * other.pj;
  standing_pj += sign * other.standing_pj;
  for (const auto& [operation, count] : other.counts) counts[operation] += sign * count;
  return *this;
}

MachineWork::Shares MachineWork::shares(const std::map<std::string, double>& most) const {
  Shares shares{};
  const double seconds = static_cast<double>(time) * 1e-12;
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    for (const char* operation : operations()[part]) {
      const auto can = most.find(operation), done = counts.find(operation);
      if (can == most.end() || can->second == 0 || seconds == 0 || done == counts.end()) continue;
      shares[part] += done->second / (can->second * seconds);
    }
  }
  return shares;
}

Json MachineWork::utilisation(const std::map<std::string, double>& most) const {
  const Shares shares = this->shares(most);
  Json json = Json::object();
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    for (const char* operation : operations()[part]) {
      if (const auto can = most.find(operation); can != most.end() && can->second != 0)
        json[kParts[part]] = shares[part];
    }
  }
  return json;
}

std::string utilisation_text(const Json& shares) {
  constexpr std::array<const char*, MachineWork::kParts.size()> kNames{"GEMM arrays", "HBM", "NoC", "UCIe",
                                                                       "links between SIPs"};
  std::string text;
  for (std::size_t part = 0; part < kNames.size(); ++part) {
    if (!shares.contains(MachineWork::kParts[part])) continue;
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", kNames[part],
                        100 * shares[MachineWork::kParts[part]].get<double>());
  }
  return text;
}

}  // namespace kernbench
