#include "models/noc/network_interface.h"

#include <algorithm>

#include "tlm/machine/names.h"
#include "tlm/sim/annotation.h"

namespace kernbench {

using tlm::tlm_generic_payload;
using tlm::tlm_phase;
using tlm::tlm_sync_enum;

namespace {
/// A train leaves at no less than this part of the port's rate: while it does, it keeps others off its virtual channel.
/// assumed: a slice of HBM, which has 0.4 of the rate of a port of the default machine, need not wait.
constexpr std::uint64_t kSlowest = 4;
}  // namespace

struct NetworkInterface::Impl final : PacketForwardIf,
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
        depth(ejection_depth(config.noc, config.longest)) {}

  // Endpoint to router.

  tlm_sync_enum nb_transport_fw(tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time& delay) override {
    if (phase != tlm::BEGIN_REQ) return tlm::TLM_COMPLETED;
    Packet* packet = Packet::find(payload);
    if (packet == nullptr) {  // nothing says where it goes
      payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
      return tlm::TLM_COMPLETED;
    }
    packet->source = config.self;
    if (const CauseLog* log = queue.causes()) packet->cause = log->current;
    const bool one_way = is_one_way(packet->kind);
    if (one_way) {
      payload.acquire();  // the network's own, until it has been delivered
      payload.set_response_status(tlm::TLM_OK_RESPONSE);
    }
    at(delay, [this, packet] {
      crossed(*ni.from_endpoint, *packet->payload, tlm::BEGIN_REQ);
      inject(*packet);
    });
    if (one_way) return tlm::TLM_COMPLETED;
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }

  /// When a call takes place: mostly now.
  template <class F>
  void at(const sc_core::sc_time& delay, const F& f) {
    const Ps time = instant(delay);
    if (time <= queue.now()) return f();
    queue.at(time, f);
  }

  template <class Socket>
  void crossed(const Socket& socket, const tlm_generic_payload& payload, const tlm_phase& phase) {
    if (probe != nullptr) probe->transported(socket.name(), payload, phase, queue.now());
  }

  void inject(Packet& packet) {
    sc_assert(packet.bytes <= config.longest);
    if (packet.bytes == 0) packet.headers = static_cast<std::uint16_t>(packets_of(packet.payload->get_data_length()));
    const RouteDecision route = routes.enter(packet.destination, config.router, false, packet.dateline);
    packet.exit_router = route.exit.router;
    packet.exit_port = route.exit.port;
    packet.vc_set = route.vc_set;
    packet.dateline = route.dateline;
    const Ps now = queue.now();
    const Ps edge = clock.edge(now);
    const unsigned flits = flits_of(packet);
    packet.charge(Delay::mesh, edge - now);
    packet.head = edge;
    Ps last = flits == 1 ? edge : clock.after(edge, flits - 1);
    if (packet.complete > last) last = clock.edge(packet.complete);
    packet.complete = 0;
    router->offer(packet, edge, last);
  }

  void injected(Packet&, Ps, Ps) override {}

  void credit(unsigned, unsigned, Ps) override {}  // the source is the router's

  // Router to endpoint.

  void head(Packet&, Ps) override {}
  void pass(Packet& packet, Ps head, Ps tail) override { Impl::tail(packet, head, tail); }
  void tail(Packet& packet, Ps head, Ps tail) override {
    Ps at = tail;
    if (packet.kind == PacketKind::read_data && packet.bytes > kMaxPacketBytes) {
      // Its flits come evenly spread; the endpoint is told when those of the first packet are here.
      at = std::max(queue.now(), head + (tail - head) * flits_of(kMaxPacketBytes) / flits_of(packet));
      if (at < tail) packet.complete = tail;
    }
    queue.at(at, [this, &packet] { arrived(packet); });
  }

