#pragma once
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "models/noc/network_interface.h"
#include "models/noc/router.h"
#include "tlm/ext/packet_tap.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/sim/annotation.h"
#include "tlm/sim/dispatcher.h"
#include "tlm/sim/random.h"

namespace kernbench::test {

/// Routes of one rectangular mesh, X first. Node n of the mesh is `first_node + n` at router n, port 4; everything else
/// is reached through the router `gate` and its port 5.
class XyRoutes final : public NetworkRoutes {
 public:
  XyRoutes(unsigned rows, unsigned cols, std::uint32_t first_node, std::uint16_t gate = 0)
      : rows_(rows), cols_(cols), first_node_(first_node), gate_(gate) {}

  RouteDecision enter(NodeId destination, std::uint16_t, bool from_io, std::uint8_t dateline) const override {
    const std::uint32_t node = index(destination) - first_node_;
    const bool here = node < rows_ * cols_;
    const Exit exit = here ? Exit{static_cast<std::uint16_t>(node), kFirstLocalPort} : Exit{gate_, kFirstLocalPort + 1};
    return {exit, static_cast<std::uint8_t>(from_io ? 1 : here ? set_here : 0), dateline};
  }
  std::uint8_t next_port(std::uint16_t at, Exit exit) const override {
    const unsigned x = at % cols_, y = at / cols_, to_x = exit.router % cols_, to_y = exit.router / cols_;
    if (x != to_x) return to_x > x ? kEastPort : kWestPort;
    if (y != to_y) return to_y > y ? kSouthPort : kNorthPort;
    return exit.port;
  }

  std::uint8_t set_here = 1;  ///< VC set of what stays in this mesh

 private:
  unsigned rows_, cols_;
  std::uint32_t first_node_;
  std::uint16_t gate_;
};

/// An endpoint that sends what a test tells it to, logs what it gets and answers reads and writes after `service`.
class Endpoint : public sc_core::sc_module, tlm::tlm_fw_transport_if<>, tlm::tlm_bw_transport_if<> {
 public:
  struct Got {
    std::uint32_t source, destination;
    MessageClass message_class;
    std::uint32_t tag;
    Ps time;  ///< delivered
    Ps sent;  ///< the endpoint's call
    std::uint32_t bytes;
    std::array<Ps, kDelays> spent;
    Ps latency() const { return time - sent; }
  };

  Endpoint(const sc_core::sc_module_name& name, NodeId self, EventQueue& queue, PayloadPool& pool)
      : sc_module(name), self(self), queue(queue), pool(pool) {
    to_ni.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
    from_ni.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  }

  tlm::tlm_initiator_socket<> to_ni{"to_ni"};
  tlm::tlm_target_socket<> from_ni{"from_ni"};

  /// One-way packet of class ipcq_data, command or credit.
  void send(NodeId destination, MessageClass message_class, std::uint32_t bytes, std::uint32_t tag) {
    const PacketKind kind = message_class == MessageClass::command  ? PacketKind::command
                            : message_class == MessageClass::credit ? PacketKind::ipcq_credit
                                                                    : PacketKind::ipcq_data;
    inject(destination, message_class, kind, bytes, bytes, tag);
  }
  void read(NodeId destination, std::uint32_t bytes, std::uint32_t tag) {
    inject(destination, MessageClass::request, PacketKind::read, 0, bytes, tag);
  }
  void write(NodeId destination, std::uint32_t bytes, std::uint32_t tag) {
    inject(destination, MessageClass::request, PacketKind::write, bytes, bytes, tag);
  }

  /// Takes the request that waits for END_REQ; the next one may come.
  void take() {
    sc_assert(held_ != nullptr);
    tlm::tlm_generic_payload& payload = *std::exchange(held_, nullptr);
    tlm::tlm_phase phase = tlm::END_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    from_ni->nb_transport_bw(payload, phase, delay);
    answer_later(payload);
  }
  bool holds_request() const { return held_ != nullptr; }

  const NodeId self;
  EventQueue& queue;
  PayloadPool& pool;
  bool stalled = false;  ///< requests are answered TLM_ACCEPTED until take()
  Ps service = 0;        ///< END_REQ to BEGIN_RESP
  std::vector<Got> got;  ///< one-way packets, requests and responses, in order of delivery
  bool keeps_log = true;
  Ps counted_from = 0;                      ///< packets sent from then on count in the two sums
  std::uint64_t received = 0, arrived = 0;  ///< arrived: whenever they were sent
  Ps latency_sum = 0;
  std::function<void(const Got&)> on_response;

