#include "models/pe/pe.h"

#include "models/pe/cpu/pe_cpu.h"
#include "models/pe/services.h"
#include "models/pe/tcm/tcm_port.h"

namespace kernbench {

using namespace pe;  // the parts of a PE

/// The module's sockets: sorts what arrives, and lets others reach TCM.
struct Pe::Impl final : tlm::tlm_fw_transport_if<>, tlm::tlm_bw_transport_if<> {
  Impl(Pe& pe, const PeConfig& config, PeCoord coord, const MachineMap& map, PageTable& pages, PayloadPool& pool,
       const RunOptions& options, EventQueue& queue, Observer* observer, StackPool* stacks, RaceDetector* races)
      : services(config, coord, map, pages, races, pool, options, queue, observer, pe.out),
        cpu(services, stacks),
        tcm(pe.in, services) {}

  // As target: packets that the network delivers, and accesses to TCM.
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time& delay) override;
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override {
    tcm.port().b_transport(payload, delay);
  }
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override { return tcm.port().transport_dbg(payload); }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) override {
    return tcm.port().get_direct_mem_ptr(payload, dmi);
  }

  // As initiator: responses.
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override;
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  Services services;
  PeCpu cpu;
  TcmPort tcm;
};

Pe::Pe(const sc_core::sc_module_name& name, const PeConfig& config, PeCoord coord, const MachineMap& map,
       PageTable& pages, PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer,
       StackPool* stacks, RaceDetector* races)
    : sc_module(name),
      impl_(std::make_unique<Impl>(*this, config, coord, map, pages, pool, options, queue, observer, stacks, races)) {
  in.bind(*impl_);
  out.bind(*impl_);
}

Pe::~Pe() = default;

void Pe::explain(std::vector<Blocked>& blocked) const { impl_->cpu.explain(blocked); }

std::vector<QueueStatistics> Pe::ipcq_statistics() const { return impl_->cpu.ipcq().statistics(); }

PeStatistics Pe::statistics() const {
  PeStatistics statistics = impl_->services.statistics;
  statistics.tcm_bytes = impl_->services.tcm.timing().bytes();
  return statistics;
}

void Pe::observe_usage(UsageBook& book) {
  Services& services = impl_->services;
  services.usage_book = &book;
  PeUsages& usages = services.usages;
  for (Usage** usage : {&usages.cpu, &usages.dma_r, &usages.dma_w, &usages.gemm, &usages.math}) *usage = book.add();
  TcmTiming& tcm = services.tcm.timing();
  for (TcmTraffic* traffic : {&tcm.reads(), &tcm.writes(), &tcm.streamed()}) traffic->usage = book.add();
}
const PeUsages& Pe::usages() const { return impl_->services.usages; }
const TcmTraffic& Pe::tcm_traffic(TcmPart part) const {
  TcmTiming& tcm = impl_->services.tcm.timing();
  return part == TcmPart::read ? tcm.reads() : part == TcmPart::write ? tcm.writes() : tcm.streamed();
}

tlm::tlm_sync_enum Pe::Impl::nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                             sc_core::sc_time& delay) {
  const Packet* packet = Packet::find(payload);
  if (packet == nullptr || !is_one_way(packet->kind)) return tcm.port().nb_transport_fw(payload, phase, delay);
  sc_assert(phase == tlm::BEGIN_REQ);
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
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  return tlm::TLM_COMPLETED;
}

tlm::tlm_sync_enum Pe::Impl::nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                             sc_core::sc_time&) {
  sc_assert(phase == tlm::BEGIN_RESP);
  (void)phase;
  Packet& packet = Packet::of(payload);
  auto* const handler = static_cast<ResponseHandler*>(packet.user);
  if (packet.complete > services.now()) {
    services.queue.at(packet.complete, [this, &payload, &packet, handler] {
      if (CauseLog* log = services.queue.causes()) {  // the rest of a train, behind its first packet
        services.follow(packet.cause);
        log->step(Spent::noc, services.place(*log, Services::Part::dma_r), services.now());
      }
      handler->on_response(payload, packet);
      packet.complete = 0;
      payload.release();
    });
    handler->on_first_packet(payload);
    return tlm::TLM_COMPLETED;
  }
  handler->on_response(payload, packet);
  payload.release();
  return tlm::TLM_COMPLETED;
}

}  // namespace kernbench
