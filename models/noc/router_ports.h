#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/noc/router_network.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet_socket.h"
#include "tlm/observe/observer.h"

// Behind the sockets of a Router: private to models/noc.
namespace kernbench {

/// What arrives at an input is handed to the network's engine.
struct alignas(64) RouterInput final : PacketForwardIf {
  void head(Packet& packet, Ps head) override {
    if (track != kNoTrack) publish(flits_of(packet));
    network->engine().arrive(router, port, packet, network->cycle(head), network->now());
  }
  void tail(Packet&, Ps, Ps) override {}
  void offer(Packet& packet, Ps first, Ps last) override {
    if (track != kNoTrack) publish(flits_of(packet));
    const Cycle from = network->cycle(first);
    const Cycle to = last == first ? from : network->cycle(last);
    const Cycle now = first == network->queue().now() ? from : network->now();
    network->engine().offer(router, port, packet, from, to, now);
  }
  std::int64_t flits_of(const Packet& packet) const { return packet.flits(network->config().flit_bytes); }
  void publish(std::int64_t change) {
    level += change;
    observer->change(track, network->queue().now(), static_cast<std::uint64_t>(level));
  }

  RouterNetwork* network = nullptr;
  Observer* observer = nullptr;
  std::uint32_t router = 0, port = 0;
  TrackId track = kNoTrack;
  bool injects = true;     ///< a network interface or link port sends here
  std::int64_t level = 0;  ///< flits of packets that are here or on the way
};

/// What has left through an output, and the credits for it.
struct alignas(64) RouterOutput final : PacketBackwardIf {
  void credit(unsigned vc, unsigned units, Ps when) override;
  void give(std::uint16_t vc, unsigned flits, Cycle when);

  RouterNetwork* network = nullptr;
  PacketInitiatorSocket* socket = nullptr;
  PortStats stats;
  Ps published = 0;  ///< end of the last interval
  TrackId track = kNoTrack;
  std::uint16_t router = 0;
  std::uint8_t port = 0;
  bool inside = false;  ///< leads to a router of the same network
};

/// Moves packets over a router's sockets when the engine says so (MeshEngine::Actions), and keeps their accounts.
class RouterPorts {
 public:
  RouterPorts(RouterNetwork& network, unsigned ports, Observer* observer)
      : clock_(network.clock()),
        flits_of_(network.config().flit_bytes),
        flight_(Cycle{network.config().sw_alloc_delay} + network.config().switch_delay + network.config().link_delay),
        hop_(flight_ + network.config().routing_delay + network.config().vc_alloc_delay),
        injection_(1 + Cycle{network.config().link_delay}),
        observer_(observer),
        network_(network),
        index_(network.add(*this, ports)),
        inputs_(std::make_unique<RouterInput[]>(ports)),
        outputs_(std::make_unique<RouterOutput[]>(ports)) {
    for (unsigned port = 0; port < ports; ++port) {
      inputs_[port].network = outputs_[port].network = &network;
      inputs_[port].router = index_;
      inputs_[port].port = port;
      outputs_[port].router = static_cast<std::uint16_t>(index_);
      outputs_[port].port = static_cast<std::uint8_t>(port);
    }
  }

  RouterNetwork& network() { return network_; }
  unsigned index() const { return index_; }
  RouterInput& input(unsigned port) { return inputs_[port]; }
  RouterOutput& output(unsigned port) { return outputs_[port]; }
  const PortStats& stats(unsigned port) const { return outputs_[port].stats; }

  void head(unsigned input, unsigned output, Packet& packet, Cycle head) {
    const Cycle unhindered = hop_ + (inputs_[input].injects ? injection_ : 0);
    const Ps time = network_.time(head), least = time - clock_.at(head - unhindered);
    packet.charge(Delay::mesh, least);
    packet.charge(Delay::contention, time - packet.head - least);
    outputs_[output].socket->head(packet, time);
  }
  void tail(unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
    RouterOutput& to = outputs_[output];
    const unsigned flits = flits_of_(packet);
    to.stats.packets += packets_of(packet.bytes);
    to.stats.bytes += packet.bytes;
    to.stats.busy += clock_.at(flits);
    if (observer_ != nullptr) publish(inputs_[input], to, packet, head, tail);
    const Ps head_time = clock_.at(head), tail_time = clock_.at(tail);
    if (to.inside) {
      to.socket->passed(packet, head_time, tail_time);
    } else {
      to.socket->tail(packet, head_time, tail_time);
    }
  }
  void injected(unsigned input, Packet& packet, Cycle head, Cycle tail);

  std::vector<PacketTargetSocket*> sockets;  ///< of the inputs

 private:
  void publish(RouterInput& from, RouterOutput& to, const Packet& packet, Cycle head, Cycle tail);

  const Clock clock_;
  const FlitCounter flits_of_;
  const Cycle flight_;     // switch allocation to arrival at the next hop
  const Cycle hop_;        // of a head that nothing hinders
  const Cycle injection_;  // source to buffer
  Observer* const observer_;
  RouterNetwork& network_;
  const unsigned index_;
  std::unique_ptr<RouterInput[]> inputs_;  // by port
  std::unique_ptr<RouterOutput[]> outputs_;
};

}  // namespace kernbench
