#pragma once
#include <fmt/format.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "ccl/contract/error.h"
#include "ccl/run/group_algorithm.h"
#include "ccl/select/registry.h"
#include "tlm/config/problems.h"

namespace kernbench::ccl {

/// An entry of ccl.yaml among which `auto` chooses for one process group.
struct Contender {
  std::string name;
  std::shared_ptr<const GroupAlgorithm> algorithm{};  ///< null: it cannot be loaded, or is for other groups
  std::string unfit{};                                ///< why it serves no call of the group; empty: it does
};

/// All entries, those for few topologies first: what was made for this one may be good. `parameters` replace those of
/// ccl.yaml; an algorithm that does not have one of these is unfit. `calls`: of the group. `named`: an entry that is
/// made already, or null. What is wrong with entries that cannot be loaded goes into `problems`.
std::vector<Contender> contenders(const Registry& registry, const Parameters& parameters, const CallBinder& calls,
                                  const std::shared_ptr<const GroupAlgorithm>& named, Problems& problems);

/// An error's text without the name of its algorithm, behind which it is to stand.
std::string without_name(const std::string& text, const std::string& algorithm);

/// Tries something of an algorithm. Returns why it cannot: a plug-in may throw anything. Empty: it can.
template <class Trial>
std::string attempt(const std::string& algorithm, Trial&& trial) {
  try {
    trial();
    return {};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::invalid_argument& error) {
    return without_name(error.what(), algorithm);
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return fmt::format("refuses: {}", error.what());
  }
}

}  // namespace kernbench::ccl
