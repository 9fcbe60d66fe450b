#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"

namespace kernbench {

namespace {
/// Uniform 64-bit numbers by position (splitmix64): no state, the same everywhere.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::vector<std::uint8_t> encode(const std::vector<double>& values, DType dtype) {
  std::vector<std::uint8_t> raw(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) store_element(raw.data(), dtype, i, values[i]);
  return raw;
}

std::vector<TensorShard> shards_for_machine(const Tensor& tensor) {
  std::vector<TensorShard> list;
  const std::vector<ShardSpec>& shards = tensor.shards();
  list.reserve(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const ShardSpec& shard = shards[i];
    list.push_back({tensor.state().owner(i), shard.offset_bytes, shard.nbytes, shard.region.rows, shard.region.cols});
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

int Context::world_size() const { return runtime_.nprocs; }
const MachineMap& Context::map() const { return runtime_.map; }
Ps Context::now() const {
  runtime_.dispatcher.synchronise();
  return runtime_.dispatcher.now();
}

void Context::set_device(int sip) {
  if (sip < 0 || sip >= runtime_.map.sips) {
    throw std::invalid_argument(fmt::format("set_device: sip is {}: give 0 to {}", sip, runtime_.map.sips - 1));
  }
  runtime_.devices[static_cast<std::size_t>(rank_)] = sip;
}

int Context::device() const {
  const int device = runtime_.devices[static_cast<std::size_t>(rank_)];
  if (device < 0 && runtime_.options.debug) {
    std::fprintf(stderr,
                 "kernbench: rank %d has no current device and uses sip0: set_device(rank) was probably forgotten\n",
                 rank_);
  }
  return std::max(device, 0);
}

Tensor Context::zeros(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  return runtime_.place(rank_, device(), shape, dtype, policy, name, true);
}

Tensor Context::empty(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  return runtime_.place(rank_, device(), shape, dtype, policy, name, false);
}

Tensor Context::from_bytes(const std::vector<std::uint8_t>& data, Shape shape, DType dtype, const DPPolicy& policy,
                           const std::string& name) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(shape.count(), 0)) * size_of(dtype);
  if (data.size() != bytes) {
    throw std::invalid_argument(fmt::format("tensor '{}': {} {} has {} bytes, the data {}", name, shape.str(),
                                            to_string(dtype), bytes, data.size()));
  }
  Tensor tensor = empty(shape, dtype, policy, name);
  runtime_.write_contents(tensor.state(), data.data());
  return tensor;
}

Tensor Context::from_host(const std::vector<double>& data, Shape shape, DType dtype, const DPPolicy& policy,
                          const std::string& name) {
  return from_bytes(encode(data, dtype), shape, dtype, policy, name);
}

Tensor Context::full(double value, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(shape.count(), 0));
  return from_host(std::vector<double>(count, value), shape, dtype, policy, name);
}

Tensor Context::randn(std::uint64_t seed, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  constexpr double kTwoPi = 6.283185307179586;
  std::vector<double> values(static_cast<std::size_t>(std::max<std::int64_t>(shape.count(), 0)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t a = mix(mix(seed) + 2 * i), b = mix(mix(seed) + 2 * i + 1);
    const double u = (static_cast<double>(a >> 11) + 1) * 0x1p-53, v = static_cast<double>(b >> 11) * 0x1p-53;
    values[i] = std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * v);  // Box-Muller
  }
  return from_host(values, shape, dtype, policy, name);
}

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
    launch.tensors.push_back({tensor.va(), shards_for_machine(tensor)});
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

Handle Context::all_reduce_async(const Tensor& tensor, ReduceOp op) {
  if (runtime_.group == nullptr) throw std::logic_error("all_reduce: init_process_group has not been called");
  check_usable(tensor, "all_reduce");
  ProcessGroup& group = *runtime_.group;
  const int sip = group.collective().group().sips[static_cast<std::size_t>(rank_)];
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
  std::vector<TensorShard> shards = shards_for_machine(tensor);
  ccl::Collective::Launch bound = group.collective().bind(rank_, std::move(call), shards);
  const std::string& algorithm = group.collective().name();
  if (bound.targets.empty()) {
    auto state = std::make_shared<Handle::State>();
    state->kind = "collective";
    state->name = algorithm;
    state->rank = rank_;
    state->sip = sip;
    state->done = true;
    state->submitted = state->completed = now();
    runtime_.trace.push_back({state->kind, state->name, rank_, sip, state->submitted, state->completed});
    return Handle(state);
  }
  LaunchMessage launch;
  launch.kernel = std::move(bound.kernel);
  launch.body = std::move(bound.body);
  launch.targets = std::move(bound.targets);
  launch.group = group.collective().group().id;
  launch.call = std::move(bound.call);
  launch.tensors.push_back({tensor.va(), std::move(shards)});
  auto state =
      runtime_.submit(std::move(launch), rank_, sip, runtime_.stream_of(rank_, 0), "collective", algorithm, {tensor});
  state->call = number;
  return Handle(state);
}

Handle Context::all_reduce(const Tensor& tensor, ReduceOp op) {
  Handle handle = all_reduce_async(tensor, op);
  wait(handle);
  return handle;
}

void Context::barrier() { runtime_.barrier(rank_, "barrier"); }

}  // namespace kernbench
