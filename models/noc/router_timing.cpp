#include "models/noc/router_timing.h"

#include <algorithm>

namespace kernbench {

namespace {
constexpr unsigned kThroughWeight = 2;  // weighted round robin; assumed: through traffic stands for several sources
}  // namespace

struct RouterTiming::InputVc {
  Packet* first = nullptr;
  Packet* last = nullptr;
  InputVc* next_waiting = nullptr;
  Cycle ready = 0;  // of the first packet: not before
  std::uint8_t input = 0, output = 0;
  std::uint8_t vc = 0, flits = 0;  // flits of the first packet
};

RouterTiming::RouterTiming(const NocConfig& config, const NetworkRoutes& routes, std::uint16_t index, unsigned ports,
                           Actions& actions)
    : routes_(routes),
      index_(index),
      actions_(actions),
      flits_(config.flit_bytes),
      split_(config.vcs_per_set),
      clock_(config.clock_hz),
      weighted_(config.arbitration == Arbitration::weighted_round_robin),
      vcs_(config.vcs()),
      credit_delay_(config.credit_delay),
      sw_alloc_delay_(config.sw_alloc_delay),
      pipeline_(config.routing_delay + config.vc_alloc_delay),
      inputs_(ports) {
  outputs_.reserve(ports);
  for (unsigned p = 0; p < ports; ++p) outputs_.emplace_back(config.vcs_per_set);
}

RouterTiming::~RouterTiming() = default;

RouterTiming::InputVc& RouterTiming::input_vc(unsigned input, unsigned vc) {
  auto& vcs = inputs_[input].networks[split_.network(vc)];
  if (!vcs) {
    vcs = std::make_unique<InputVc[]>(split_.vcs_per_set());
    for (unsigned k = 0; k < split_.vcs_per_set(); ++k) {
      vcs[k].input = static_cast<std::uint8_t>(input);
      vcs[k].vc = static_cast<std::uint8_t>(vc - split_.channel(vc) + k);
    }
  }
  return vcs[split_.channel(vc)];
}

void RouterTiming::arrive(unsigned input, Packet& packet, Cycle now) {
  InputVc& in = input_vc(input, packet.vc);
  packet.next = nullptr;
  if (in.first != nullptr) {
    in.last->next = &packet;
    in.last = &packet;
    return;
  }
  in.first = in.last = &packet;
  front(in, now + pipeline_, now);
}

// A packet has become the first of its virtual channel: it goes at once if nothing hinders it, else it waits.
void RouterTiming::front(InputVc& in, Cycle earliest, Cycle now) {
  Packet& packet = *in.first;
  in.output = routes_.next_port(index_, {packet.exit_router, packet.exit_port});
  sc_assert(in.output < outputs_.size());
  in.flits = static_cast<std::uint8_t>(flits_(packet));
  in.ready = earliest;
  Output& out = outputs_[in.output];
  const Cycle start = ready(in, out);
  if (out.waiting == nullptr && start <= earliest && earliest <= now + pipeline_) {
    commit(in, earliest, now);
    return;
  }
  in.next_waiting = out.waiting;
  out.waiting = &in;
  if (start != kNoCycle) wake(out, start);
}

Cycle RouterTiming::ready(const InputVc& in, Output& out) const {
  const Cycle credit = out.credits.ready(in.vc, in.flits);
  return std::max({in.ready, inputs_[in.input].free, out.free, credit});
}

// The lowest goes first.
std::uint64_t RouterTiming::rank(const InputVc& in, const Output& out) const {
  const unsigned ports = static_cast<unsigned>(inputs_.size());
  const std::uint64_t waits = has_priority(static_cast<int>(split_.network(in.vc))) ? 0 : 1;
  const std::uint64_t turn = in.input >= out.next_input ? in.input - out.next_input : in.input + ports - out.next_input;
  const unsigned next = inputs_[in.input].next_vc;
  return waits << 32 | turn << 16 | (in.vc >= next ? in.vc - next : in.vc + vcs_ - next);
}

void RouterTiming::arbitrate(unsigned output, Cycle now) {
  Output& out = outputs_[output];
  if (out.wake != now) return;
  out.wake = kNoCycle;
  InputVc** best = nullptr;
  std::uint64_t best_rank = 0;
  bool others = false;
  Cycle next = kNoCycle;
  for (InputVc** at = &out.waiting; *at != nullptr; at = &(*at)->next_waiting) {
    const Cycle can = ready(**at, out);
    if (can > now) {
      next = std::min(next, can);
      continue;
    }
    others = best != nullptr;
    const std::uint64_t r = rank(**at, out);
    if (best == nullptr || r < best_rank) {
      best = at;
      best_rank = r;
    }
  }
  if (best == nullptr) {
    if (next != kNoCycle) wake(out, next);
    return;
  }
  InputVc& winner = **best;
  *best = winner.next_waiting;
  commit(winner, now, now);
  if (others || next != kNoCycle) wake(out, std::max(out.free, others ? 0 : next));
}

void RouterTiming::commit(InputVc& in, Cycle start, Cycle now) {
  Packet& packet = *in.first;
  Input& input = inputs_[in.input];
  Output& out = outputs_[in.output];
  const unsigned flits = in.flits;
  in.first = packet.next;
  packet.next = nullptr;
  input.free = out.free = start + flits;
  input.next_vc = in.vc + 1U == vcs_ ? 0 : in.vc + 1U;
  turn(out, in.input);
  const Cycle last = std::max(start + flits - 1, clock_.tick_at_or_after(packet.tail));
  out.credits.take(in.vc, flits, last + 1);
  const unsigned output = in.output;
  actions_.free_buffer(in.input, in.vc, flits, last - (flits - 1) + credit_delay_);
  actions_.depart(output, packet, flits, start, last);
  if (in.first != nullptr) {
    const Cycle arrived = clock_.tick_at_or_after(in.first->head);
    front(in, std::max(last + 1, arrived + pipeline_), now);
  }
}

void RouterTiming::turn(Output& out, unsigned input) const {
  const unsigned next = input + 1 == inputs_.size() ? 0 : input + 1;
  if (weighted_ && input < kFirstLocalPort) {
    out.streak = out.next_input == input ? out.streak + 1 : 1;
    if (out.streak < kThroughWeight) {
      out.next_input = input;
      return;
    }
  }
  out.streak = 0;
  out.next_input = next;
}

void RouterTiming::wake(Output& out, Cycle at) {
  if (at >= out.wake) return;
  out.wake = at;
  actions_.wake(static_cast<unsigned>(&out - outputs_.data()), at);
}

void RouterTiming::credit(unsigned output, unsigned vc, unsigned flits, Cycle when, Cycle now) {
  Output& out = outputs_[output];
  out.credits.add(vc, flits, when + sw_alloc_delay_, now);
  for (const InputVc* in = out.waiting; in != nullptr; in = in->next_waiting) {
    if (in->vc != vc) continue;
    const Cycle can = ready(*in, out);
    if (can != kNoCycle) wake(out, std::max(can, now));
  }
}

}  // namespace kernbench
