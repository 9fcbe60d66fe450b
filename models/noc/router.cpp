#include "models/noc/router.h"

#include <algorithm>
#include <string>
#include <utility>

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
      index_(network.add(*this, outputs_.get(), ports)) {
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

Router::Router(const sc_core::sc_module_name& name, RouterNetwork& network, const std::vector<bool>& connected,
               Observer* observer)
    : sc_module(name),
      in(connected.size()),
      out(connected.size()),
      ports_(std::make_unique<RouterPorts>(network, static_cast<unsigned>(connected.size()), observer)) {
  for (unsigned p = 0; p < connected.size(); ++p) {
    if (!connected[p]) continue;
    const std::string port = port_name(p);
    RouterInput& input = ports_->input(p);
    RouterOutput& output = ports_->output(p);
    in[p] = std::make_unique<PacketTargetSocket>(("in_" + port).c_str());
    out[p] = std::make_unique<PacketInitiatorSocket>(("out_" + port).c_str());
    in[p]->bind(static_cast<PacketForwardIf&>(input));
    out[p]->bind(static_cast<PacketBackwardIf&>(output));
    output.observed = observer != nullptr;
    if (output.observed) {
      std::string waiting = this->name(), sent = this->name();
      waiting.append(".in_").append(port).append(".waiting");
      sent.append(".out_").append(port);
      ports_->observe(p, waiting, sent);
    }
  }
}

Router::~Router() = default;

void Router::end_of_elaboration() {
  RouterNetwork& network = ports_->network();
  for (unsigned p = 0; p < out.size(); ++p) {
    if (!out[p]) continue;
    RouterOutput& output = ports_->output(p);
    output.peer = out[p]->operator->();
    ports_->input(p).peer = in[p]->operator->();
    const auto* peer = dynamic_cast<const RouterInput*>(&output.peer->receiver());
    if (peer == nullptr || peer->network != &network) continue;
    network.engine().connect(ports_->index(), p, peer->router, peer->port);
    output.leaves = false;
  }
}

const PortStats& Router::output_stats(unsigned port) const { return ports_->stats(port); }
std::uint64_t Router::input_bytes(unsigned port) const { return ports_->input(port).bytes; }
std::optional<std::uint64_t> Router::most_packets(unsigned port) const {
  if (ports_->network().grade() == Grade::fast) return std::nullopt;
  return ports_->input(port).most;
}
const std::vector<VcUse>& Router::virtual_channels(unsigned port) const {
  static const std::vector<VcUse> kNone;
  const auto& use = ports_->output(port).use;
  return use == nullptr ? kNone : use->vcs;
}
void Router::observe_usage(unsigned port, Usage* usage) {
  auto& use = ports_->output(port).use;
  use = std::make_unique<PortUse>();
  use->usage = usage;
  use->vcs.resize(std::size_t{kVirtualNetworks} * ports_->network().config().vcs_per_set);
  ports_->input(port).watched = true;
}

}  // namespace kernbench
