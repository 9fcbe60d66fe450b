#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "models/io/io_cpu.h"
#include "models/io/pcie_ep.h"
#include "models/m_cpu/m_cpu.h"
#include "models/memory/sparse_memory.h"
#include "tlm/ext/message.h"
#include "tlm/ext/page_table.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench::testing {

/// A machine whose PCIE_EPs, IO_CPUs and M_CPUs are real, with a network of one fixed latency, PEs that only follow the
/// launch protocol, and memories that answer after a fixed time.
class FakeMachine {
 public:
  struct Shape {
    std::uint16_t sips = 1, cube_w = 2, cube_h = 1, pes = 2;
    std::uint64_t hbm_slice_bytes = 1 << 20;
  };
  static constexpr Ps kHop = 20'000;     ///< any node to any node
  static constexpr Ps kMemory = 50'000;  ///< request to response at a memory
  static constexpr Ps kArm = 7'000;      ///< PE: arm to armed

  FakeMachine(const Shape& shape, const RunOptions& options, Observer* observer = nullptr);
  ~FakeMachine();

  const MachineMap& map() const { return map_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  PayloadPool& pool() { return pool_; }
  const PageTable& pages(std::uint16_t sip) const { return pages_[sip]; }
  tlm::tlm_target_socket<>& host_socket(std::uint16_t sip) { return endpoints_[sip]->host; }
  const PcieConfig& pcie_config() const { return pcie_config_; }
  const IoCpuConfig& io_config() const { return io_config_; }
  const MCpuConfig& m_config() const { return m_config_; }

  // What the PEs do. Changeable before and during a run.
  std::function<Ps(PeCoord, const LaunchMessage&)> duration;               ///< of a kernel; default 1 us
  std::function<void(PeCoord, const LaunchMessage&)> effect;               ///< at its end, on contents; default nothing
  std::function<bool(PeCoord, const LaunchMessage&)> fails_to_arm, fails;  ///< default never
  std::function<bool(PeCoord, const LaunchMessage&)> hangs;                ///< never ends; default never
  std::function<void(PeCoord)> hears_unmap;                                ///< a PE drops its TLB entries

  struct Record {
    PeCoord pe;
    std::string kernel;
    Ps armed = 0, start = 0, end = 0;
  };
  std::vector<Record> launches;                        ///< in order of their ends
  std::map<PeCoord, std::vector<NeighbourEntry>> sfr;  ///< as written
  std::map<PeCoord, std::uint64_t> map_entries;        ///< entries that reached each PE
  std::map<PeCoord, std::uint64_t> program_bytes;      ///< of programs, likewise

  /// Contents of a PE's HBM slice.
  void read(const PhysicalAddress& from, void* data, std::size_t bytes);
  void write(const PhysicalAddress& to, const void* data, std::size_t bytes);
  /// Largest number of requests that one memory had at a time.
  std::size_t most_outstanding(NodeId memory) const;
  void fail_memory(NodeId memory);  ///< it answers with an address error from now on

 private:
  class Fabric;
  class Pe;
  class Memory;
  void build_map(const Shape& shape);
  NodeId add_node(NodeKind kind, std::uint16_t sip, std::uint16_t cube, std::uint16_t unit);

  MachineMap map_;
  PcieConfig pcie_config_;
  IoCpuConfig io_config_;
  MCpuConfig m_config_;
  PayloadPool pool_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::deque<PageTable> pages_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::unique_ptr<PcieEp>> endpoints_;
  std::vector<std::unique_ptr<IoCpu>> io_cpus_;
  std::vector<std::unique_ptr<MCpu>> m_cpus_;
  std::vector<std::unique_ptr<Pe>> pes_;
  std::map<NodeId, std::unique_ptr<Memory>> memories_;
};

}  // namespace kernbench::testing
