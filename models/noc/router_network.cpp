#include "models/noc/router_network.h"

#include "models/noc/router_ports.h"

namespace kernbench {

RouterNetwork::RouterNetwork(const NocConfig& config, const NetworkRoutes& routes, EventQueue& queue, Grade grade)
    : config_(config), grade_(grade), queue_(queue), clock_(config.clock_hz) {
  check(config_);
  engine_ =
      grade == Grade::fast ? make_hop_commit_engine(config_, routes, *this) : make_flit_engine(config_, routes, *this);
}

RouterNetwork::~RouterNetwork() = default;

unsigned RouterNetwork::add(RouterPorts& router, unsigned ports) {
  engine_->add_router(ports);
  routers_.push_back(&router);
  return static_cast<unsigned>(routers_.size()) - 1;
}

void RouterNetwork::head(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head) {
  routers_[router]->head(input, output, packet, head);
}

void RouterNetwork::tail(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
  routers_[router]->tail(input, output, packet, head, tail);
}

void RouterNetwork::pass(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) {
  RouterPorts& ports = *routers_[router];
  ports.head(input, output, packet, head);
  ports.tail(input, output, packet, head, tail);
}

void RouterNetwork::injected(unsigned router, unsigned input, Packet& packet, Cycle head, Cycle tail) {
  routers_[router]->injected(input, packet, head, tail);
}

void RouterNetwork::wake(Cycle at) {
  queue_.at(clock_.at(at), [this, at] {
    step_time_ = queue_.now();
    step_cycle_ = at;
    engine_->step(at);
  });
}

}  // namespace kernbench
