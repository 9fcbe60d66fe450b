#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace kernbench::topology {

struct Plan;

/// The most that the components of SIPs [0, sips), and the fabric switch towards them, do in a second, by the key and
/// in the unit of EnergyOperation: MACs, bits of HBM's data buses, bits that leave routers of cubes, raw bits of UCIe
/// and of links between SIPs. What there is none of is left out.
std::map<std::string, double> most_per_second(const Plan& plan, std::uint16_t sips);

}  // namespace kernbench::topology
