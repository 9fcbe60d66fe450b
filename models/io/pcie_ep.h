#pragma once
#include <cstdint>
#include <memory>
#include <systemc>
#include <tlm>

#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class Usage;

/// Host link: PCIe generation, lanes and TLP efficiency give the rate. Sources: topology preset.
struct PcieConfig {
  std::uint32_t generation = 5, lanes = 16;
  std::uint64_t bytes_per_second = 63'015'000'000;  ///< one direction, after line encoding
  std::uint32_t tlp_payload_bytes = 256, tlp_overhead_bytes = 24;
  Ps latency = 250'000;                         ///< one way
  Ps doorbell = 5'000;                          ///< endpoint's handling of one message
  std::uint32_t credits = 128;                  ///< TLPs that the receiver of either direction holds
  std::uint32_t outstanding = 64;               ///< bursts of host copies in flight
  std::uint64_t energy_per_bit_aj = 5'000'000;  ///< both ends together

  /// What generation and lanes allow, bytes per second of one direction, after line encoding.   source: PCI Express
  /// Base Specification: generations 3 to 5 make 8, 16, 32 GT/s with 128b/130b encoding; 6 makes 64 GT/s without, with
  /// 236 of the 256 bytes of a flit
  std::uint64_t bandwidth_of_lanes() const {
    const std::uint64_t transfers = std::uint64_t{1'000'000'000} << generation;
    return generation >= 6 ? transfers * lanes / 8 * 236 / 256 : transfers * lanes / 8 * 128 / 130;
  }
};

/// What one direction of the host link has carried. Statistic, unit, meaning:
struct PcieStats {
  std::uint64_t tlps = 0;       ///< TLPs
  std::uint64_t bytes = 0;      ///< bytes of payload
  std::uint64_t raw_bytes = 0;  ///< bytes of payload and TLP overhead
  Ps busy = 0;                  ///< ps    that TLPs held the link or waited on it for credits
};

/// The PCIe endpoint of a SIP. `host`: messages (payloads with a MessageExtension) by nb_transport, answered BEGIN_RESP
/// when the machine has completed them; transport_dbg reaches any memory of the machine, untimed.
class PcieEp : public sc_core::sc_module {
 public:
  PcieEp(const sc_core::sc_module_name& name, const PcieConfig& config, std::uint16_t sip, const MachineMap& map,
         PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer);
  ~PcieEp() override;
  tlm::tlm_target_socket<> host{"host"};
  tlm::tlm_initiator_socket<> out{"out"};
  tlm::tlm_target_socket<> in{"in"};

  /// Books what crosses the link: from the host, and to it.
  void observe_usage(Usage* down, Usage* up);
  const PcieStats& down_stats() const;  ///< from the host
  const PcieStats& up_stats() const;    ///< to the host

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kernbench
