#include "models/noc/router.h"

#include <string>

#include "models/noc/router_ports.h"

namespace kernbench {

namespace {

std::string port_name(unsigned port) {
  static constexpr const char* kNames[] = {"n", "s", "e", "w"};
  return port < kFirstLocalPort ? kNames[port] : "p" + std::to_string(port);
}

}  // namespace

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
std::vector<VcUse> Router::virtual_channels(unsigned port) const {
  const VcUse* vcs = ports_->output(port).vcs.get();
  return vcs == nullptr ? std::vector<VcUse>() : std::vector<VcUse>(vcs, vcs + ports_->network().config().vcs());
}
const Usage* Router::channel_over_time(unsigned port, std::size_t vc) const {
  const RouterOutput& output = ports_->output(port);
  return output.detail ? output.over_time[vc] : nullptr;
}
void Router::observe_usage(unsigned port, Usage* usage, UsageBook* channels) {
  RouterOutput& output = ports_->output(port);
  output.usage = usage;
  const unsigned vcs = ports_->network().config().vcs();
  output.vcs = std::make_unique<VcUse[]>(vcs);
  output.detail = channels != nullptr;
  if (!output.detail) return;
  output.over_time = std::make_unique<Usage*[]>(vcs);
  for (unsigned vc = 0; vc < vcs; ++vc) output.over_time[vc] = channels->add(1, 1);
}
void Router::observe_level(unsigned port, Usage* usage) {
  if (ports_->network().grade() == Grade::fast) return;
  RouterInput& input = ports_->input(port);
  input.watched = true;
  input.marks = usage;
}

}  // namespace kernbench
