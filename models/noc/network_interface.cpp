#include "models/noc/network_interface.h"

#include "models/noc/queued_port.h"

namespace kernbench {

using tlm::tlm_generic_payload;
using tlm::tlm_phase;
using tlm::tlm_sync_enum;

struct NetworkInterface::Impl final : QueuedPort::Actions,
                                      PacketForwardIf,
                                      PacketBackwardIf,
                                      tlm::tlm_fw_transport_if<>,
                                      tlm::tlm_bw_transport_if<> {
  Impl(NetworkInterface& ni, const Config& config, const NetworkRoutes& routes, EventQueue& queue)
      : ni(ni),
        config(config),
        routes(routes),
        queue(queue),
        clock(config.noc.clock_hz),
        flits_of(config.noc.flit_bytes),
        injection(config.noc.vcs_per_set, *this) {}

  // Endpoint to router.

  tlm_sync_enum nb_transport_fw(tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time&) override {
    sc_assert(phase == tlm::BEGIN_REQ);  // BEGIN_RESP is answered with TLM_COMPLETED: no END_RESP follows
    Packet& packet = Packet::of(payload);
    packet.source = config.self;
    const bool answered = packet.kind == PacketKind::read || packet.kind == PacketKind::write;
    inject(packet);
    if (!answered) return tlm::TLM_COMPLETED;
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }

  void inject(Packet& packet) {
    sc_assert(packet.bytes <= kMaxPacketBytes);
    const RouteDecision route = routes.enter(packet.destination, config.router, false, packet.dateline);
    packet.exit_router = route.exit.router;
    packet.exit_port = route.exit.port;
    packet.vc_set = route.vc_set;
    packet.dateline = route.dateline;
    packet.vc = virtual_channel(packet, config.noc);
    const Ps now = queue.now();
    const Cycle cycle = clock.tick_at_or_after(now);
    const Ps edge = clock.at(cycle);
    packet.charge(Delay::mesh, edge - now);
    packet.head = edge;
    injection.offer(packet, packet.vc, cycle);
  }

  unsigned units(const Packet& packet) const override { return flits_of(packet); }

  QueuedPort::Release serve(Packet& packet, Cycle now) override {
    const unsigned flits = flits_of(packet);
    const Ps start = clock.at(now), end = clock.at(now + flits);
    const Cycle arrival = now + 1 + config.noc.link_delay;
    const Ps head = clock.at(arrival);
    packet.injected = start;
    packet.charge(Delay::contention, start - packet.head);
    packet.charge(Delay::mesh, head - start);
    count(injected, packet, end - start);
    ni.to_router.send(packet, head, clock.at(arrival + flits - 1));
    return {now + flits, now + flits};
  }

  void wake(Cycle at) override {
    queue.at(clock.at(at), [this, at] { injection.arbitrate(at); });
  }

  void credit(unsigned vc, unsigned flits, Ps when) override {
    if (when == 0) {
      injection.announce(vc, flits);
    } else {
      injection.credit(vc, flits, clock.tick_at_or_after(when), clock.tick_at_or_after(queue.now()));
    }
  }

  // Router to endpoint.

  void receive(Packet& packet, Ps, Ps tail) override {
    queue.at(tail, [this, &packet] { arrived(packet); });
  }

  void arrived(Packet& packet) {
    packet.charge(Delay::wire, packet.tail - packet.head);
    count(ejected, packet, clock.at(flits_of(packet)));
    switch (packet.kind) {
      case PacketKind::read:
      case PacketKind::write:
        if (pending != nullptr || first_request != nullptr) {
          enqueue(packet);
        } else {
          present(packet);
        }
        break;
      case PacketKind::read_data:
      case PacketKind::write_ack:
        respond(packet);
        break;
      default:
        sink(packet);
    }
  }

  void free_buffer(unsigned vc, unsigned flits) {
    const Cycle now = clock.tick_at_or_after(queue.now());
    ni.from_router.give_credit(vc, flits, clock.at(now + config.noc.credit_delay));
  }

  // The endpoint owns the payload afterwards and may have given it back already.
  void sink(Packet& packet) {
    sc_assert(ni.to_endpoint);
    const unsigned vc = packet.vc, flits = flits_of(packet);
    tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time zero;
    const tlm_sync_enum status = (*ni.to_endpoint)->nb_transport_fw(*packet.payload, phase, zero);
    sc_assert(status == tlm::TLM_COMPLETED);
    free_buffer(vc, flits);
  }

  void respond(Packet& packet) {
    sc_assert(ni.from_endpoint);
    const unsigned vc = packet.vc, flits = flits_of(packet);
    tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time zero;
    const tlm_sync_enum status = (*ni.from_endpoint)->nb_transport_bw(*packet.payload, phase, zero);
    sc_assert(status == tlm::TLM_COMPLETED || (status == tlm::TLM_UPDATED && phase == tlm::END_RESP));
    free_buffer(vc, flits);
  }

  void enqueue(Packet& packet) {
    packet.next = nullptr;
    (first_request == nullptr ? first_request : last_request->next) = &packet;
    last_request = &packet;
  }

  void present(Packet& packet) {
    sc_assert(ni.to_endpoint);
    packet.charge(Delay::contention, queue.now() - packet.tail);
    pending = packet.payload;
    pending_vc = packet.vc;
    pending_flits = flits_of(packet);
    tlm_generic_payload& payload = *packet.payload;
    tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time zero;
    const tlm_sync_enum status = (*ni.to_endpoint)->nb_transport_fw(payload, phase, zero);
    if (status == tlm::TLM_ACCEPTED) return;
    if (status == tlm::TLM_UPDATED && phase == tlm::END_REQ) {
      if (pending == &payload) taken();
      return;
    }
    taken();
    if (status == tlm::TLM_UPDATED) {
      sc_assert(phase == tlm::BEGIN_RESP);
      answer(payload);
      phase = tlm::END_RESP;
      (*ni.to_endpoint)->nb_transport_fw(payload, phase, zero);
    } else {
      answer(payload);
    }
  }

  // The endpoint took the pending request: the next one follows in an event of its own, not inside the endpoint's call.
  void taken() {
    pending = nullptr;
    free_buffer(pending_vc, pending_flits);
    if (first_request == nullptr) return;
    queue.at(queue.now(), [this] {
      if (pending != nullptr || first_request == nullptr) return;
      Packet& packet = *first_request;
      first_request = packet.next;
      packet.next = nullptr;
      present(packet);
    });
  }

  tlm_sync_enum nb_transport_bw(tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time&) override {
    if (phase == tlm::END_REQ) {
      sc_assert(pending == &payload);
      taken();
      return tlm::TLM_ACCEPTED;
    }
    sc_assert(phase == tlm::BEGIN_RESP);
    if (pending == &payload) taken();  // BEGIN_RESP implies END_REQ
    answer(payload);
    return tlm::TLM_COMPLETED;
  }

  void answer(tlm_generic_payload& payload) {
    Packet& packet = Packet::of(payload);
    if (packet.kind == PacketKind::read) {
      make_response(packet, PacketKind::read_data, payload.is_response_ok() ? payload.get_data_length() : 0);
    } else {
      make_response(packet, PacketKind::write_ack, 0);
    }
    inject(packet);
  }

  static void count(PortStats& stats, const Packet& packet, Ps busy) {
    ++stats.packets;
    stats.bytes += packet.bytes;
    stats.busy += busy;
  }

  // Not spoken here: the network takes time, and memories behind it are reached one by one.
  void b_transport(tlm_generic_payload&, sc_core::sc_time&) override {
    SC_REPORT_FATAL("kernbench/noc", "a network interface has no b_transport; use nb_transport_fw");
  }
  bool get_direct_mem_ptr(tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  unsigned transport_dbg(tlm_generic_payload&) override { return 0; }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  NetworkInterface& ni;
  const Config config;
  const NetworkRoutes& routes;
  EventQueue& queue;
  const Clock clock;
  const FlitCounter flits_of;
  QueuedPort injection;
  tlm_generic_payload* pending = nullptr;  // BEGIN_REQ made, END_REQ not yet seen
  unsigned pending_vc = 0, pending_flits = 0;
  Packet* first_request = nullptr;  // reads and writes that arrived behind it
  Packet* last_request = nullptr;
  PortStats injected, ejected;
};

NetworkInterface::NetworkInterface(const sc_core::sc_module_name& name, const Config& config,
                                   const NetworkRoutes& routes, EventQueue& queue)
    : sc_module(name) {
  check(config.noc);
  impl_ = std::make_unique<Impl>(*this, config, routes, queue);
  to_router.bind(static_cast<PacketBackwardIf&>(*impl_));
  from_router.bind(static_cast<PacketForwardIf&>(*impl_));
  if (config.has_initiator) {
    from_endpoint = std::make_unique<tlm::tlm_target_socket<>>("from_endpoint");
    from_endpoint->bind(static_cast<tlm::tlm_fw_transport_if<>&>(*impl_));
  }
  if (config.has_target) {
    to_endpoint = std::make_unique<tlm::tlm_initiator_socket<>>("to_endpoint");
    to_endpoint->bind(static_cast<tlm::tlm_bw_transport_if<>&>(*impl_));
  }
}

NetworkInterface::~NetworkInterface() = default;

void NetworkInterface::end_of_elaboration() {
  const NocConfig& noc = impl_->config.noc;
  for (unsigned vc = 0; vc < noc.vcs(); ++vc) from_router.give_credit(vc, ejection_depth(noc), 0);
}

const PortStats& NetworkInterface::injected() const { return impl_->injected; }
const PortStats& NetworkInterface::ejected() const { return impl_->ejected; }

}  // namespace kernbench
