#pragma once
#include <cstdint>

#include "models/link/link_config.h"

namespace kernbench {

/// raw: no flits, no check (UCIe's Format 1).
enum class UcieFlit : std::uint8_t { b68, b256, b256_latency_optimised, raw };
/// How much of a connection is in use: failed lanes are given up by halves.
enum class UcieWidth : std::uint8_t { full, half, quarter };

/// A cube's UCIe port on one side. Source: UCIe 1.1 specification, flit formats; latency figures per preset.
struct UcieConfig {
  std::uint32_t connections = 4;                        ///< spread over the routers of the edge
  std::uint32_t lanes = 64;                             ///< per connection and direction
  std::uint64_t transfers_per_second = 16'000'000'000;  ///< per lane
  UcieFlit flit = UcieFlit::b256;
  UcieWidth width = UcieWidth::full;
  Ps latency_per_side = 17'500;       ///< PHY and adapter, one side
  std::uint32_t header_bytes = 16;    ///< per packet: address, ids, kind (assumed: the size of a PCIe TLP header)
  std::uint32_t buffer_packets = 40;  ///< per virtual network; assumed: covers the round trip at the default rate
  std::uint64_t bit_errors = 0;       ///< per 10^18 bits
  std::uint64_t error_seed = 1;
  std::uint64_t energy_per_bit_aj = 250'000;  ///< both sides; UCIe consortium's target for advanced packages: 0.25 pJ

  /// One connection, one direction. Throws std::invalid_argument without lanes or rate.
  LinkConfig link() const;
};

}  // namespace kernbench
