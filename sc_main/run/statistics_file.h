#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/machine/statistics.h"

namespace kernbench {

/// Makes the JSON of docs/statistics.md, as text, and hands it on in blocks: a line per resource. (As a tree of
/// values it would take longer than the run of a small collective.)
class StatisticsText {
 public:
  using Sink = std::function<void(std::string_view)>;
  explicit StatisticsText(Sink sink) : sink_(std::move(sink)) {}

  void take(const topology::RunStatistics& known, const topology::ResourceUse& use);
  /// The rest of the document.
  void finish(const topology::RunStatistics& statistics);

 private:
  void begin(const topology::RunStatistics& known);
  void flush();

  const Sink sink_;
  std::vector<char> text_;  // room for what is handed on together
  std::size_t filled_ = 0;
  bool any_ = false;
};

}  // namespace kernbench
