#include "ccl/data/load_windows.h"

#include <set>

namespace kernbench::ccl {

LoadPlan plan_loads(const std::vector<FirstUse>& uses, Windows windows, Stagger stagger) {
  LoadPlan plan;
  std::set<std::int32_t> memories, first;
  for (const FirstUse& use : uses) {
    plan.loads.push_back(use.value);
    memories.insert(use.memory);
  }
  const auto at = [&](std::size_t i) { return plan.loads.begin() + static_cast<std::ptrdiff_t>(i); };
  std::size_t begin = 0, next = 0;
  for (; next < std::min(windows.first, uses.size()) && first.size() < memories.size(); ++next) {
    first.insert(uses[next].memory);
  }
  if (next > 0) plan.from.push_back({0, next});
  begin_staggered(at(0), at(next), stagger);
  while (begin < uses.size()) {
    const std::size_t size = next - begin;
    const std::size_t longer = size + (size + 7) / 8;
    const std::size_t after = std::min(next + std::min(longer, windows.most), uses.size());
    begin_staggered(at(next), at(after), stagger);
    for (std::size_t i = 0; i < size; ++i) {
      plan.from.push_back({uses[begin + i].entry, next + (after - next) * (i + 1) / size});
    }
    begin = next;
    next = after;
  }
  return plan;
}

}  // namespace kernbench::ccl
