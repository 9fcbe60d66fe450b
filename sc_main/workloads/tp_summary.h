#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/tp/model.h"
#include "sc_main/workloads/tp_times.h"
#include "tlm/machine/machine_map.h"

namespace kernbench {

/// What of a model takes memory of a rank's SIP, at least.
struct TpMemory {
  struct Term {
    std::string name, remedy;  ///< the remedy: "use more SIPs"
    std::uint64_t bytes = 0;
  };
  std::vector<Term> terms;
  std::uint64_t have = 0;  ///< HBM of the SIP

  /// `positions`: of each of `batch` sequences; `rows`: tokens of the longest pass; `ends`: of embedding and
  /// output matrix, how many are there.
  TpMemory(const tp::Model& model, const MachineMap& map, std::int64_t layers, std::int64_t ranks, std::int64_t batch,
           std::int64_t positions, std::int64_t rows, DType dtype, std::int64_t ends);
  std::uint64_t need() const;
  /// Throws OutOfDeviceMemory that says what `who` ("model 'm'") needs, what there is, and the largest term with its
  /// remedy.
  void check(const std::string& who) const;
};

/// Where the time of a row of layers goes, ns of one pass: the parts add up to its time.
///
/// Launches by what binds them: `compute` the arrays or the math engines, `hbm` the memories, `latency` what nothing
/// hides; `host` is from submission to completion beside their kernels; `exposed` communication with no launch under
/// way.
nlohmann::ordered_json where_time_goes(const TpTimes::Row& row, int passes);

}  // namespace kernbench
