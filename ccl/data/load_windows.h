#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

/// In which order a lane reads and writes memories that all lanes need (decision 0170). Plain rules, without a machine.
namespace kernbench::ccl {

/// Lane `number` of `of`, all of which run the same list.
struct Stagger {
  std::size_t number = 0, of = 1;
};

/// Lane i of n begins what all of them do at i/n of it, and does what comes before last.
template <class Iterator>
void begin_staggered(Iterator begin, Iterator end, Stagger stagger) {
  const auto first = static_cast<std::size_t>(std::distance(begin, end)) * stagger.number / stagger.of;
  std::rotate(begin, begin + static_cast<std::ptrdiff_t>(first), end);
}

/// A value that a list reads from memory.
struct FirstUse {
  std::uint32_t value = 0;  ///< a number of the caller's
  std::int32_t region = 0;  ///< of `in`
  std::int32_t memory = 0;  ///< where its part of the region lies, as a number
  std::size_t entry = 0;    ///< of the list, the first that uses it
};

/// Loads of a list, ahead of their use.
struct LoadPlan {
  /// Once the list comes to `entry`, all loads before `until` begin.
  struct From {
    std::size_t entry = 0, until = 0;
  };
  std::vector<std::uint32_t> loads;  ///< values
  std::vector<From> from;            ///< by entry
};

/// Sizes of windows, in values.
struct Windows {
  std::size_t first = 1;  ///< the first one, for which the list waits, at most
  std::size_t most = 1;   ///< the others, at most
};

/// Windows in the order of their first use, which is that of `uses`; each begins at the lane's place. The first one
/// ends once it has something of every memory. Those after it are longer than the one before by at most an eighth: what
/// is loaded ahead takes turns with what the steps need, and would hold it up. The loads of a window begin one after
/// the other with the uses of the window before.
LoadPlan plan_loads(const std::vector<FirstUse>& uses, Windows windows, Stagger stagger);

}  // namespace kernbench::ccl
