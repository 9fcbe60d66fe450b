#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tlm/base/time.h"
#include "tlm/observe/wait_for.h"

namespace kernbench {

/// The main context among blocked ranks: reports call it "main".
inline constexpr int kMainContext = -1;

/// A worker that has not finished although nothing is left to happen.
struct BlockedRank {
  int rank = 0;                 ///< or kMainContext
  int sip = 0;                  ///< its device
  std::string waits_for;        ///< "launch 'gemm' on sip0, submitted at 12.000 ns"
  std::optional<PeCoord> pe{};  ///< where ranks are PEs: this one
};

/// Explains a starved run: the ranks and what they wait for; each blocked PE with its kernel, op and what it waits for
/// (at most `limit` rows, the rest as a count); the wait cycle among PEs if there is one, otherwise that of the host
/// program (host_cycle.h), and whom the chain of PEs ends at.
std::string deadlock_report(const std::vector<Blocked>& blocked, const std::vector<BlockedRank>& ranks, Ps now,
                            const std::vector<std::string>& host_cycle = {}, std::size_t limit = 40);

}  // namespace kernbench
