#include "models/noc/router.h"

#include <string>

#include "models/noc/router_timing.h"

namespace kernbench {

namespace {
std::string port_name(unsigned port) {
  static constexpr const char* kNames[] = {"n", "s", "e", "w"};
  return port < kFirstLocalPort ? kNames[port] : "p" + std::to_string(port);
}
}  // namespace

struct Router::Impl final : RouterTiming::Actions {
  struct In final : PacketForwardIf {
    In(Impl& impl, unsigned port) : impl(impl), port(port) {}
    void receive(Packet& packet, Ps head, Ps) override {
      const Cycle cycle = impl.clock.tick_at_or_after(head);
      impl.queue.at(impl.clock.at(cycle), [this, &packet, cycle] { impl.arrive(*this, packet, cycle); });
    }
    Impl& impl;
    unsigned port;
    std::uint64_t level = 0, published = 0;  // flits that wait for the switch
    TrackId track = kNoTrack;
  };
  struct Out final : PacketBackwardIf {
    Out(Impl& impl, unsigned port) : impl(impl), port(port) {}
    void credit(unsigned vc, unsigned units, Ps when) override {
      if (when == 0) {
        impl.timing.announce(port, vc, units);
      } else {
        impl.timing.credit(port, vc, units, impl.clock.tick_at_or_after(when),
                           impl.clock.tick_at_or_after(impl.queue.now()));
      }
    }
    Impl& impl;
    unsigned port;
    PortStats stats;
    TrackId track = kNoTrack;
  };

  Impl(Router& router, const NocConfig& config, const NetworkRoutes& routes, std::uint16_t index, unsigned ports,
       EventQueue& queue, Observer* observer)
      : router(router),
        config(config),
        queue(queue),
        observer(observer),
        clock(config.clock_hz),
        flits_of(config.flit_bytes),
        pipeline(config.routing_delay + config.vc_alloc_delay),
        flight(config.sw_alloc_delay + config.switch_delay + config.link_delay),
        timing(this->config, routes, index, ports, *this),
        ins(ports),
        outs(ports) {}

  void arrive(In& in, Packet& packet, Cycle cycle) {
    packet.input = static_cast<std::uint16_t>(in.port);
    if (in.track == kNoTrack) {
      timing.arrive(in.port, packet, cycle);
      return;
    }
    in.level += flits_of(packet);
    arriving = true;
    timing.arrive(in.port, packet, cycle);
    arriving = false;
    publish_level(in);
  }

  void depart(unsigned output, Packet& packet, unsigned flits, Cycle start, Cycle last) override {
    Out& to = *outs[output];
    const Ps head = clock.at(start + flight);
    const Ps unhindered = head - clock.at(start - pipeline);
    packet.charge(Delay::mesh, unhindered);
    packet.charge(Delay::contention, head - packet.head - unhindered);
    const Ps begin = clock.at(start), end = clock.at(start + flits);
    ++to.stats.packets;
    to.stats.bytes += packet.bytes;
    to.stats.busy += end - begin;
    if (observer != nullptr) publish(*ins[packet.input], to, packet, flits, begin, end);
    router.out[output]->send(packet, head, clock.at(last + flight));
  }
  void free_buffer(unsigned input, unsigned vc, unsigned flits, Cycle when) override {
    router.in[input]->give_credit(vc, flits, clock.at(when));
  }
  void wake(unsigned output, Cycle at) override {
    queue.at(clock.at(at), [this, output, at] { timing.arbitrate(output, at); });
  }
  void publish(In& from, const Out& to, const Packet& packet, unsigned flits, Ps begin, Ps end) const {
    if (to.track != kNoTrack) observer->interval(to.track, begin, end, packet.op);
    if (from.track == kNoTrack) return;
    from.level -= flits;
    if (!arriving) publish_level(from);
  }
  void publish_level(In& in) const {
    if (in.level == in.published) return;
    in.published = in.level;
    observer->change(in.track, queue.now(), in.level);
  }

  Router& router;
  const NocConfig config;
  EventQueue& queue;
  Observer* observer;
  bool arriving = false;  // a packet that nothing hinders does not wait
  const Clock clock;
  const FlitCounter flits_of;
  const Cycle pipeline;  // arrival to switch allocation
  const Cycle flight;    // switch allocation to arrival at the next hop
  RouterTiming timing;
  std::vector<std::unique_ptr<In>> ins;
  std::vector<std::unique_ptr<Out>> outs;
};

Router::Router(const sc_core::sc_module_name& name, const NocConfig& config, const NetworkRoutes& routes,
               std::uint16_t index, const std::vector<bool>& connected, EventQueue& queue, Observer* observer)
    : sc_module(name), in(connected.size()), out(connected.size()) {
  check(config);
  impl_ =
      std::make_unique<Impl>(*this, config, routes, index, static_cast<unsigned>(connected.size()), queue, observer);
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
  for (const auto& socket : in) {
    if (!socket) continue;
    for (unsigned vc = 0; vc < impl_->config.vcs(); ++vc) socket->give_credit(vc, impl_->config.vc_depth_flits, 0);
  }
}

const PortStats& Router::output_stats(unsigned port) const { return impl_->outs.at(port)->stats; }

}  // namespace kernbench
