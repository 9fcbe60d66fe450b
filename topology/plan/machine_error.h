#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tlm/config/problems.h"

namespace kernbench::topology {

/// Values that are sound one by one, but do not go together.
struct Mismatch {
  std::vector<std::string> keys;  ///< values or sections of topology.yaml
  std::string text, hint;
};

/// The machine that the values make cannot be. `mismatches` lead to the places in the user's file
/// (Resolved::place_of), which stages 3 to 5 do not know.
class MachineError : public ConfigError {
 public:
  MachineError(std::string key, std::string text, std::string hint)
      : MachineError(std::vector<std::string>{std::move(key)}, std::move(text), std::move(hint)) {}
  MachineError(std::vector<std::string> keys, std::string text, std::string hint)
      : MachineError(std::vector<Mismatch>{{std::move(keys), std::move(text), std::move(hint)}}) {}
  explicit MachineError(std::vector<Mismatch> list) : ConfigError(unlocated(list)), mismatches(std::move(list)) {}
  const std::vector<Mismatch> mismatches;

 private:
  static Problems unlocated(const std::vector<Mismatch>& list) {
    Problems problems;
    for (const Mismatch& one : list) problems.add({}, one.text, one.hint);
    return problems;
  }
};

/// What a stage finds in one part of the machine keeps it from no other part.
class Mismatches {
 public:
  /// Runs `part`, and keeps what it throws as MachineError.
  template <class Part>
  void tell(const Part& part) {
    try {
      part();
    } catch (const MachineError& error) {
      list_.insert(list_.end(), error.mismatches.begin(), error.mismatches.end());
    }
  }
  void throw_if_any() {
    if (!list_.empty()) throw MachineError(std::move(list_));
  }

 private:
  std::vector<Mismatch> list_;
};

}  // namespace kernbench::topology
