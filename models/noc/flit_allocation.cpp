#include <utility>

#include "models/noc/flit_engine.h"

// The two allocators of a router: virtual channels to heads, the switch to flits. Each is one iteration of iSLIP.
namespace kernbench {

using flit::Buffer;

namespace {
constexpr unsigned kThroughWeight = 2;  // weighted round robin; assumed: through traffic stands for several sources
constexpr std::uint32_t kNone = ~0U;

// Steps from the one whose turn it is.
std::uint32_t distance(std::uint32_t from, std::uint32_t to, std::uint32_t all) {
  return to >= from ? to - from : to + all - from;
}
}  // namespace

void FlitEngine::run(Router& router, Cycle now) {
  if (!router.waiting.empty()) {
    allocate_vcs(router);
    if (allocated_ == 0) {
      for (Buffer* buffer : granted_) evaluate(*buffer, now);
      granted_.clear();
    }
  }
  if (!router.ready.empty()) allocate_switch(router, now);
  for (Buffer* buffer : granted_) evaluate(*buffer, now + 1);
  granted_.clear();
}

// Virtual channels.

std::uint32_t FlitEngine::index_of(unsigned port, unsigned network, unsigned channel) const {
  return port * vcs_ + network * split_.vcs_per_set() + channel;
}

// Free channels that a head asks for.
std::uint32_t FlitEngine::wanted(const Buffer& buffer, const flit::OutputNetwork& network) const {
  return any_ ? network.free : network.free & 1U << split_.channel(buffer.vc);
}

void FlitEngine::allocate_vcs(Router& router) {
  requests_.clear();
  for (Buffer* buffer : router.waiting) {
    flit::OutputNetwork& network = output_network(router, buffer->output, buffer->network);
    if (wanted(*buffer, network) != 0) {
      requests_.push_back({buffer, &network, 0, kNone, false});
    } else {
      buffer->next = std::exchange(network.parked, buffer);
    }
  }
  router.waiting.clear();
  if (!requests_.empty()) match_vcs(router);
}

void FlitEngine::match_vcs(Router& router) {
  const std::uint32_t all = router.ports * vcs_;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].seen) continue;
    flit::OutputNetwork& network = *requests_[i].network;
    const Buffer& one = *requests_[i].buffer;
    for (std::uint32_t rest = network.free; rest != 0; rest &= rest - 1) {
      const unsigned channel = static_cast<unsigned>(__builtin_ctz(rest));
      VcRequest* best = nullptr;
      std::uint32_t best_turn = kNone;
      for (std::size_t j = i; j < requests_.size(); ++j) {
        VcRequest& request = requests_[j];
        if (request.network != &network) continue;
        request.seen = true;
        const Buffer& buffer = *request.buffer;
        if (!any_ && split_.channel(buffer.vc) != channel) continue;
        const std::uint32_t turn = distance(network.vcs[channel].grant_next, buffer.input * vcs_ + buffer.vc, all);
        if (turn < best_turn) {
          best_turn = turn;
          best = &request;
        }
      }
      if (best == nullptr) continue;
      const std::uint32_t rank = distance(best->buffer->accept_next, index_of(one.output, one.network, channel), all);
      if (rank < best->rank) {
        best->rank = rank;
        best->channel = channel;
      }
    }
  }
  for (const VcRequest& request : requests_) {
    if (request.rank != kNone) {
      grant_vc(router, *request.buffer, *request.network, request.channel);
    } else {
      router.waiting.push_back(request.buffer);
    }
  }
}

void FlitEngine::grant_vc(Router& router, Buffer& buffer, flit::OutputNetwork& network, unsigned channel) {
  const std::uint32_t all = router.ports * vcs_;
  flit::OutputVc& vc = network.vcs[channel];
  network.free &= ~(1U << channel);
  turn(vc.grant_next, vc.streak, buffer.input * vcs_ + buffer.vc, all, buffer.input);
  const std::uint32_t accepted = index_of(buffer.output, buffer.network, channel) + 1;
  buffer.accept_next = accepted == all ? 0 : accepted;
  buffer.out_vc = static_cast<std::uint8_t>(channel);
  buffer.down = &behind(router, buffer.output, buffer.network, channel);
  buffer.down->sender = &buffer;
  buffer.state = Buffer::State::active;
  granted_.push_back(&buffer);
}