 private:
  void inject(NodeId destination, MessageClass message_class, PacketKind kind, std::uint32_t bytes,
              std::uint32_t length, std::uint32_t tag) {
    tlm::tlm_generic_payload& payload = pool.acquire();
    payload.set_command(kind == PacketKind::read ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
    payload.set_data_length(length);
    payload.set_address(queue.now());  // when it was sent
    Packet& packet = Packet::of(payload);
    packet.destination = destination;
    packet.message_class = message_class;
    packet.kind = kind;
    packet.bytes = bytes;
    packet.tag = tag;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    const tlm::tlm_sync_enum status = to_ni->nb_transport_fw(payload, phase, delay);
    const bool answered = kind == PacketKind::read || kind == PacketKind::write;
    sc_assert(answered ? status == tlm::TLM_UPDATED && phase == tlm::END_REQ : status == tlm::TLM_COMPLETED);
    if (!answered) payload.release();
  }
  void log(tlm::tlm_generic_payload& payload) {
    const Packet& packet = Packet::of(payload);
    const Ps sent = payload.get_address();
    ++arrived;
    if (sent >= counted_from) {
      ++received;
      latency_sum += queue.now() - sent;
    }
    if (!keeps_log) return;
    got.push_back({index(packet.source), index(packet.destination), packet.message_class, packet.tag, queue.now(), sent,
                   packet.bytes, packet.spent});
  }
  void answer_later(tlm::tlm_generic_payload& payload) {
    queue.at(queue.now() + service, [this, &payload] {
      Packet::of(payload).charge(Delay::memory, service);
      payload.set_response_status(tlm::TLM_OK_RESPONSE);
      tlm::tlm_phase phase = tlm::BEGIN_RESP;
      sc_core::sc_time delay = annotation(queue.now());
      const tlm::tlm_sync_enum status = from_ni->nb_transport_bw(payload, phase, delay);
      sc_assert(status == tlm::TLM_COMPLETED);
      payload.release();
    });
  }
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    sc_assert(phase == tlm::BEGIN_REQ);
    sc_assert(Packet::of(payload).destination == self);
    log(payload);
    const PacketKind kind = Packet::of(payload).kind;
    if (kind != PacketKind::read && kind != PacketKind::write) {
      payload.set_response_status(tlm::TLM_OK_RESPONSE);
      return tlm::TLM_COMPLETED;
    }
    sc_assert(held_ == nullptr);  // the base protocol's exclusion rule
    payload.acquire();
    if (stalled) {
      held_ = &payload;
      return tlm::TLM_ACCEPTED;
    }
    answer_later(payload);
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    sc_assert(phase == tlm::BEGIN_RESP && Packet::of(payload).destination == self);
    log(payload);
    const Got response = got.back();
    payload.release();
    if (on_response) on_response(response);
    return tlm::TLM_COMPLETED;
  }
  void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) override { sc_assert(false); }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  tlm::tlm_generic_payload* held_ = nullptr;
};

/// A mesh of routers with an endpoint at each; `gate`: that router also has port 5, for a link port. `binder`: how its
/// packet sockets are bound.
class TestMesh : public sc_core::sc_module {
 public:
  static constexpr int kNoGate = -1;
  TestMesh(const sc_core::sc_module_name& name, const NocConfig& config, std::uint32_t first_node, EventQueue& queue,
           PayloadPool& pool, int gate = kNoGate, Observer* observer = nullptr, Grade grade = Grade::accurate,
           PacketBinder binder = {})
      : sc_module(name),
        config(config),
        routes(config.rows, config.cols, first_node, static_cast<std::uint16_t>(gate == kNoGate ? 0 : gate)),
        network(config, routes, queue, grade),
        binder_(std::move(binder)) {
    const int rows = config.rows, cols = config.cols;
    for (int r = 0; r < rows * cols; ++r) {
      const int x = r % cols, y = r / cols;
      const std::vector<bool> connected = {y > 0, y + 1 < rows, x + 1 < cols, x > 0, true, r == gate};
      const auto id = static_cast<std::uint16_t>(r);
      const std::string number = std::to_string(r);
      routers.push_back(std::make_unique<Router>(("r" + number).c_str(), network, connected, observer));
      const NodeId self{first_node + id};
      const NetworkInterface::Config ni{config, self, id, true, true};
      interfaces.push_back(std::make_unique<NetworkInterface>(("ni" + number).c_str(), ni, routes, queue));
      endpoints.push_back(std::make_unique<Endpoint>(("node" + number).c_str(), self, queue, pool));
      endpoints[id]->to_ni.bind(*interfaces[id]->from_endpoint);
      interfaces[id]->to_endpoint->bind(endpoints[id]->from_ni);
      bind(interfaces[id]->to_router, *routers[id]->in[kFirstLocalPort]);
      bind(*routers[id]->out[kFirstLocalPort], interfaces[id]->from_router);
    }
    for (int r = 0; r < rows * cols; ++r) {
      if (r % cols + 1 < cols) join(r, kEastPort, r + 1, kWestPort);
      if (r + cols < rows * cols) join(r, kSouthPort, r + cols, kNorthPort);
    }
  }

  Endpoint& node(unsigned n) { return *endpoints[n]; }
  unsigned links(unsigned from, unsigned to) const {
    const auto distance = [](unsigned a, unsigned b) { return a > b ? a - b : b - a; };
    return distance(from % config.cols, to % config.cols) + distance(from / config.cols, to / config.cols);
  }

  const NocConfig config;
  XyRoutes routes;
  RouterNetwork network;
  std::vector<std::unique_ptr<Router>> routers;
  std::vector<std::unique_ptr<NetworkInterface>> interfaces;
  std::vector<std::unique_ptr<Endpoint>> endpoints;

 private:
  void join(int a, unsigned a_port, int b, unsigned b_port) {
    Router& from = *routers[static_cast<std::size_t>(a)];
    Router& to = *routers[static_cast<std::size_t>(b)];
    bind(*from.out[a_port], *to.in[b_port]);
    bind(*to.out[b_port], *from.in[a_port]);
  }
  void bind(PacketInitiatorSocket& from, PacketTargetSocket& to) { binder_ ? binder_(from, to) : from.bind(to); }

  const PacketBinder binder_;
};

/// 1 GHz: a cycle is 1,000 ps.
inline NocConfig mesh_config(std::uint16_t rows, std::uint16_t cols) {
  NocConfig config;
  config.rows = rows;
  config.cols = cols;
  config.flit_bytes = 32;  // a packet of 256 B is 8 flits
  config.clock_hz = 1'000'000'000;
  return config;
}
inline constexpr Ps kCycle = 1000;

/// Simple deterministic generator (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return next_splitmix64(state_); }
  unsigned below(unsigned n) { return static_cast<unsigned>(next() % n); }

 private:
  std::uint64_t state_;
};

}  // namespace kernbench::test
