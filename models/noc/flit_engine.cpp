#include "models/noc/flit_engine.h"

#include <algorithm>

namespace kernbench {

using flit::Buffer;

FlitEngine::FlitEngine(const NocConfig& config, const NetworkRoutes& routes, Actions& actions)
    : MeshEngine(config, routes, actions),
      vcs_(config.vcs()),
      hold_(config.switch_policy == SwitchPolicy::hold),
      weighted_(config.arbitration == Arbitration::weighted_round_robin) {
  check(config);
}

FlitEngine::~FlitEngine() = default;

std::unique_ptr<MeshEngine> make_flit_engine(const NocConfig& config, const NetworkRoutes& routes,
                                             MeshEngine::Actions& actions) {
  return std::make_unique<FlitEngine>(config, routes, actions);
}

// Elaboration and state on first use.

void FlitEngine::add_router(unsigned ports) {
  first_port_.push_back(static_cast<std::uint32_t>(ports_.size()));
  ports_.resize(ports_.size() + ports);
  routers_.emplace_back();
}

void FlitEngine::connect(unsigned from, unsigned output, unsigned to, unsigned input) {
  port(from, output).to = to;
  port(from, output).to_input = static_cast<std::uint16_t>(input);
  port(to, input).connected_input = true;
}

void FlitEngine::announce(unsigned router, unsigned output, unsigned flits) { port(router, output).capacity = flits; }

flit::Router& FlitEngine::router(unsigned index) {
  auto& router = routers_[index];
  if (!router) {
    const std::size_t end = index + 1 < first_port_.size() ? first_port_[index + 1] : ports_.size();
    router = std::make_unique<Router>(index, static_cast<unsigned>(end - first_port_[index]));
  }
  return *router;
}

Buffer& FlitEngine::buffer(Router& router, unsigned input, unsigned vc) {
  const unsigned network = split_.network(vc), channel = split_.channel(vc);
  auto& buffers = router.inputs[input].networks[network];
  if (!buffers) {
    buffers = std::make_unique<Buffer[]>(split_.vcs_per_set());
    const bool from_source = !port(router.index, input).connected_input;
    for (unsigned k = 0; k < split_.vcs_per_set(); ++k) {
      Buffer& made = buffers[k];
      made.router = &router;
      made.from = &router.inputs[input];
      made.depth = config_.vc_depth_flits;
      made.input = static_cast<std::uint16_t>(input);
      made.vc = static_cast<std::uint8_t>(vc - channel + k);
      made.network = static_cast<std::uint8_t>(network);
      made.level = static_cast<std::uint8_t>(priority_level(static_cast<int>(network)));
      made.reuse = static_cast<std::uint8_t>(from_source ? source_reuse_ : reuse_);
    }
  }
  return buffers[channel];
}

flit::OutputNetwork& FlitEngine::output_network(Router& router, unsigned output, unsigned network) {
  auto& made = router.outputs[output].networks[network];
  if (!made) {
    made = std::make_unique<flit::OutputNetwork>();
    made->free = split_.vcs_per_set() == 32 ? ~0U : (1U << split_.vcs_per_set()) - 1;
    made->vcs = std::make_unique<flit::OutputVc[]>(split_.vcs_per_set());
  }
  return *made;
}

Buffer& FlitEngine::behind(Router& router, unsigned output, unsigned network, unsigned channel) {
  flit::OutputVc& vc = output_network(router, output, network).vcs[channel];
  if (vc.down == nullptr) {
    const flit::Port& to = port(router.index, output);
    if (to.to != flit::Port::kNowhere) {
      vc.down = &buffer(this->router(to.to), to.to_input, network * split_.vcs_per_set() + channel);
    } else {
      vc.down = borders_.emplace_back(std::make_unique<Buffer>()).get();
      vc.down->depth = to.capacity;
    }
  }
  return *vc.down;
}

// Time.

void FlitEngine::schedule(Buffer& buffer, Cycle at) {
  const Cycle slot = std::min(at, now_ + kSlots - 1) % kSlots;
  wheel_[slot].push_back(&buffer);
  pending_ |= std::uint64_t{1} << slot;
}

void FlitEngine::schedule(Source& source, Cycle at) {
  at = std::min(at, now_ + kSlots - 1);
  if (at >= source.wake) return;
  source.wake = at;
  source_wheel_[at % kSlots].push_back(&source);
  pending_ |= std::uint64_t{1} << at % kSlots;
}

// First cycle from now_ on in which there is something to do.
Cycle FlitEngine::next_work() const {
  const Cycle first = stepped_ == now_ ? now_ + 1 : now_;
  if (!coming_.empty()) return first;
  if (pending_ == 0) return kNoCycle;
  const unsigned turn = first % kSlots;
  const std::uint64_t ahead = turn == 0 ? pending_ : pending_ >> turn | pending_ << (kSlots - turn);
  return first + static_cast<unsigned>(__builtin_ctzll(ahead));
}

void FlitEngine::arm() {
  const Cycle at = next_work();
  if (at >= armed_) return;
  armed_ = at;
  actions_.wake(at);
}

void FlitEngine::list(Router& router) {
  if (router.listed) return;
  router.listed = true;
  coming_.push_back(&router);
}

void FlitEngine::step(Cycle now) {
  if (now != armed_) return;
  armed_ = kNoCycle;
  now_ = stepped_ = now;
  stepping_ = true;
  const unsigned slot = now % kSlots;
  if ((pending_ >> slot & 1) != 0) {
    pending_ &= ~(std::uint64_t{1} << slot);
    due_.swap(wheel_[slot]);
    due_sources_.swap(source_wheel_[slot]);
    for (Buffer* buffer : due_) {
      if (buffer->state == Buffer::State::active) {
        evaluate(*buffer, now);
      } else {
        buffer->router->waiting.push_back(buffer);
        list(*buffer->router);
      }
    }
    due_.clear();
    for (Source* source : due_sources_) {
      if (source->wake != now) continue;
      source->wake = kNoCycle;
      pump(*source, now);
    }
    due_sources_.clear();
  }
  work_.swap(coming_);
  for (Router* router : work_) {
    router->listed = false;
    run(*router, now);
    if (router->has_work()) list(*router);
  }
  work_.clear();
  stepping_ = false;
  arm();
}

// A packet in a buffer.

void FlitEngine::arrive(unsigned router, unsigned input, Packet& packet, Cycle head) {
  sc_assert(stepping_ && head > now_);
  enqueue(buffer(this->router(router), input, packet.vc), packet, head);
}

void FlitEngine::enqueue(Buffer& buffer, Packet& packet, Cycle head) {
  packet.next = nullptr;
  if (buffer.current == nullptr) {
    make_current(buffer, packet, head);
  } else {
    (buffer.first == nullptr ? buffer.first : buffer.last->next) = &packet;
    buffer.last = &packet;
  }
}

void FlitEngine::make_current(Buffer& buffer, Packet& packet, Cycle ready) {
  buffer.current = &packet;
  buffer.state = Buffer::State::waiting;
  buffer.flits = static_cast<std::uint16_t>(flits_(packet));
  buffer.sent = 0;
  buffer.output =
      routes_.next_port(static_cast<std::uint16_t>(buffer.router->index), {packet.exit_router, packet.exit_port});
  sc_assert(buffer.output < buffer.router->ports);
  buffer.to = &buffer.router->outputs[buffer.output];
  schedule(buffer, ready + head_wait_);
}

// Credits from outside.
void FlitEngine::credit(unsigned at, unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) {
  now_ = now;
  Buffer& down = behind(router(at), output, split_.network(vc), split_.channel(vc));
  const Cycle usable = std::max(when + config_.sw_alloc_delay, down.freed.last() + 1);
  if (usable <= now) {
    down.freed.add_past(flits);
  } else {
    for (unsigned i = 0; i < flits; ++i) down.freed.add(usable + i);
  }
  if (!down.sender_blocked) return;
  down.sender_blocked = false;
  actions_.freed(at, output, *down.sender->current, nullptr);
  schedule(*down.sender, std::max(usable, stepped_ == now ? now + 1 : now));
  if (!stepping_) arm();
}

}  // namespace kernbench
