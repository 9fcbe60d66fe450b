#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ccl/collective.h"
#include "ccl/registry.h"
#include "tlm/ext/message.h"

namespace kernbench {

struct ProcessGroupOptions;

/// The default group: one algorithm bound to the machine, and the order in which the ranks call.
class ProcessGroup {
 public:
  /// Rank r drives SIP r. Throws ConfigError or std::invalid_argument.
  ProcessGroup(const ProcessGroupOptions& options, const MachineMap& map, int world_size);

  int world_size() const { return world_size_; }
  const ccl::Collective& collective() const { return *collective_; }
  /// What the IPCQ rings of a PE take of the memory that they lie in.
  std::uint64_t ring_bytes(PeCoord pe) const;

  /// Enters this rank's next call and returns its number. Throws CollectiveMismatch if another rank's call of that
  /// number was another one.
  std::size_t enter(int rank, const std::string& call);
  /// Every rank has submitted call `number`.
  bool complete(std::size_t number) const;

 private:
  int world_size_;
  ccl::RingNumbers rings_;
  std::unique_ptr<ccl::Collective> collective_;
  struct Call {
    std::string text;  ///< operation, reduce op, elements, dtype
    int first = 0;     ///< rank that called it first
    int submitted = 0;
  };
  std::vector<Call> calls_;        // by number
  std::vector<std::size_t> next_;  // by rank
};

}  // namespace kernbench
