#include "models/noc/hop_commit.h"

// The state of HopCommitEngine: its shape at elaboration, the rest on first use.
namespace kernbench {

HopCommitEngine::~HopCommitEngine() = default;

void HopCommitEngine::add_router(unsigned ports) {
  first_port_.push_back(first_port_.back() + ports);
  to_.resize(first_port_.back());
  fed_.resize(first_port_.back());
  announced_.resize(first_port_.back());
  ports_.resize(first_port_.back());
  sources_.resize(first_port_.back() * kVirtualNetworks);
  beyond_.resize(first_port_.back() * kVirtualNetworks);
  onward_.emplace_back();
}

void HopCommitEngine::connect(unsigned from, unsigned output, unsigned to, unsigned input) {
  to_[first_port_[from] + output] = {to, input};
  fed_[first_port_[to] + input] = true;
}

void HopCommitEngine::announce(unsigned router, unsigned output, unsigned flits) {
  announced_[first_port_[router] + output] = flits;
}

// State, made on first use.

HopCommitEngine::Port& HopCommitEngine::port(unsigned router, unsigned number) {
  auto& port = ports_[first_port_[router] + number];
  if (!port) {
    port = std::make_unique<Port>();
    port->router = router;
    port->number = number;
    port->in.port = port.get();
    port->in.router = router;
    port->in.number = number;
    port->in.depth = config_.vc_depth_flits;
  }
  return *port;
}

HopCommitEngine::Link& HopCommitEngine::out_link(unsigned router, unsigned output) {
  const std::size_t at = first_port_[router] + output;
  if (to_[at].router != ~0U) return port(to_[at].router, to_[at].port).in;
  Port& from = port(router, output);
  if (!from.border) {
    from.border = std::make_unique<Link>();
    from.border->depth = announced_[at];
  }
  return *from.border;
}

HopCommitEngine::Network& HopCommitEngine::network(Link& link, unsigned number) {
  Network*& made = link.networks[number];
  if (made != nullptr) return *made;
  made = networks_.emplace_back(std::make_unique<Network>()).get();
  made->link = &link;
  made->queues = std::make_unique<Queue[]>(config_.vcs_per_set);
  made->vcs = made->queues.get();
  for (unsigned k = 0; k < config_.vcs_per_set; ++k) {
    Queue& queue = made->vcs[k];
    queue.port = link.port;
    queue.number = static_cast<std::uint8_t>(config_.first_vc(static_cast<int>(number)) + k);
    queue.level = static_cast<std::uint8_t>(priority_level(static_cast<int>(number)));
    if (link.port != nullptr) queue.onward = onward_of(link.router, number);
  }
  return *made;
}

HopCommitEngine::Network** HopCommitEngine::onward_of(unsigned router, unsigned number) {
  const std::size_t ports = first_port_[router + 1] - first_port_[router];
  if (!onward_[router]) onward_[router] = std::make_unique<Network*[]>(ports * kVirtualNetworks);
  return &onward_[router][number * ports];
}

HopCommitEngine::Network& HopCommitEngine::make_onward(const Queue& queue, unsigned output) {
  Network& made = network(out_link(queue.port->router, output), split_.network(queue.number));
  made.router = queue.port->router;
  made.output = static_cast<std::uint8_t>(output);
  queue.onward[output] = &made;
  return made;
}

// With channels by flow, each has a line of its own at the source: one that is blocked does not block others.
void HopCommitEngine::make_sources(unsigned router, unsigned input, unsigned number, Source& source) {
  Port& port = this->port(router, input);
  auto& sources = port.sources[number];
  const unsigned lines = any_ ? 1 : config_.vcs_per_set;
  sources = std::make_unique<Queue[]>(lines);
  source = {sources.get(), &network(port.in, number)};
  for (unsigned k = 0; k < lines; ++k) {
    sources[k].port = &port;
    sources[k].source = true;
    sources[k].onward = &source.to;
    sources[k].level = static_cast<std::uint8_t>(priority_level(static_cast<int>(number)));
    sources[k].number = static_cast<std::uint8_t>(config_.first_vc(static_cast<int>(number)) + k);
  }
}

HopCommitEngine::Queue& HopCommitEngine::source_line(unsigned router, unsigned input, const Packet& packet) {
  const auto number = static_cast<unsigned>(packet.virtual_network());
  Source& source = sources_[(first_port_[router] + input) * kVirtualNetworks + number];
  if (source.lines == nullptr) make_sources(router, input, number, source);
  __builtin_prefetch(source.to);
  __builtin_prefetch(&ports_[first_port_[router] + input]->in);
  return source.lines[any_ ? 0 : split_.channel(virtual_channel(packet, config_))];
}

HopCommitEngine::Network& HopCommitEngine::beyond(unsigned router, unsigned output, unsigned number) {
  Network*& known = beyond_[(first_port_[router] + output) * kVirtualNetworks + number];
  if (known == nullptr) known = &network(out_link(router, output), number);
  return *known;
}

}  // namespace kernbench
