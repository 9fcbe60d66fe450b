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

/// Where the user's cache keeps the layout of a cube: $XDG_CACHE_HOME (or
/// ~/.cache)/kernbench/cube_mesh/<hash>-v<rule>.yaml; empty if there is neither variable.
std::string cached_cube_mesh_path(const CubeSpec& spec);
/// Writes the layout by rule there, with a checksum: what somebody edits in the cache is not read. Returns the path.
std::string cache_cube_mesh(const CubeSpec& spec);

/// Writes a file whole or not at all: to a temporary name, then renamed. Makes its folder. Throws std::runtime_error.
void write_cube_mesh(const std::string& path, const std::string& text);

/// The layout of a cube for a run: the pinned file if there is one, else the cached one if it is there and intact, else
/// by rule. Only reads.
CubeLayout find_layout(const CubeSpec& spec, const std::string& pinned);

}  // namespace kernbench::topology
