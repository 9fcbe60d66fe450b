#include "models/noc/router.h"

#include <algorithm>
#include <string>

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

struct Router::Impl {
  struct In final : PacketForwardIf {
    In(Impl& impl, unsigned port) : impl(impl), port(port) {}
    void head(Packet& packet, Ps head) override {
      if (track != kNoTrack) publish(static_cast<std::int64_t>(impl.flits_of(packet)));
      RouterNetwork& network = impl.network;
      network.engine().arrive(impl.index, port, packet, network.cycle(head), network.now());
    }
    void tail(Packet&, Ps, Ps) override {}
    void offer(Packet& packet, Ps first, Ps last) override {
      if (track != kNoTrack) publish(static_cast<std::int64_t>(impl.flits_of(packet)));
      RouterNetwork& network = impl.network;
      const Cycle from = network.cycle(first);
      const Cycle to = last == first ? from : network.cycle(last);
      const Cycle now = first == network.queue().now() ? from : network.now();
      network.engine().offer(impl.index, port, packet, from, to, now);
    }
    void publish(std::int64_t change) {
      level += change;
      impl.observer->change(track, impl.network.queue().now(), static_cast<std::uint64_t>(level));
    }
    Impl& impl;
    unsigned port;
    bool injects = true;     // a network interface or link port sends here
    std::int64_t level = 0;  // flits of packets that are here or on the way
    TrackId track = kNoTrack;
  };

  struct Out final : PacketBackwardIf {
    Out(Impl& impl, unsigned port) : impl(impl), port(port) {}
    void credit(unsigned vc, unsigned units, Ps when) override {
      RouterNetwork& network = impl.network;
      if (when == 0) {
        network.engine().announce(impl.index, port, units);
        return;
      }
      give(static_cast<std::uint16_t>(vc), units, network.cycle(when));
    }
    void give(std::uint16_t vc, unsigned flits, Cycle when) {
      RouterNetwork& network = impl.network;
      const Cycle now = network.now();
      if (network.grade() == Grade::fast) return network.engine().credit(impl.index, port, vc, flits, when, now);
      for (; flits != 0; when += kCreditsAtOnce) {
        const auto some = static_cast<std::uint16_t>(std::min(flits, kCreditsAtOnce));
        flits -= some;
        if (when <= now || when + some <= now + kCreditsAhead) {
          network.engine().credit(impl.index, port, vc, some, when, now);
        } else {
          network.queue().at(network.clock().at(when), [this, when, vc, some] { give(vc, some, when); });
        }
      }
    }
    Impl& impl;
    unsigned port;
    PortStats stats;
    TrackId track = kNoTrack;
    Ps published = 0;  // end of the last interval
  };

  Impl(RouterNetwork& network, Router& router, unsigned ports, Observer* observer)
      : network(network),
        observer(observer),
        flits_of(network.config().flit_bytes),
        index(network.add(router, ports)),
        hop(Cycle{network.config().routing_delay} + network.config().vc_alloc_delay + network.config().sw_alloc_delay +
            network.config().switch_delay + network.config().link_delay),
        flight(hop - network.config().routing_delay - network.config().vc_alloc_delay),
        injection(1 + Cycle{network.config().link_delay}),
        ins(ports),
        outs(ports) {}

  RouterNetwork& network;
  Observer* observer;
  const FlitCounter flits_of;
  const unsigned index;
  const Cycle hop;        // of a head that nothing hinders
  const Cycle flight;     // switch allocation to arrival at the next hop
  const Cycle injection;  // source to buffer
  std::vector<std::unique_ptr<In>> ins;
  std::vector<std::unique_ptr<Out>> outs;
};

Router::Router(const sc_core::sc_module_name& name, RouterNetwork& network, const std::vector<bool>& connected,
               Observer* observer)
    : sc_module(name),
      in(connected.size()),
      out(connected.size()),
      impl_(std::make_unique<Impl>(network, *this, static_cast<unsigned>(connected.size()), observer)) {
  for (unsigned p = 0; p < connected.size(); ++p) {
    if (!connected[p]) continue;
    const std::string port = port_name(p);
    auto& input = impl_->ins[p] = std::make_unique<Impl::In>(*impl_, p);
    auto& output = impl_->outs[p] = std::make_unique<Impl::Out>(*impl_, p);
    in[p] = std::make_unique<PacketTargetSocket>(("in_" + port).c_str());
    out[p] = std::make_unique<PacketInitiatorSocket>(("out_" + port).c_str());
    in[p]->bind(static_cast<PacketForwardIf&>(*input));
    out[p]->bind(static_cast<PacketBackwardIf&>(*output));
    if (observer != nullptr) {
      input->track = observer->add_track(std::string(this->name()) + ".in_" + port + ".waiting", TrackKind::level);
      output->track = observer->add_track(std::string(this->name()) + ".out_" + port, TrackKind::number);
    }
  }
}

Router::~Router() = default;

void Router::end_of_elaboration() {
  for (unsigned p = 0; p < out.size(); ++p) {
    if (!out[p]) continue;
    auto* peer = dynamic_cast<Impl::In*>(out[p]->operator->());
    if (peer == nullptr || &peer->impl.network != &impl_->network) continue;
    peer->injects = false;
    impl_->network.engine().connect(impl_->index, p, peer->impl.index, peer->port);
  }
}

void Router::head(unsigned input, unsigned output, Packet& packet, Cycle head) {
  RouterNetwork& network = impl_->network;
  const Cycle unhindered = impl_->hop + (impl_->ins[input]->injects ? impl_->injection : 0);
  const Ps least = network.clock().at(head) - network.clock().at(head - unhindered);
  const Ps time = network.time(head);
  packet.charge(Delay::mesh, least);
  packet.charge(Delay::contention, time - packet.head - least);
  out[output]->head(packet, time);
}

void Router::tail(unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
  Impl::Out& to = *impl_->outs[output];
  const Clock& clock = impl_->network.clock();
  const unsigned flits = impl_->flits_of(packet);
  to.stats.packets += packets_of(packet.bytes);
  to.stats.bytes += packet.bytes;
  to.stats.busy += clock.at(flits);
  if (to.track != kNoTrack) {
    const Ps begin = std::max(clock.at(head - impl_->flight), to.published);
    to.published = clock.at(tail - impl_->flight + 1);
    impl_->observer->interval(to.track, begin, to.published, packet.op);
  }
  Impl::In& from = *impl_->ins[input];
  if (from.track != kNoTrack) from.publish(-static_cast<std::int64_t>(flits));
  out[output]->tail(packet, clock.at(head), clock.at(tail));
}

void Router::injected(unsigned input, Packet& packet, Cycle head, Cycle tail) {
  const Clock& clock = impl_->network.clock();
  (*in[input])->injected(packet, clock.at(head), clock.at(tail));
}

const PortStats& Router::output_stats(unsigned port) const { return impl_->outs.at(port)->stats; }

}  // namespace kernbench
