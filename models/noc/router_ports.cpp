#include "models/noc/router_ports.h"

#include <algorithm>
#include <utility>

namespace kernbench {
namespace {

// Credits farther away than this are handed to the engine when they are due.
constexpr Cycle kCreditsAhead = 32;
constexpr unsigned kCreditsAtOnce = 16;

}  // namespace

void RouterOutput::reached(const Packet& packet, Ps time, Ps waited, Ps busy) const {
  VcUse& vc = vcs[packet.vc];  // the tail may find the next router's channel in the packet
  vc.packets += packet.packets();
  vc.bytes += packet.bytes;
  vc.busy += busy;
  if (detail) over_time[packet.vc]->busy(time, time + busy, packet.bytes, packet.packets());
  if (waited == 0) return;
  usage->wait(time - waited, time);
  vc.waiting += waited;
  if (detail) over_time[packet.vc]->wait(time - waited, time);
}

void RouterOutput::credit(unsigned vc, unsigned units, Ps when) {
  if (when == 0) {
    network->engine().announce(router, port, units);
    return;
  }
  if (CauseLog* log = network->queue().causes()) room = std::exchange(log->room, Cause());
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

RouterPorts::RouterPorts(RouterNetwork& network, unsigned ports, Observer* observer)
    : network_(network),
      observer_(observer),
      flight_(Cycle{network.config().sw_alloc_delay} + network.config().switch_delay + network.config().link_delay),
      inputs_(std::make_unique<RouterInput[]>(ports)),
      outputs_(std::make_unique<RouterOutput[]>(ports)),
      tracks_(observer != nullptr ? ports : 0),
      index_(network.add(*this, inputs_.get(), outputs_.get(), ports)) {
  for (unsigned port = 0; port < ports; ++port) {
    inputs_[port].network = outputs_[port].network = &network;
    inputs_[port].engine = &network.engine();
    inputs_[port].router = static_cast<std::uint16_t>(index_);
    outputs_[port].router = static_cast<std::uint16_t>(index_);
    inputs_[port].port = static_cast<std::uint8_t>(port);
    outputs_[port].port = static_cast<std::uint8_t>(port);
  }
}

void RouterPorts::observe(unsigned port, const std::string& input, const std::string& output) {
  inputs_[port].observer = observer_;
  inputs_[port].track = observer_->add_track(input, TrackKind::level);
  inputs_[port].watched = inputs_[port].track != kNoTrack;
  tracks_[port].id = observer_->add_track(output, TrackKind::number);
}

void RouterPorts::publish(unsigned input, const RouterOutput& to, const Packet& packet, Cycle head, Cycle tail) {
  const Clock& clock = network_.clock();
  Track& track = tracks_[to.port];
  if (track.id != kNoTrack) {
    const Ps begin = std::max(clock.at(head - flight_), track.published);
    track.published = clock.at(tail - flight_ + 1);
    observer_->interval(track.id, begin, track.published, packet.op);
  }
  RouterInput& from = inputs_[input];
  if (from.track != kNoTrack) from.publish(-static_cast<std::int32_t>(from.flits_of(packet)));
}

}  // namespace kernbench
