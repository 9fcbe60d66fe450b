#include "ccl/run/bound_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "ccl/contract/error.h"
#include "ccl/contract/legal.h"
#include "ccl/run/request.h"

namespace kernbench::ccl {
namespace {

using TensorArg = LaunchMessage::TensorArg;

bool alike(const TensorArg& a, const TensorArg& b, bool anywhere = false) {
  return a.shape == b.shape && same_geometry(a, b, anywhere);
}

/// But for bases, data type and reduction.
bool alike(const CallTensors& a, const CallTensors& b, bool anywhere) {
  return a.call.op == b.call.op && a.root == b.root && a.peer == b.peer &&
         size_of(a.call.dtype) == size_of(b.call.dtype) && alike(a.in, b.in, anywhere) && alike(a.out, b.out, anywhere);
}

std::pair<int, int> schedule_ends(const CollectiveCall& call, int ranks, int rank) {
  if (call.op != CollectiveOp::send_recv) return {call.root, 0};
  if (call.to < 0 && call.from < 0) throw Error("send_recv needs a rank to send to or to receive from");
  for (const int other : {call.to, call.from}) {
    if (other >= ranks) throw Error(fmt::format("send_recv: rank {} does not exist; the group has {}", other, ranks));
  }
  if (call.from < 0) return {rank, call.to};
  if (call.to < 0) return {call.from, rank};
  const int shift = (call.to - rank + ranks) % ranks;
  if ((call.from + shift) % ranks != rank) {
    throw Error(
        fmt::format("send_recv of rank {}: to rank {} and from rank {} are not the same distance in the ring of ranks",
                    rank, call.to, call.from));
  }
  return {-1, shift};
}

}  // namespace

CallTensors::CallTensors(CollectiveCall the_call, TensorArg the_in, TensorArg the_out, int ranks, int the_rank)
    : call(std::move(the_call)),
      in(std::move(the_in)),
      out(std::move(the_out)),
      rank(the_rank),
      in_place(in.base == out.base && alike(in, out)) {
  std::tie(root, peer) = schedule_ends(call, ranks, rank);
}

bool CallTensors::is_transfer() const { return call.op == CollectiveOp::send_recv && root >= 0; }

bool CallTensors::in_place_everywhere() const { return !rooted(call.op) && in_place; }

CallBinder::CallBinder(const MachineMap& map, const Group& group, Scope scope)
    : map_(map),
      group_(group),
      scope_(group.ranks_are_pes() ? Scope::sip : scope),
      machine_(machine_request(map, group)) {}

std::shared_ptr<BoundCall> CallBinder::bind(const CallTensors& tensors) {
  const bool in_place = tensors.in_place_everywhere();
  const Whose whose{tensors.is_transfer() ? tensors.root : -1, tensors.is_transfer() ? tensors.peer : -1,
                    group_.ranks_are_pes() ? tensors.rank : -1};
  std::list<std::shared_ptr<BoundCall>>& calls = calls_[whose];
  const auto found = std::find_if(calls.begin(), calls.end(), [&](const auto& known) {
    return known->in_place == in_place && alike(known->tensors, tensors, false);
  });
  if (found != calls.end()) {
    calls.splice(calls.begin(), calls, found);
    return calls.front();
  }
  calls.push_front(make(tensors, in_place));
  if (calls.size() > kMostCalls) calls.pop_back();
  if (group_.ranks_are_pes()) share_choice(whose, *calls.front());
  return calls.front();
}

std::shared_ptr<BoundCall> CallBinder::make(const CallTensors& tensors, bool in_place) const {
  const CollectiveOp op = tensors.call.op;
  const int ranks = static_cast<int>(group_.sips.size());
  const std::size_t item = size_of(tensors.call.dtype);
  auto bound = std::make_shared<BoundCall>(tensors, in_place);
  try {
    bound->maps =
        std::make_shared<const CallMaps>(make_call_maps(map_, op, scope_, ranks, tensors.in, tensors.out, item));
    if (bound->maps->elements > 0) {
      bound->lanes.emplace(map_, *bound->maps, op, in_place, item);
      bound->request = call_request(map_, group_, machine_, *bound->maps, bound->lanes->all().size(), item,
                                    tensors.root, tensors.peer);
    }
  } catch (const Error& error) {
    bound->refusal = error.what();
  }
  return bound;
}

void CallBinder::share_choice(const Whose& whose, BoundCall& call) const {
  for (const auto& [other, calls] : calls_) {
    if (std::get<0>(other) != std::get<0>(whose) || std::get<1>(other) != std::get<1>(whose)) continue;
    for (const std::shared_ptr<BoundCall>& known : calls) {
      if (!known->choice || known->in_place != call.in_place || !alike(known->tensors, call.tensors, true)) continue;
      call.choice = known->choice;
      call.use(known->algorithm, known->plan);
      return;
    }
  }
}

}  // namespace kernbench::ccl
