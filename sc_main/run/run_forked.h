#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

namespace kernbench {

/// Runs functions in forked processes, `jobs` at a time, and returns what they found in the order in which they were
/// given, whatever the order in which they ended.
///
/// `done(n)` is called after each. Ends early, with its children, when `stop` becomes true: throws RunsUnfinished, with
/// what had ended until then. A function that throws what classify() calls bad input (std::invalid_argument,
/// ConfigError) ends the pool with std::invalid_argument; anything else with RunEnded, of the same exit code and text.
/// A child that ends by itself: std::bad_alloc if it found no memory to say so, else std::runtime_error. REQUIRES: this
/// process has one thread, and no SystemC elaboration has begun.
std::vector<std::vector<double>> run_forked(const std::vector<std::function<std::vector<double>()>>& runs,
                                            unsigned jobs, const std::atomic<bool>& stop,
                                            const std::function<void(std::size_t)>& done = {});

struct RunsUnfinished {
  std::vector<std::vector<double>> results;  ///< of all functions
  std::vector<bool> ended;                   ///< which of them have one
};

}  // namespace kernbench
