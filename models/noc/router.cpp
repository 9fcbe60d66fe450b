#include "models/noc/router.h"

#include <algorithm>
#include <string>

#include "models/noc/router_ports.h"

namespace kernbench {

namespace {

std::string port_name(unsigned port) {
  static constexpr const char* kNames[] = {"n", "s", "e", "w"};
  return port < kFirstLocalPort ? kNames[port] : "p" + std::to_string(port);
}

// Credits farther away than this are handed to the engine when they are due.
constexpr Cycle kCreditsAhead = 32;
constexpr unsigned kCreditsAtOnce = 16;

}  // namespace

void RouterOutput::credit(unsigned vc, unsigned units, Ps when) {
  if (when == 0) {
    network->engine().announce(router, port, units);
    return;
  }
  give(static_cast<std::uint16_t>(vc), units, network->cycle(when));
}

void RouterOutput::give(std::uint16_t vc, unsigned flits, Cycle when) {
  const Cycle now = network->now();
  if (network->grade() == Grade::fast) return network->engine().credit(router, port, vc, flits, when, now);
  for (; flits != 0; when += kCreditsAtOnce) {
    const auto some = static_cast<std::uint16_t>(std::min(flits, kCreditsAtOnce));
    flits -= some;
    if (when <= now || when + some <= now + kCreditsAhead) {
      network->engine().credit(router, port, vc, some, when, now);
    } else {
      network->queue().at(network->clock().at(when), [this, when, vc, some] { give(vc, some, when); });
    }
  }
}

void RouterPorts::injected(unsigned input, Packet& packet, Cycle head, Cycle tail) {
  (*sockets[input])->injected(packet, clock_.at(head), clock_.at(tail));
}

void RouterPorts::publish(RouterInput& from, RouterOutput& to, const Packet& packet, Cycle head, Cycle tail) {
  if (to.track != kNoTrack) {
    const Ps begin = std::max(clock_.at(head - flight_), to.published);
    to.published = clock_.at(tail - flight_ + 1);
    observer_->interval(to.track, begin, to.published, packet.op);
  }
  if (from.track != kNoTrack) from.publish(-from.flits_of(packet));
}

Router::Router(const sc_core::sc_module_name& name, RouterNetwork& network, const std::vector<bool>& connected,
               Observer* observer)
    : sc_module(name),
      in(connected.size()),
      out(connected.size()),
      ports_(std::make_unique<RouterPorts>(network, static_cast<unsigned>(connected.size()), observer)) {
  ports_->sockets.resize(connected.size());
  for (unsigned p = 0; p < connected.size(); ++p) {
    if (!connected[p]) continue;
    const std::string port = port_name(p);
    RouterInput& input = ports_->input(p);
    RouterOutput& output = ports_->output(p);
    in[p] = std::make_unique<PacketTargetSocket>(("in_" + port).c_str());
    out[p] = std::make_unique<PacketInitiatorSocket>(("out_" + port).c_str());
    in[p]->bind(static_cast<PacketForwardIf&>(input));
    out[p]->bind(static_cast<PacketBackwardIf&>(output));
    ports_->sockets[p] = in[p].get();
    output.socket = out[p].get();
    if (observer != nullptr) {
      input.observer = observer;
      input.track = observer->add_track(std::string(this->name()) + ".in_" + port + ".waiting", TrackKind::level);
      output.track = observer->add_track(std::string(this->name()) + ".out_" + port, TrackKind::number);
    }
  }
}

Router::~Router() = default;

void Router::end_of_elaboration() {
  RouterNetwork& network = ports_->network();
  for (unsigned p = 0; p < out.size(); ++p) {
    if (!out[p]) continue;
    auto* peer = dynamic_cast<RouterInput*>(out[p]->operator->());
    if (peer == nullptr || peer->network != &network) continue;
    peer->injects = false;
    ports_->output(p).inside = true;
    network.engine().connect(ports_->index(), p, peer->router, peer->port);
  }
}

const PortStats& Router::output_stats(unsigned port) const { return ports_->stats(port); }

}  // namespace kernbench
