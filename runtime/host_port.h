#pragma once
#include <cstdint>
#include <memory>

#include "runtime/runtime.h"

namespace kernbench {

struct RuntimeImpl;

/// Where the host's messages enter the machine, and come back.
class HostPort final : public tlm::tlm_bw_transport_if<> {
 public:
  using StatePtr = std::shared_ptr<Handle::State>;
  explicit HostPort(RuntimeImpl& runtime);
  ~HostPort() override;

  void send(const StatePtr& state);      ///< to the machine, or it is replayed
  void transmit(const StatePtr& state);  ///< to the machine
  void count_send() { ++sends_; }        ///< a replayed one counts, too
  /// The machine has stood still, and nothing has been sent to it since: what is pending needs some rank's doing.
  bool stands_still() const { return still_at_ == sends_; }
  void machine_stands() { still_at_ = sends_; }

 private:
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  RuntimeImpl& runtime_;
  std::uint64_t sends_ = 0;                     // messages that went to the machine so far
  std::uint64_t still_at_ = ~std::uint64_t{0};  // `sends_` when the machine stood still last
  class Payloads;
  std::unique_ptr<Payloads> payloads_;
};

}  // namespace kernbench
