#pragma once

#include <functional>
#include <string>

#include "sc_main/rigs/bare_mesh.h"
#include "sc_main/validate/table.h"
#include "sc_main/validate/validate.h"

/// The bare mesh that a table of the network was measured on, from the settings of the reference simulator.
namespace kernbench::validate {

/// Its pattern names and lists, as ours: "hotspot({{0,3},{2,1}})" is "hotspot(0:2,3:1)".
std::string pattern_of(const std::string& traffic);
/// Size and pattern alone. These throw ConfigError.
void set_shape(BareMeshConfig& mesh, const Table& table);
void set_traffic(BareMeshConfig& mesh, const Table& table, const std::string& key);
/// All of a mesh, from the comment lines of a table of latencies.
BareMeshConfig mesh_of(const Table& table);

/// A run of `config` as figures, and back.
std::function<Figures()> mesh_run(const BareMeshConfig& config);
struct MeshFigures {
  double latency = 0, accepted = 0;
  std::vector<double> least_latency;  ///< of packets by the links of their way; 0: there was none
  explicit MeshFigures(const Figures& figures);
};

}  // namespace kernbench::validate