  void arrived(Packet& packet) {
    packet.charge(Delay::wire, packet.tail - packet.head);
    switch (packet.kind) {
      case PacketKind::read:
      case PacketKind::write:
        if (CauseLog* log = queue.causes()) travelled(*log, packet);
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

  void free_buffer(unsigned vc, unsigned flits, Ps when) {
    const Cycle cycle = clock.tick_at_or_after(when);
    ejection->credit(vc, std::min(flits, depth), clock.at(cycle + config.noc.credit_delay));
  }

  /// The packet has come through the network until now; nothing has kept it here.
  void travelled(CauseLog& log, Packet& packet) {
    const Ps contention = packet.spent[static_cast<std::size_t>(Delay::contention)];
    packet.cause = log.current =
        log.travelled(packet.cause, contention - std::min(contention, packet.contended),
                      log.place(network_place, [this] { return names::parent(ni.name()); }), queue.now());
    packet.contended = contention;
    packet.held = false;
  }
  std::uint32_t endpoint(CauseLog& log) {
    return log.place(endpoint_place, [this] { return config.map->name(config.self); });
  }
  /// The endpoint has had the request until now.
  void served(CauseLog& log, Packet& packet) {
    const std::uint32_t place = endpoint(log);
    const Ps waited = packet.spent[static_cast<std::size_t>(Delay::contention)] - packet.contended;
    packet.contended += waited;
    const Ps arrived = log.end_of(packet.cause), now = queue.now();
    log.current = log.step(Spent::memory_wait, place, std::min(arrived + waited, now), packet.cause);
    log.step(Spent::memory, place, now);
    packet.cause = log.current;
  }

  void sink(Packet& packet) {
    sc_assert(target != nullptr);
    if (CauseLog* log = queue.causes()) travelled(*log, packet);
    tlm_generic_payload& payload = *packet.payload;
    tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    crossed(*ni.to_endpoint, payload, phase);
    payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    const tlm_sync_enum status = target->nb_transport_fw(payload, phase, delay);
    sc_assert(status == tlm::TLM_COMPLETED);
    free_buffer(packet.vc, flits_of(packet), queue.now());
    payload.release();
  }

  void respond(Packet& packet) {
    sc_assert(initiator != nullptr);
    if (CauseLog* log = queue.causes()) travelled(*log, packet);
    const unsigned vc = packet.vc, flits = flits_of(packet);
    const Ps gone = std::max(queue.now(), packet.complete);
    tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = annotation(queue.now());
    crossed(*ni.from_endpoint, *packet.payload, phase);
    const tlm_sync_enum status = initiator->nb_transport_bw(*packet.payload, phase, delay);
    sc_assert(status == tlm::TLM_COMPLETED || (status == tlm::TLM_UPDATED && phase == tlm::END_RESP));
    free_buffer(vc, flits, gone);
  }

  void enqueue(Packet& packet) {
    packet.next = nullptr;
    (first_request == nullptr ? first_request : last_request->next) = &packet;
    last_request = &packet;
  }

  void present(Packet& packet) {
    sc_assert(target != nullptr);
    packet.charge(Delay::contention, queue.now() - packet.tail);
    if (CauseLog* log = queue.causes(); log != nullptr && config.map != nullptr)
      packet.cause = log->current = log->step(Spent::memory_wait, endpoint(*log), queue.now(), packet.cause);
    packet.contended = packet.spent[static_cast<std::size_t>(Delay::contention)];
    presented = queue.now();
    pending = packet.payload;
    pending_vc = packet.vc;
    pending_flits = flits_of(packet);
    if (const std::uint32_t bytes = packet.payload->get_data_length(); bytes > kMaxPacketBytes)
      packet.lead = clock.at(kSlowest * (flits_of(bytes) - flits_of(kMaxPacketBytes)));
    tlm_generic_payload& payload = *packet.payload;
    tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    crossed(*ni.to_endpoint, payload, phase);
    const tlm_sync_enum status = target->nb_transport_fw(payload, phase, delay);
    if (status == tlm::TLM_ACCEPTED) return;
    if (status == tlm::TLM_UPDATED && phase == tlm::END_REQ) {
      at(delay, [this, &payload] { take(payload); });
      return;
    }
    sc_assert(status == tlm::TLM_COMPLETED || phase == tlm::BEGIN_RESP);
    if (status == tlm::TLM_UPDATED) {
      tlm_phase end = tlm::END_RESP;
      target->nb_transport_fw(payload, end, delay);
    }
    at(delay, [this, &payload] {
      take(payload);
      answer(payload);
    });
  }
  void take(const tlm_generic_payload& payload) {
    if (pending == &payload) taken();  // BEGIN_RESP implies END_REQ
  }

  // The endpoint took the pending request: the next one follows in an event of its own, not inside the endpoint's call.
  void taken() {
    // The next one's wait is for what the endpoint had before.
    if (CauseLog* log = queue.causes(); log != nullptr && config.map != nullptr && presented < queue.now())
      log->room = log->step(Spent::memory_wait, endpoint(*log), queue.now(), Packet::of(*pending).cause);
    pending = nullptr;
    free_buffer(pending_vc, pending_flits, queue.now());
    if (first_request == nullptr) return;
    queue.at(queue.now(), [this] {
      if (pending != nullptr || first_request == nullptr) return;
      Packet& packet = *first_request;
      first_request = packet.next;
      packet.next = nullptr;
      present(packet);
    });
  }

  tlm_sync_enum nb_transport_bw(tlm_generic_payload& payload, tlm_phase& phase, sc_core::sc_time& delay) override {
    if (phase == tlm::END_REQ) {
      sc_assert(pending == &payload);
      at(delay, [this, &payload] { take(payload); });
      return tlm::TLM_ACCEPTED;
    }
    sc_assert(phase == tlm::BEGIN_RESP);
    at(delay, [this, &payload] {
      take(payload);
      answer(payload);
    });
    return tlm::TLM_COMPLETED;
  }

  void answer(tlm_generic_payload& payload) {
    Packet& packet = Packet::of(payload);
    if (CauseLog* log = queue.causes(); log != nullptr && config.map != nullptr) served(*log, packet);
    crossed(*ni.to_endpoint, payload, tlm::BEGIN_RESP);
    if (packet.kind == PacketKind::read) {
      make_response(packet, PacketKind::read_data, payload.is_response_ok() ? payload.get_data_length() : 0);
    } else {
      make_response(packet, PacketKind::write_ack, 0);
    }
    inject(packet);
  }

  void b_transport(tlm_generic_payload& payload, sc_core::sc_time&) override {
    payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
  }
  bool get_direct_mem_ptr(tlm_generic_payload&, tlm::tlm_dmi& dmi) override {
    dmi.init();  // nowhere: the network's time would be lost
    return false;
  }
  unsigned transport_dbg(tlm_generic_payload& payload) override {
    const NodeId memory = config.map == nullptr ? kNoNode : config.map->resolve(payload.get_address());
    if (memory == kNoNode) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return 0;
    }
    const RouteDecision route = routes.enter(memory, config.router, false, 0);
    BackDoor access{payload, memory, route.exit, route.dateline};
    return router->debug(access);
  }
  unsigned debug(BackDoor& access) override { return target == nullptr ? 0 : target->transport_dbg(access.payload); }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  /// Looks up once what the sockets are bound to.
  void bound() {
    router = ni.to_router.operator->();
    ejection = ni.from_router.operator->();
    if (ni.to_endpoint) target = ni.to_endpoint->operator->();
    if (ni.from_endpoint) initiator = ni.from_endpoint->operator->();
  }

  NetworkInterface& ni;
  PacketForwardIf* router = nullptr;
  PacketBackwardIf* ejection = nullptr;  // where its buffers' credits go
  tlm::tlm_fw_transport_if<>* target = nullptr;
  tlm::tlm_bw_transport_if<>* initiator = nullptr;
  const Config config;
  const NetworkRoutes& routes;
  EventQueue& queue;
  const Clock clock;
  const FlitCounter flits_of;
  const unsigned depth;                    // of a buffer
  tlm_generic_payload* pending = nullptr;  // BEGIN_REQ made, END_REQ not yet seen
  unsigned pending_vc = 0, pending_flits = 0;
  Ps presented = 0;                 // BEGIN_REQ of the pending one
  Packet* first_request = nullptr;  // reads and writes that arrived behind it
  Packet* last_request = nullptr;
  TransactionProbe* probe = nullptr;
  CausePlace network_place, endpoint_place;
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
  impl_->bound();
  const NocConfig& noc = impl_->config.noc;
  for (unsigned vc = 0; vc < noc.vcs(); ++vc) from_router.give_credit(vc, impl_->depth, 0);
}

void NetworkInterface::set_probe(TransactionProbe* probe) { impl_->probe = probe; }

}  // namespace kernbench
