#pragma once
#include "models/pe/ipcq/ipcq.h"

namespace kernbench::pe {

/// Takes the acknowledgements of slot data that were written to a ring in SRAM or HBM.
struct RingWriter final : ResponseHandler {
  explicit RingWriter(QueuePair& pair) : pair(pair) {}
  void on_first_packet(tlm::tlm_generic_payload&) override {}  // an acknowledgement is a packet
  void on_response(tlm::tlm_generic_payload& payload, Packet& packet) override;
  QueuePair& pair;
};

/// Reads the head slot of a ring in SRAM or HBM into the tile that is being received: requests of at most 256 B, or
/// trains, at most as many packets in flight as the DMA engine may have.
struct RingReader final : ResponseHandler {
  explicit RingReader(QueuePair& pair) : pair(pair) {}
  void start();
  void on_first_packet(tlm::tlm_generic_payload& payload) override;
  void on_response(tlm::tlm_generic_payload& payload, Packet& packet) override;

  QueuePair& pair;

 private:
  void issue();
  std::uint32_t bytes_ = 0, issued_ = 0;
  std::uint32_t pending_ = 0, in_flight_ = 0;  // requests; packets of data
  Ps written_ = 0;
};

}  // namespace kernbench::pe
