#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/pipeline/run/task_times.h"

namespace kernbench::pipeline {

/// Rows of a table by indices, which the host reads and passes as arguments, since kernels see no data.
///
/// Constants and inputs of the pipeline are the host's own: it knows them with and without data. Computed indices it
/// knows with data only. So the machine looks up seeded rows for them, always, and with data the right rows are put in
/// their place in no time: both runs take the same time.
struct LookUp {
  std::string name;
  Tensor table, indices, out;
  const std::vector<std::uint8_t>* table_known = nullptr;    ///< contents that the host knows; null: computed
  const std::vector<std::uint8_t>* indices_known = nullptr;  ///< likewise
};

/// Waits for what was launched; for computed indices also for the look-up. Throws std::invalid_argument on an index
/// that is outside of the table.
void look_up_rows(Context& context, TaskTimes& launches, const LookUp& what, const RunSettings& settings);

}  // namespace kernbench::pipeline
