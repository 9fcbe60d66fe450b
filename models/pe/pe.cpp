#include "models/pe/pe.h"

#include "models/pe/pe_cpu.h"
#include "models/pe/services.h"

namespace kernbench {

using namespace pe;  // the parts of a PE

/// The module's sockets: sorts what arrives, and lets others reach TCM.
struct Pe::Impl final : tlm::tlm_fw_transport_if<>, tlm::tlm_bw_transport_if<> {
  Impl(Pe& pe, const PeConfig& config, PeCoord coord, const MachineMap& map, PageTable& pages, PayloadPool& pool,
       const RunOptions& options, EventQueue& queue, Observer* observer, StackPool* stacks)
      : in(pe.in), services(config, coord, map, pages, pool, options, queue, observer, pe.out), cpu(services, stacks) {}

  // As target: packets that the network delivers, and accesses to TCM.
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override;
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override;
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }

  // As initiator: responses.
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  bool reaches_tcm(tlm::tlm_generic_payload& payload, std::uint64_t& offset) const;
  Ps access(tlm::tlm_generic_payload& payload);
  void respond(tlm::tlm_generic_payload& payload);

  tlm::tlm_target_socket<>& in;
  Services services;
  PeCpu cpu;
};

Pe::Pe(const sc_core::sc_module_name& name, const PeConfig& config, PeCoord coord, const MachineMap& map,
       PageTable& pages, PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer,
       StackPool* stacks)
    : sc_module(name),
      impl_(std::make_unique<Impl>(*this, config, coord, map, pages, pool, options, queue, observer, stacks)) {
  in.bind(*impl_);
  out.bind(*impl_);
}

Pe::~Pe() = default;

void Pe::explain(std::vector<Blocked>& blocked) const { impl_->cpu.explain(blocked); }

std::vector<QueueStatistics> Pe::ipcq_statistics() const { return impl_->cpu.ipcq().statistics(); }

tlm::tlm_sync_enum Pe::Impl::nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                             sc_core::sc_time&) {
  if (phase == tlm::END_RESP) return tlm::TLM_COMPLETED;
  sc_assert(phase == tlm::BEGIN_REQ);
  const Packet* packet = Packet::find(payload);
  const bool one_way =
      packet != nullptr && (packet->kind == PacketKind::command || packet->kind == PacketKind::ipcq_data ||
                            packet->kind == PacketKind::ipcq_credit);
  if (!one_way) {
    payload.acquire();
    services.queue.at(access(payload), [this, &payload] { respond(payload); });
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  switch (packet->kind) {
    case PacketKind::command:
      cpu.command(*packet->command);
      break;
    case PacketKind::ipcq_data:
      cpu.ipcq().data_arrived(payload, *packet);
      break;
    default:
      cpu.ipcq().credit_arrived(*packet);
      break;
  }
  payload.release();
  return tlm::TLM_COMPLETED;
}

/// Moves the data and takes the port; the instant of the response.
Ps Pe::Impl::access(tlm::tlm_generic_payload& payload) {
  std::uint64_t offset = 0;
  if (!reaches_tcm(payload, offset)) return services.now();
  const unsigned bytes = payload.get_data_length();
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  if (payload.is_read()) {
    if (services.options.data) services.tcm.read(offset, payload.get_data_ptr(), bytes);
    return services.tcm.reserve_read(services.now(), bytes);
  }
  if (services.options.data) services.tcm.write(offset, payload.get_data_ptr(), bytes);
  return services.tcm.reserve_write(services.now(), bytes);
}

/// Sets the payload's error status if it does not.
bool Pe::Impl::reaches_tcm(tlm::tlm_generic_payload& payload, std::uint64_t& offset) const {
  if (payload.get_byte_enable_ptr() != nullptr) {
    payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return false;
  }
  if (payload.get_streaming_width() < payload.get_data_length()) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return false;
  }
  if (!payload.is_read() && !payload.is_write()) {
    payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
    return false;
  }
  payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  try {
    const PhysicalAddress address = PhysicalAddress::decode(payload.get_address());
    offset = address.offset;
    return address.kind == MemoryKind::tcm && PeCoord{address.sip, address.cube, address.unit} == services.coord &&
           services.tcm.holds(offset, payload.get_data_length());
  } catch (const std::invalid_argument&) {  // the bits name no memory
    return false;
  }
}

void Pe::Impl::respond(tlm::tlm_generic_payload& payload) {
  tlm::tlm_phase phase = tlm::BEGIN_RESP;
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  in->nb_transport_bw(payload, phase, delay);
  payload.release();
}

void Pe::Impl::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  delay += sc_core::sc_time::from_value(access(payload) - services.now());
}

unsigned Pe::Impl::transport_dbg(tlm::tlm_generic_payload& payload) {
  std::uint64_t offset = 0;
  if (!reaches_tcm(payload, offset)) return 0;
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  const unsigned bytes = payload.get_data_length();
  if (payload.is_read()) {
    services.tcm.read(offset, payload.get_data_ptr(), bytes);
  } else {
    services.tcm.write(offset, payload.get_data_ptr(), bytes);
  }
  return bytes;
}

tlm::tlm_sync_enum Pe::Impl::nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                             sc_core::sc_time&) {
  sc_assert(phase == tlm::BEGIN_RESP);
  (void)phase;
  Packet& packet = Packet::of(payload);
  static_cast<ResponseHandler*>(packet.user)->on_response(payload, packet);
  payload.release();
  return tlm::TLM_COMPLETED;
}

}  // namespace kernbench
