#pragma once
#include <optional>

#include "models/memory/memory_port.h"
#include "models/pe/services.h"

namespace kernbench::pe {

/// TCM as a target of the TLM-2.0 base protocol, for DMA of other PEs, the host and whoever else has the address: see
/// MemoryPort. At most `queue_depth` accesses are in service; they share ports and banks with the PE's own (TcmTiming).
class TcmPort final : public MemoryBackend {
 public:
  TcmPort(tlm::tlm_target_socket<>& socket, Services& services)
      : services_(services), port_(socket, 0, *this, services.queue, MemoryPort::Unbound{}) {}
  MemoryPort& port() { return port_; }

  bool take(unsigned port, tlm::tlm_generic_payload& payload, Ps arrival) override;
  Ps serve(unsigned port, tlm::tlm_generic_payload& payload, Ps start) override;
  unsigned debug(unsigned port, tlm::tlm_generic_payload& payload) override;

 private:
  /// Offset of the bytes; nothing if they cannot be served. Sets the response status.
  std::optional<std::uint64_t> locate(tlm::tlm_generic_payload& payload) const;
  Ps book(tlm::tlm_generic_payload& payload, std::uint64_t offset, Ps start);

  Services& services_;
  MemoryPort port_;
  std::uint32_t in_service_ = 0;
  bool blocked_ = false;  // a request waits at the port
};

}  // namespace kernbench::pe
