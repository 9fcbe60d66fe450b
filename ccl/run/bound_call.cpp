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

bool alike(const TensorArg& a, const TensorArg& b) { return a.shape == b.shape && same_geometry(a, b); }

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
    : call(std::move(the_call)), in(std::move(the_in)), out(std::move(the_out)), rank(the_rank) {
  std::tie(root, peer) = schedule_ends(call, ranks, rank);
}

bool CallTensors::in_place() const { return in.base == out.base && alike(in, out); }

bool same_shape(const CallTensors& a, const CallTensors& b) {
  return a.call.op == b.call.op && a.root == b.root && a.peer == b.peer &&
         size_of(a.call.dtype) == size_of(b.call.dtype) && alike(a.in, b.in) && alike(a.out, b.out);
}

CallBinder::CallBinder(const MachineMap& map, const Group& group, Scope scope)
    : map_(map), group_(group), scope_(tiles_of(group, scope)), machine_(machine_request(map, sip_shape(map, group))) {}

std::shared_ptr<BoundCall> CallBinder::bind(const CallTensors& tensors) {
  const CollectiveCall& call = tensors.call;
  const int ranks = static_cast<int>(group_.sips.size());
  const std::size_t item = size_of(call.dtype);
  const bool in_place = !rooted(call.op) && tensors.in_place();  // with a root each rank may do as it likes
  const bool transfer = call.op == CollectiveOp::send_recv && tensors.root >= 0;
  std::list<std::shared_ptr<BoundCall>>& calls =
      calls_[transfer ? std::pair(tensors.root, tensors.peer) : std::pair(-1, -1)];
  const auto found = std::find_if(calls.begin(), calls.end(), [&](const auto& known) {
    return known->in_place == in_place && same_shape(known->tensors, tensors);
  });
  if (found != calls.end()) {
    calls.splice(calls.begin(), calls, found);
    return calls.front();
  }
  auto bound = std::make_shared<BoundCall>(tensors, in_place);
  try {
    bound->maps =
        std::make_shared<const CallMaps>(make_call_maps(map_, call.op, scope_, ranks, tensors.in, tensors.out, item));
    if (bound->maps->elements > 0) {
      bound->lanes.emplace(map_, *bound->maps, call.op, in_place, item);
      const CallShape shape = call_shape(*bound->maps, bound->lanes->all().size(), item);
      bound->request = call_request(map_, group_, machine_, shape, tensors.root, tensors.peer);
    }
  } catch (const Error& error) {
    bound->refusal = error.what();
  }
  calls.push_front(bound);
  if (calls.size() > kMostCalls) calls.pop_back();
  return bound;
}

}  // namespace kernbench::ccl
