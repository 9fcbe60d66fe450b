#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace kernbench {

inline double in_ns(Ps time) { return static_cast<double>(time) / 1e3; }

/// Where the time of a tensor-parallel run goes, by the clock of rank 0's host program: its set-up, then passes of
/// layers, each from barrier to barrier, so that a layer's time ends with the slowest rank. What a row adds up to is
/// its time, to the picosecond. Shared by the ranks, which take turns.
class TpTimes {
 public:
  /// What the set-up is for.
  enum class SetUp { mapping, loading, queues };
  /// Of a layer, or of the set-up; of layers the sum over the passes that count.
  struct Row {
    Ps time = 0;                    ///< what follows adds up to it
    Ps mapping = 0, loading = 0;    ///< tensors: their map messages, their contents
    Ps queues = 0;                  ///< choosing algorithms, installing neighbour tables
    Ps launch = 0, collective = 0;  ///< submit to completion
    Ps waiting = 0;                 ///< nothing of rank 0 is under way: for the other ranks
    std::size_t launches = 0, collectives = 0;

    Row& operator+=(const Row& other);
  };

  TpTimes(std::size_t layers, int warmup, int passes) : layers_(layers), warmup_(warmup), passes_(passes) {}

  /// `work` is part of the set-up. Every rank calls it.
  template <class Work>
  void set_up(Context& ctx, SetUp what, const Work& work) {
    const Ps begin = ctx.now();
    work();
    add(ctx, what, begin);
  }
  /// Ends the set-up, then `pass(layer)` for every layer, warm-up and all. Every rank calls it.
  template <class Pass>
  void run(Context& ctx, const Pass& pass) {
    next(ctx, kSetUp);
    for (int i = 0; i < warmup_ + passes_; ++i) {
      for (std::size_t layer = 0; layer < layers_; ++layer) {
        pass(layer);
        next(ctx, i < warmup_ ? kWarmUp : layer);
      }
    }
  }

  // After the run.
  const Row& of_set_up() const { return set_up_; }
  /// `trace`: of the run.
  Row of_layer(std::size_t layer, const std::vector<HostTraceEntry>& trace) const;
  /// What a row of layers adds up to, of one pass, and its counts.
  void add_to(const Row& row, nlohmann::ordered_json& json) const;
  double mean_ns(Ps sum) const { return static_cast<double>(sum) / passes_ / 1e3; }

  /// The set-up's row: what all tensor-parallel workloads say of it.
  void add_set_up_to(nlohmann::ordered_json& json) const;
  std::string set_up_text() const;  ///< a comment for the terminal

 private:
  static constexpr std::size_t kSetUp = static_cast<std::size_t>(-1), kWarmUp = kSetUp - 1;
  /// From one barrier to the next, on rank 0.
  struct Pass {
    std::size_t layer;
    Ps begin, end;
  };
  void add(Context& ctx, SetUp what, Ps begin);
  void next(Context& ctx, std::size_t layer);

  const std::size_t layers_;
  const int warmup_, passes_;
  Ps begin_ = 0;  // of what is under way
  Row set_up_;
  std::vector<Pass> made_;
};

}  // namespace kernbench