// Whose turn is next after `winner`, which came through `input`.
template <class Next>
void FlitEngine::turn(Next& next, std::uint8_t& streak, unsigned winner, unsigned all, unsigned input) const {
  if (weighted_ && input < kFirstLocalPort) {
    streak = static_cast<std::uint8_t>(next == winner ? streak + 1 : 1);
    if (streak < kThroughWeight) {
      next = static_cast<Next>(winner);
      return;
    }
  }
  streak = 0;
  next = static_cast<Next>(winner + 1 == all ? 0 : winner + 1);
}

// The switch.

void FlitEngine::allocate_switch(Router& router, Cycle now) {
  if (hold_) {
    match_switch(router, now, Pass::priority);
    if (router.hold_at == now) serve_holds(router, now);
    match_switch(router, now, Pass::ordinary);
  } else if (router.ready.size() == 1) {
    win(router, *router.ready.front(), now);
  } else {
    match_switch(router, now, Pass::all);
  }
}

void FlitEngine::match_switch(Router& router, Cycle now, Pass pass) {
  picked_.clear();
  for (Buffer* buffer : router.ready) {
    flit::Output& output = router.outputs[buffer->output];
    const flit::Input& input = router.inputs[buffer->input];
    if (pass != Pass::all) {
      if (buffer->ordinary != (pass == Pass::ordinary) || input.busy == now || output.busy == now) continue;
    }
    const std::uint32_t rank = static_cast<std::uint32_t>(buffer->ordinary) << 31 |
                               distance(output.grant_next, buffer->input, router.ports) << 8 |
                               distance(input.vc_next, buffer->vc, vcs_);
    if (output.best == nullptr) {
      picked_.push_back(&output);
    } else if (rank > output.best_rank) {
      continue;
    }
    output.best = buffer;
    output.best_rank = rank;
  }
  accepted_.clear();
  for (flit::Output* output : picked_) {
    Buffer* buffer = std::exchange(output->best, nullptr);
    flit::Input& input = router.inputs[buffer->input];
    const std::uint32_t rank =
        static_cast<std::uint32_t>(buffer->ordinary) << 31 | distance(input.accept_next, buffer->output, router.ports);
    if (input.best == nullptr) {
      accepted_.push_back(&input);
    } else if (rank > input.best_rank) {
      continue;
    }
    input.best = buffer;
    input.best_rank = rank;
  }
  for (flit::Input* input : accepted_) win(router, *std::exchange(input->best, nullptr), now);
}

void FlitEngine::win(Router& router, Buffer& buffer, Cycle now) {
  flit::Input& input = router.inputs[buffer.input];
  flit::Output& output = router.outputs[buffer.output];
  turn(output.grant_next, output.streak, buffer.input, router.ports, buffer.input);
  input.accept_next = static_cast<std::uint16_t>(buffer.output + 1U == router.ports ? 0 : buffer.output + 1U);
  input.vc_next = static_cast<std::uint16_t>(buffer.vc + 1U == vcs_ ? 0 : buffer.vc + 1U);
  if (hold_) {
    hold(router, buffer, now);
  } else {
    send(buffer, now);
  }
}

// Sends a flit under the policy `hold`: a packet whose next flit is already here owns both ports in the next cycle.
void FlitEngine::hold(Router& router, Buffer& buffer, Cycle now) {
  router.inputs[buffer.input].busy = router.outputs[buffer.output].busy = now;
  const std::uint32_t here = buffer.missing();
  const bool keeps = buffer.sent + 1U < buffer.flits && here > 1 && buffer.arrived.nth_last(here - 1, now) <= now;
  send(buffer, now);
  if (!keeps) return;
  if (router.hold_at != now + 1) router.holds.clear();
  router.hold_at = now + 1;
  router.holds.push_back(&buffer);
}

// A held port without a credit stays blocked for this cycle.
void FlitEngine::serve_holds(Router& router, Cycle now) {
  granted_holds_.swap(router.holds);
  router.hold_at = kNoCycle;
  for (Buffer* buffer : granted_holds_) {
    flit::Input& input = router.inputs[buffer->input];
    flit::Output& output = router.outputs[buffer->output];
    if (input.busy == now || output.busy == now) continue;  // priority
    const bool ready = buffer->ready_at < router.ready.size() && router.ready[buffer->ready_at] == buffer;
    if (ready) {
      hold(router, *buffer, now);
    } else {
      input.busy = output.busy = now;
    }
  }
  granted_holds_.clear();
}

}  // namespace kernbench
