#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "tlm/machine/ids.h"

namespace kernbench {

/// What a run does, for threads outside of the simulation: atomics, written by the one that simulates.
class Activity {
 public:
  /// A piece of work has come to its end: an op, a request of a memory, a message of a queue or of the
  /// host, a command, a packet of a rig.
  void completed() { completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  std::uint64_t count() const { return completed_.load(std::memory_order_relaxed); }

  /// From now on a kernel's own code runs; a long name is cut.
  void enter(const std::string& kernel, PeCoord pe) {
    std::array<char, sizeof(std::uint64_t) * kWords> name{};
    std::copy_n(kernel.data(), std::min(kernel.size(), name.size()), name.data());
    for (std::size_t i = 0; i < kWords; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, name.data() + i * sizeof word, sizeof word);
      name_[i].store(word, std::memory_order_relaxed);
    }
    pe_.store(std::uint64_t{1} << 63 | std::uint64_t{pe.sip} << 32 | std::uint64_t{pe.cube} << 16 | pe.pe,
              std::memory_order_release);
  }
  void leave() { pe_.store(0, std::memory_order_relaxed); }
  /// "kernel 'gemm' on sip0.cube1.pe2"; empty: no kernel's code runs.
  std::string kernel() const;

 private:
  static constexpr std::size_t kWords = 8;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<std::uint64_t> pe_{0};  // 0: none
  std::array<std::atomic<std::uint64_t>, kWords> name_{};
};

}  // namespace kernbench
