#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/replay_options.h"
#include "runtime/runtime.h"
#include "tlm/observe/cause.h"
#include "tlm/observe/observer.h"

namespace kernbench {

namespace topology {
struct Plan;
}

/// `--explain`: what the launches of each kernel computed and moved, by the records that every launch leaves;
/// docs/look.md.
///
/// Kernels of the layers of a model are one where their names differ in "layer<k>." only. Memory goes with the launches
/// under way and the kernels' names. Launches that are repeated do what the mean of simulated ones did.
class LaunchTable final : public OpObserver, public ReplayRecord {
 public:
  explicit LaunchTable(const topology::Plan& plan) : plan_(plan) {}

  void op(const OpRecord& record) override;
  void kernel(const OpRecord& record) override;

  std::unique_ptr<Done> begin(const Batch& batch) override;
  void end(int sip, Done& done) override;
  void simulated(ReplayRecord::Work work, const Done& done, Ps from, bool afresh) override;
  void repeated(ReplayRecord::Work work, const Batch& batch, Ps begin, Ps end) override;

  /// After the run. `trace`: what the host says of its launches; `causes`: of their critical paths.
  nlohmann::ordered_json json(const std::vector<HostTraceEntry>& trace, const CauseLog& causes) const;
  /// Lines that start with "# ".
  static std::string text(const nlohmann::ordered_json& launches);

 private:
  enum Engine : std::uint8_t { gemm, math, dma_r, dma_w };
  static constexpr std::size_t kEngines = 4;
  /// What launches did, summed over their PEs.
  struct Work {
    std::array<double, kEngines> busy{};  ///< ps
    double flops = 0;
    double array_s = 0;                   ///< of the arrays at their peak, s
    std::map<std::string, double> bytes;  ///< moved by DMA, by the kind of memory
    double sent = 0;                      ///< over queues, bytes

    void add(const Work& other, double times);
  };
  struct Open {
    std::string kernel;
    Ps begin = kNever, end = 0, pe_time = 0;
    std::size_t pes = 0;
    int sip = 0;
    double hbm_rate = 0;  ///< of the slices of its PEs, B/s
    Work work;
  };
  struct Sum {
    double launches = 0, pes = 0, time = 0, pe_time = 0;  ///< times: ps
    double hbm_s = 0;                                     ///< of the memories of its PEs at their peak, s
    Work work;
    void add(const Sum& other, double times);
  };
  using Sums = std::map<std::string, Sum>;  // by kernel
  struct Launched;
  struct Seen {  // of one part of a kind of work
    Sums sums;
    double occurrences = 0, repeats = 0;
  };
  /// Times at which an engine is busy, whose ops overlap and come by their ends.
  class Busy {
   public:
    /// What of [start, end) was not known as busy.
    Ps add(Ps start, Ps end);

   private:
    static constexpr std::size_t kMost = 64;  ///< that an op can have begun before: queues are shorter
    std::vector<std::pair<Ps, Ps>> known_;    ///< apart from each other, in order of time, the last ones
  };
  void close(const Open& launch);

  const topology::Plan& plan_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::unordered_map<std::string, Busy> busy_;                ///< by engine
  std::vector<std::string> order_;                            ///< of kernels, by their first end
  std::map<int, Sums> by_sip_;                                ///< of simulated launches
  std::map<std::pair<std::size_t, std::size_t>, Seen> seen_;  ///< by kind of work and part
};

/// Topology keys that govern what a step of a critical path is spent on, at a place of that name.
std::vector<std::string> keys_of(Spent spent, const std::string& place);

}  // namespace kernbench
