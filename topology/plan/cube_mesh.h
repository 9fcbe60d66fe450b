#pragma once
#include <string>

#include "topology/plan/layout.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// cube_mesh.yaml: the layout of a cube with the five things that determine it and their hash.
std::string export_cube_mesh(const CubeSpec& spec, const CubeMesh& mesh);

/// Reads the text of an exported, possibly edited, file. Throws ConfigError if it is stale (with what has changed
/// since), or attaches something to no router or to the exclusion zone.
CubeMesh read_cube_mesh(const std::string& text, const std::string& file, const CubeSpec& spec);

/// The layout of a cube for a run: the machine's pinned one if there is one, else by rule.
CubeLayout find_layout(const CubeSpec& spec, const SystemSpec& machine);

}  // namespace kernbench::topology
