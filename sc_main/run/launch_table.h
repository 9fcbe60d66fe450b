#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

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
/// under way and the kernels' names.
class LaunchTable final : public OpObserver {
 public:
  explicit LaunchTable(const topology::Plan& plan) : plan_(plan) {}

  void op(const OpRecord& record) override;
  void kernel(const OpRecord& record) override;

  /// After the run. `trace`: what the host says of its launches; `causes`: of their critical paths.
  nlohmann::ordered_json json(const std::vector<HostTraceEntry>& trace, const CauseLog& causes) const;
  /// Lines that start with "# ".
  static std::string text(const nlohmann::ordered_json& launches);

 private:
  enum Engine : std::uint8_t { gemm, math, dma_r, dma_w };
  static constexpr std::size_t kEngines = 4;
  /// What launches did, summed over their PEs.
  struct Work {
    std::array<Ps, kEngines> busy{};
    double flops = 0;
    double array_s = 0;                   ///< of the arrays at their peak, s
    std::map<std::string, double> bytes;  ///< moved by DMA, by the kind of memory
    double sent = 0;                      ///< over queues, bytes

    Work& operator+=(const Work& other);
  };
  struct Open {
    std::string kernel;
    Ps begin = kNever, end = 0, pe_time = 0;
    std::size_t pes = 0;
    double hbm_rate = 0;  ///< of the slices of its PEs, B/s
    Work work;
  };
  struct Sum {
    std::size_t launches = 0, pes = 0;
    Ps time = 0, pe_time = 0;
    double hbm_s = 0;  ///< of the memories of its PEs at their peak, s
    Work work;
  };
  void close(const Open& launch);

  const topology::Plan& plan_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::unordered_map<std::string, Ps> until_;  ///< by engine: the end of what has been counted as busy
  std::vector<std::string> order_;             ///< of kernels, by their first end
  std::map<std::string, Sum> sums_;
};

/// Topology keys that govern what a step of a critical path is spent on, at a place of that name.
std::vector<std::string> keys_of(Spent spent, const std::string& place);

}  // namespace kernbench
