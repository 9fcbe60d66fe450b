#pragma once
#include <fmt/format.h>

#include <string>

#include "topology/machine/statistics.h"

namespace kernbench {

/// Makes the JSON of docs/statistics.md, as text: a line per resource. (As a tree of values it would take longer than
/// the run of a small collective.)
class StatisticsText {
 public:
  void take(const topology::RunStatistics& known, const topology::ResourceUse& use);
  /// The whole document.
  std::string finish(const topology::RunStatistics& statistics);

 private:
  void begin(const topology::RunStatistics& known);
  fmt::memory_buffer text_;
  bool any_ = false;
};

}  // namespace kernbench
