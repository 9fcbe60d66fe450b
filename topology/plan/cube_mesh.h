#pragma once
#include <string>

#include "topology/plan/layout.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// cube_mesh.yaml: the layout of a cube with the five things that determine it and their hash.
std::string export_cube_mesh(const CubeSpec& spec, const CubeMesh& mesh);

/// Reads an exported, possibly edited, file. Throws ConfigError if it is stale (with what has changed since), or
/// attaches something to no router or to the exclusion zone.
CubeMesh load_cube_mesh(const std::string& path, const CubeSpec& spec);

/// The layout of a cube for a run: the pinned file if there is one, else by rule.
CubeLayout find_layout(const CubeSpec& spec, const std::string& pinned);

}  // namespace kernbench::topology
