#include "models/ucie/ucie_config.h"

#include <stdexcept>

namespace kernbench {

namespace {

struct FlitFormat {
  std::uint64_t payload, raw;  ///< bytes
  std::uint32_t check;         ///< raw bytes under one CRC
};

// Formats: UCIe 1.1, section 3.3; assumed: byte counts, from header and CRC sizes. 68 B: 2 B header, 2 B CRC. Standard
// 256 B: 236 B of transaction layer bytes, as PCIe's. Latency-optimised with optional bytes: 2 B header, 2 B of CRC for
// each half, which the receiver can pass on without the other.
FlitFormat format(UcieFlit flit) {
  switch (flit) {
    case UcieFlit::b68:
      return {64, 68, 68};
    case UcieFlit::b256:
      return {236, 256, 256};
    case UcieFlit::b256_latency_optimised:
      return {250, 256, 128};
    case UcieFlit::raw:
      return {1, 1, 0};
  }
  throw std::invalid_argument("UcieConfig: unknown flit format");
}

}  // namespace

LinkConfig UcieConfig::link() const {
  if (lanes == 0 || transfers_per_second == 0)
    throw std::invalid_argument("UcieConfig: a connection needs lanes and a rate");
  const FlitFormat flit_format = format(flit);
  LinkConfig link;
  link.bytes_per_second = (lanes * transfers_per_second / 8) >> static_cast<unsigned>(width);
  link.payload_parts = flit_format.payload;
  link.raw_parts = flit_format.raw;
  if (flit != UcieFlit::raw) link.flit_bytes = static_cast<std::uint32_t>(flit_format.raw);
  link.check_bytes = flit_format.check;
  link.header_bytes = header_bytes;
  link.latency = 2 * latency_per_side;
  link.buffer_packets = buffer_packets;
  link.bit_errors = bit_errors;
  link.error_seed = error_seed;
  link.energy_per_bit_aj = energy_per_bit_aj;
  return link;
}

}  // namespace kernbench
