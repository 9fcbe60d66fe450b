#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ccl/contract/contract.h"
#include "ccl/contract/error.h"

namespace kernbench::ccl {

inline constexpr const char* kBuiltinPrefix = "kernbench.ccl.";  ///< of the modules that need no file
inline bool is_builtin(const std::string& module) { return module.rfind(kBuiltinPrefix, 0) == 0; }

/// One entry of ccl.yaml with its module loaded.
struct AlgorithmEntry {
  std::string name;  ///< of the entry
  std::string module;
  std::shared_ptr<const Algorithm> algorithm;  ///< keeps a shared library open
  Parameters parameters;                       ///< every declared one, with ccl.yaml's value or its preset
  std::optional<int> world_size{};             ///< given: a rank is a PE, and there are as many; see Group::pes
  std::shared_ptr<const Schedule> schedule{};  ///< of a module that is a schedule file; used instead of planning

  bool is_built_in() const { return is_builtin(module); }
  /// A built-in one under its own name, with no parameter changed: what was measured of it holds.
  bool is_as_shipped() const;
  /// Throws Error, with both signatures, if kernel_args and kernel disagree.
  void check_signature() const;
  /// "algorithm 'nine' (nine.xml)": what is built in has no file, and a file without an entry its own name.
  std::string described() const;
  /// What the algorithm, or the file, has for a request with these parameters. REQUIRES: it gives schedules. Throws
  /// Error if it has nothing.
  Plan plan(PlanRequest request) const;
  /// Node pairs that it uses, with these parameters.
  std::vector<std::pair<std::int32_t, std::int32_t>> links(PlanRequest request) const;
};

/// Keys that every entry may have, whatever its algorithm declares.
inline const std::vector<std::string> kEntryKeys = {"module", "world_size", "n_elem"};

/// Names of the built-in algorithms, without their prefix.
std::vector<std::string> builtin_algorithms();

/// Opens a module: `kernbench.ccl.<name>` or the path of a shared library. Does nothing else with it. What the
/// descriptor leaves out is filled in. Throws Error.
std::shared_ptr<const Algorithm> load_module(const std::string& module);

}  // namespace kernbench::ccl
