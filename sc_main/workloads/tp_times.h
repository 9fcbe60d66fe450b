#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/tool_work.h"

namespace kernbench {

inline double in_ns(Ps time) { return static_cast<double>(time) / 1e3; }

/// Bounds of collectives, each worked out once.
class CollectiveBounds {
 public:
  /// Over SIPs 0 to ranks - 1.
  CollectiveBounds(const MachineMap& map, int ranks);
  /// Over one or another of these groups of SIPs: the least bound of them, for a trace does not say which.
  CollectiveBounds(const MachineMap& map, std::vector<std::vector<std::uint16_t>> groups)
      : map_(map), groups_(std::move(groups)) {}
  /// `operation`: as in the host trace; `bytes`: as nccl-tests counts; `spread`: evenly over all PEs. Otherwise only
  /// what holds wherever the tensors lie counts.
  Ps of(const std::string& operation, std::uint64_t bytes, bool spread);

 private:
  const MachineMap& map_;
  std::vector<std::vector<std::uint16_t>> groups_;
  std::map<std::tuple<std::string, std::uint64_t, bool>, Ps> known_;
};

/// Where the time of a tensor-parallel run goes, by the clock of rank 0's host program: its set-up, then passes of
/// layers, each from barrier to barrier, so that a layer's time ends with the slowest rank. What a row adds up to is
/// its time, to the picosecond. Shared by the ranks, which take turns.
class TpTimes {
 public:
  /// What the set-up is for.
  enum class SetUp { mapping, loading, queues };
  /// Launches of one name.
  struct Launches {
    std::string name;
    LaunchBound bound;  ///< sums; m, n, k and mapping of one of them
    Ps kernel = 0;      ///< first PE that begins to last that ends
    std::size_t count = 0;
    std::map<std::string, Ps> by;  ///< bounds by what binds them
  };
  /// Of a layer, or of the set-up; of layers the sum over the passes that count.
  struct Row {
    Ps time = 0;                  ///< set-up: mapping, loading, queues and waiting; else launch, collective, waiting
    Ps mapping = 0, loading = 0;  ///< tensors: their map messages, their contents
    Ps queues = 0;                ///< choosing algorithms, installing neighbour tables
    Ps launch = 0;                ///< a launch is under way, submit to completion
    Ps collective = 0;            ///< a collective is and no launch: exposed communication
    Ps hidden = 0;                ///< both are; in `launch`
    Ps waiting = 0;               ///< nothing of rank 0 is under way: for the other ranks
    std::size_t launches = 0, collectives = 0;
    Ps kernel = 0;                              ///< of the launches: first PE that begins to last that ends
    Ps launch_bound = 0, collective_bound = 0;  ///< sums over launches and over collectives
    std::map<std::string, Ps> by;               ///< of launches and collectives: bounds by what binds them
    double flops = 0, bytes = 0;                ///< of launches: arithmetic; least traffic of the memories
    std::vector<Launches> details;              ///< by name, in the order of their first

    Row& operator+=(const Row& other);
    /// Launches of the same name in all layers become one: "layer3.mlp.up" is "mlp.up".
    void join_layers();
    void add_details(const Launches& one);
    /// What no run beats: work and communication at once where they overlap, one after the other where they do not.
    Ps bound() const { return hidden > 0 ? std::max(launch_bound, collective_bound) : launch_bound + collective_bound; }
    /// Name of what the largest part of the bound is due to.
    std::string binds() const;
  };

  TpTimes(std::size_t layers, int warmup, int passes) : layers_(layers), warmup_(warmup), passes_(passes) {}

  /// `work` is part of the set-up. Every rank calls it.
  template <class Work>
  void set_up(Context& ctx, SetUp what, const Work& work) {
    const Ps begin = ctx.now();
    {
      std::optional<ToolWork> filling;
      if (what == SetUp::loading) filling.emplace(ctx);
      work();
    }
    add(ctx, what, begin);
  }
  /// Ends the set-up, then `pass(layer)` for every layer, warm-up and all. Every rank calls it.
  template <class Pass>
  void run(Context& ctx, const Pass& pass) {
    next(ctx, kSetUp);
    for (int i = 0; i < warmup_ + passes_; ++i) {
      for (std::size_t layer = 0; layer < layers_; ++layer) {
        begin(ctx, i, layer);
        pass(layer);
        next(ctx, i < warmup_ ? kWarmUp : layer);
      }
    }
    ctx.begin_stretch("");
  }

  // After the run.
  /// A timed layer of a pass, from one barrier to the next, on rank 0.
  struct Pass {
    std::size_t layer;
    Ps begin, end;
  };
  const std::vector<Pass>& passes() const { return made_; }  ///< in order
  /// What rank 0 had under way between two times: time, launch, collective, hidden, waiting. REQUIRES: it had waited
  /// for all that it had submitted by either of them.
  static Row between(const std::vector<HostTraceEntry>& trace, Ps begin, Ps end);
  const Row& of_set_up() const { return set_up_; }
  /// A row for each layer. `trace`: of the run.
  std::vector<Row> of_layers(const std::vector<HostTraceEntry>& trace, CollectiveBounds& bounds) const;
  /// What a row of layers adds up to, of one pass, its counts, bound and share.
  void add_to(const Row& row, nlohmann::ordered_json& json) const { add_to(row, passes_, json); }
  /// The same where the row is of so many passes.
  static void add_to(const Row& row, int passes, nlohmann::ordered_json& json);
  double mean_ns(Ps sum) const { return static_cast<double>(sum) / passes_ / 1e3; }

  /// The set-up's row: what all tensor-parallel workloads say of it.
  void add_set_up_to(nlohmann::ordered_json& json) const;
  std::string set_up_text() const;  ///< a comment for the terminal
  /// Comment for the terminal: how much of a row's communication launches hide; nothing without communication.
  static std::string overlap_text(const nlohmann::ordered_json& row);
  /// Comments for the terminal: what stands in `kernels` of a row.
  static std::string kernels_text(const nlohmann::ordered_json& row);

 private:
  static constexpr std::size_t kSetUp = static_cast<std::size_t>(-1), kWarmUp = kSetUp - 1;
  void add(Context& ctx, SetUp what, Ps begin);
  void begin(Context& ctx, int pass, std::size_t layer) const;
  void next(Context& ctx, std::size_t layer);

  const std::size_t layers_;
  const int warmup_, passes_;
  Ps begin_ = 0;  // of what is under way
  Row set_up_;
  std::vector<Pass> made_;
};

}  // namespace kernbench
