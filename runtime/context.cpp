#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
std::vector<TensorShard> shards_for_machine(const Tensor& tensor) {
  std::vector<TensorShard> list;
  const std::vector<ShardSpec>& shards = tensor.shards();
  list.reserve(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const ShardSpec& shard = shards[i];
    list.push_back({tensor.state().owner(i), shard.offset_bytes, shard.nbytes, shard.region.rows, shard.region.cols,
                    shard.region.row, shard.region.col});
  }
  return list;
}

void check_usable(const Tensor& tensor, const std::string& who) {
  if (!tensor) throw std::invalid_argument(who + ": a tensor argument is an empty handle");
  if (!tensor.state().allocated) {
    throw std::logic_error(fmt::format("{}: tensor '{}' is used after it was freed", who, tensor.name()));
  }
}
}  // namespace

const MachineMap& Context::map() const { return runtime_.map; }
Ps Context::now() const {
  runtime_.dispatcher.synchronise();
  return runtime_.dispatcher.now();
}

void Context::set_device(int sip) {
  if (static_cast<std::size_t>(rank_) < runtime_.rank_pes.size() && runtime_.in_program) return;
  if (sip < 0 || sip >= runtime_.map.sips) {
    throw std::invalid_argument(fmt::format("set_device: sip is {}: give 0 to {}", sip, runtime_.map.sips - 1));
  }
  runtime_.devices[static_cast<std::size_t>(rank_)] = sip;
}

int Context::device() const { return std::max(runtime_.device(rank_), 0); }

std::uint16_t Context::new_stream() {
  if (runtime_.next_stream == 0xFFFF) throw std::length_error("new_stream: all 65,535 streams are taken");
  return runtime_.next_stream++;
}

Handle Context::submit(decltype(Message::body) body, std::uint16_t stream) {
  return Handle(runtime_.submit(std::move(body), rank_, device(), runtime_.stream_of(rank_, stream), {}, {}));
}

void Context::wait(const Handle& handle) {
  if (!handle) throw std::invalid_argument("wait: the handle is empty");
  const std::shared_ptr<Handle::State> state = handle.state_;
  runtime_.await(state);
  runtime_.throw_fault(*state);
}

Handle Context::launch_async(const std::string& name, KernelBody body, const std::vector<Tensor>& tensors,
                             std::vector<PeCoord> targets, std::uint16_t stream) {
  const std::string who = "launch '" + name + "'";
  const int sip = tensors.empty() ? (targets.empty() ? device() : targets.front().sip) : tensors.front().sip();
  if (tensors.size() > kMaxTensorArguments) {
    throw std::invalid_argument(
        fmt::format("{}: {} tensor arguments, at most {} fit its command", who, tensors.size(), kMaxTensorArguments));
  }
  LaunchMessage launch;
  launch.kernel = name;
  launch.body = std::move(body);
  for (const Tensor& tensor : tensors) {
    check_usable(tensor, who);
    if (tensor.sip() != sip) {
      throw std::invalid_argument(
          fmt::format("{}: tensor '{}' is on sip{}, tensor '{}' on sip{}: all must be on one SIP", who,
                      tensors.front().name(), sip, tensor.name(), tensor.sip()));
    }
    launch.tensors.push_back({tensor.va(), shards_for_machine(tensor), tensor.shape()});
  }
  if (targets.empty()) {
    for (const auto& argument : launch.tensors) {
      for (const TensorShard& shard : argument.shards) {
        if (shard.nbytes > 0) targets.push_back(shard.owner);
      }
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  for (const PeCoord pe : targets) {
    runtime_.map.pe(pe);  // throws if there is none
    if (pe.sip != sip)
      throw std::invalid_argument(fmt::format("{}: a target is on sip{}, not on sip{}", who, pe.sip, sip));
  }
  if (targets.empty()) throw std::invalid_argument(who + ": no targets, and no tensor that has any");
  launch.targets = std::move(targets);
  return Handle(
      runtime_.submit(std::move(launch), rank_, sip, runtime_.stream_of(rank_, stream), "launch", name, tensors));
}

Handle Context::launch(const std::string& name, KernelBody body, const std::vector<Tensor>& tensors,
                       std::vector<PeCoord> targets) {
  Handle handle = launch_async(name, std::move(body), tensors, std::move(targets));
  wait(handle);
  return handle;
}

Handle Context::all_reduce_async(const Tensor& tensor, ReduceOp op, const Group& members) {
  ProcessGroup& group = members.get() != nullptr ? *members.get() : runtime_.default_group("all_reduce");
  check_usable(tensor, "all_reduce");
  const int member = group.group_rank(rank_);
  if (member < 0) {
    throw std::invalid_argument(
        fmt::format("all_reduce: rank {} is not a member of process group {}", rank_, group.id()));
  }
  const int sip = group.sip_of(member);
  if (tensor.sip() != sip) {
    throw std::invalid_argument(fmt::format("all_reduce: tensor '{}' is on sip{}, rank {} of the group drives sip{}",
                                            tensor.name(), tensor.sip(), rank_, sip));
  }
  const std::size_t number =
      group.enter(rank_, fmt::format("all_reduce({}, {} x {}, {})", to_string(op), tensor.shape().count(),
                                     to_string(tensor.dtype()), to_string(group.collective().scope())));
  CollectiveCall call;
  call.op = CollectiveOp::all_reduce;
  call.reduce_op = op;
  call.dtype = tensor.dtype();
  call.in = call.out = tensor.va();
  LaunchMessage::TensorArg argument{tensor.va(), shards_for_machine(tensor), tensor.shape()};
  ccl::Collective::Launch bound = group.collective().bind(member, std::move(call), argument, argument);
  const std::string& algorithm = group.collective().name();
  if (bound.targets.empty()) {
    auto state = std::make_shared<Handle::State>();
    state->kind = "collective";
    state->name = algorithm;
    state->rank = rank_;
    state->sip = sip;
    state->done = true;
    state->submitted = state->completed = now();
    runtime_.complete(state);
    return Handle(state);
  }
  LaunchMessage launch;
  launch.kernel = std::move(bound.kernel);
  launch.body = std::move(bound.body);
  launch.targets = std::move(bound.targets);
  launch.group = group.collective().group().id;
  launch.call = std::move(bound.call);
  launch.tensors.push_back(std::move(argument));
  return Handle(runtime_.submit(std::move(launch), rank_, sip, runtime_.stream_of(rank_, 0), "collective", algorithm,
                                {tensor}, &group, number));
}

Handle Context::all_reduce(const Tensor& tensor, ReduceOp op, const Group& group) {
  Handle handle = all_reduce_async(tensor, op, group);
  wait(handle);
  return handle;
}

}  // namespace kernbench
