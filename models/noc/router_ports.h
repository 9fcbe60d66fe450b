#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/noc/router_network.h"
#include "models/noc/virtual_channel.h"
#include "tlm/ext/packet_socket.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/usage.h"

// Behind the sockets of a Router: private to models/noc.
namespace kernbench {

/// What arrives at an input is handed to the network's engine.
struct alignas(64) RouterInput final : PacketForwardIf {
  void head(Packet& packet, Ps head) override {
    bytes += packet.bytes;
    if (watched) arrived(packet);
    engine->arrive(router, port, packet, network->cycle(head));
  }
  void tail(Packet&, Ps, Ps) override {}
  void pass(Packet& packet, Ps head, Ps) override { RouterInput::head(packet, head); }
  void offer(Packet& packet, Ps first, Ps last) override {
    bytes += packet.bytes;
    if (watched) arrived(packet);
    const Cycle from = network->cycle(first);
    const Cycle to = last == first ? from : network->cycle(last);
    const Cycle now = first == network->queue().now() ? from : network->now();
    // The way from the source to the buffer is part of every first hop. Where the packet leaves the network, the time
    // of that is added: what is charged to `mesh` in all is the way, without waiting.
    packet.charge(Delay::mesh, -packet.head);
    packet.head += network->injection(from);
    engine->offer(router, port, packet, from, to, now);
  }
  unsigned debug(BackDoor& access) override { return network->debug(router, access); }
  std::int64_t flits_of(const Packet& packet) const { return packet.flits(network->config().flit_bytes); }
  void arrived(const Packet& packet) {
    ++here;
    if (marks != nullptr) marks->level(here, network->queue().now());
    if (track != kNoTrack) publish(static_cast<std::int32_t>(flits_of(packet)));
  }
  void publish(std::int32_t change) {
    level += change;
    observer->change(track, network->queue().now(), static_cast<std::uint64_t>(level));
  }

  RouterNetwork* network = nullptr;
  MeshEngine* engine = nullptr;      ///< of the network
  PacketBackwardIf* peer = nullptr;  ///< what sends here
  Observer* observer = nullptr;
  std::uint16_t router = 0;
  std::uint8_t port = 0;
  bool watched = false;  ///< somebody wants the level or the marks
  TrackId track = kNoTrack;
  std::int32_t level = 0;   ///< flits of packets that are here or on the way
  std::uint16_t here = 0;   ///< such packets, if somebody wants statistics
  std::uint64_t bytes = 0;  ///< of payload that have come
  Usage* marks = nullptr;   ///< of the output that leads here; null: nobody wants them
};

/// What has left through an output, and the credits for it. What a hop needs of it is in its first cache line.
struct alignas(64) RouterOutput final : PacketBackwardIf {
  void credit(unsigned vc, unsigned units, Ps when) override;
  void give(std::uint16_t vc, unsigned flits, Cycle when);
  /// For statistics: a head has left at `time`, after it has `waited`, and its packet's flits take `busy`. REQUIRES:
  /// somebody wants them.
  void reached(const Packet& packet, Ps time, Ps waited, Ps busy) const;

  PortStats stats;
  PacketForwardIf* peer = nullptr;  ///< what its socket is bound to
  std::uint16_t router = 0;
  std::uint8_t port = 0;
  bool observed = false;
  bool leaves = true;            ///< leads out of the network
  bool detail = false;           ///< somebody wants statistics of its virtual channels over time
  Usage* usage = nullptr;        ///< null: nobody wants statistics
  std::unique_ptr<VcUse[]> vcs;  ///< by virtual channel, if somebody does
  RouterNetwork* network = nullptr;
  std::unique_ptr<Usage*[]> over_time;  ///< by virtual channel, with detail
  Cause room;                           ///< of the last credit (CauseLog::room)
};

/// A router's side of its sockets.
class RouterPorts {
 public:
  RouterPorts(RouterNetwork& network, unsigned ports, Observer* observer);

  RouterNetwork& network() { return network_; }
  unsigned index() const { return index_; }
  RouterInput& input(unsigned port) { return inputs_[port]; }
  RouterOutput& output(unsigned port) { return outputs_[port]; }
  const PortStats& stats(unsigned port) const { return outputs_[port].stats; }
  /// Declares the tracks of a port.
  void observe(unsigned port, const std::string& input, const std::string& output);
  void publish(unsigned input, const RouterOutput& to, const Packet& packet, Cycle head, Cycle tail);

 private:
  struct Track {
    TrackId id = kNoTrack;
    Ps published = 0;  // end of the last interval
  };

  RouterNetwork& network_;
  Observer* const observer_;
  const Cycle flight_;                       // switch allocation to arrival at the next hop
  std::unique_ptr<RouterInput[]> inputs_;    // by port
  std::unique_ptr<RouterOutput[]> outputs_;  // by port
  std::vector<Track> tracks_;                // of outputs
  const unsigned index_;
};

}  // namespace kernbench
