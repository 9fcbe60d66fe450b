#pragma once

#include <functional>
#include <map>
#include <string>

#include "sc_main/rigs/bare_mesh.h"
#include "sc_main/validate/table.h"
#include "sc_main/validate/validate.h"

/// The bare mesh that a table of the network was measured on, from the settings of the reference simulator.
namespace kernbench::validate {

/// A mesh, and where the table states each member of its configuration. These throw ConfigError.
struct StatedMesh {
  BareMeshConfig config;
  std::map<std::string, Location> places{};  ///< by BareMeshFault::member

  /// Reads a member as an integer, which `more` is added to.
  void take(const char* member, unsigned BareMeshConfig::*into, const Stated& value, unsigned more = 0);
  /// Its pattern names and lists, as ours: "hotspot({{0,3},{2,1}})" is "hotspot(0:2,3:1)".
  void take_pattern(const Stated& traffic);
  void take_load(const Stated& load);
  void take_window(const Stated& warmup, const Stated& window, std::uint64_t cycles_of_one = 1);
  /// Throws, at its place, what keeps the mesh from being built.
  void check() const;
};
/// Size alone.
void set_shape(StatedMesh& mesh, const Table& table);
/// All of a mesh, from the comment lines of a table of latencies.
StatedMesh mesh_of(const Table& table);

/// A run of `mesh`, which is checked, as figures, and back.
std::function<Figures()> mesh_run(const StatedMesh& mesh);
struct MeshFigures {
  double latency = 0, accepted = 0;
  std::vector<double> least_latency;  ///< of packets by the links of their way; 0: there was none
  explicit MeshFigures(const Figures& figures);
};

}  // namespace kernbench::validate
