#pragma once
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "tlm/config/config_node.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

/// The place in the highest layer, of several the first: what the user most likely changed last. `layers`: their files,
/// the lowest first.
Location given_last(const std::vector<Location>& places, const std::vector<std::string>& layers);

/// Where the values under check stand, and which of them can be trusted.
struct CheckContext {
  const ConfigNode& tree;                       ///< all layers merged
  const std::vector<std::string>& layer_files;  ///< lowest layer first
  const std::set<std::string>& failed;          ///< dotted paths without a usable value
  Problems& problems;

  /// The value that was given last.
  Location where(std::initializer_list<const char*> paths) const;
  /// Reports a contradiction between the values at `paths`, unless one of them is in error itself.
  void add(std::initializer_list<const char*> paths, const std::string& text, const std::string& hint) const;
  bool usable(const std::string& path) const;
};

/// Rules that join several values. Each reports all it finds.
void check_system(const SystemSpec& spec, const CheckContext& context);
/// A cube with its PEs.
void check_cube(const CubeSpec& cube, const CheckContext& context);
/// What concerns one PE, in its cube.
void check_pe(const PeConfig& pe, const CubeSpec& cube, const CheckContext& context);

}  // namespace kernbench::topology
