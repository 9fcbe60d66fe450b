#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "runtime/message_check.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

void check_usable(const Tensor& tensor, const std::string& who) {
  if (!tensor) throw std::invalid_argument(who + ": a tensor argument is an empty handle");
  if (!tensor.state().allocated) {
    throw std::logic_error(fmt::format("{}: tensor '{}' is used after it was freed", who, tensor.name()));
  }
}

const MachineMap& Context::map() const { return runtime_.map; }
void Context::begin_stretch(const std::string& name, bool timed) {
  if (rank_ == 0) runtime_.program.begin_stretch(name, now(), timed);
}

Ps Context::now() const {
  runtime_.dispatcher.synchronise();
  return runtime_.dispatcher.now();
}

void Context::set_device(int sip) {
  if (static_cast<std::size_t>(rank_) < runtime_.groups.rank_pes().size() && runtime_.program.running()) return;
  if (sip < 0 || sip >= runtime_.map.sips) {
    throw std::invalid_argument(fmt::format("set_device: sip is {}: give 0 to {}", sip, runtime_.map.sips - 1));
  }
  runtime_.program.set_device(rank_, sip);
}

void Context::set_part(CubeRange cubes, PeRange pes) { runtime_.tensors.set_part(rank_, cubes, pes); }

int Context::device() const { return std::max(runtime_.program.device(rank_), 0); }

std::uint16_t Context::new_stream() { return runtime_.messages.new_streams("new_stream", 1); }

Handle Context::submit(decltype(Message::body) body, std::uint16_t stream) {
  if (const std::string fault = fault_of(body, runtime_.map, device()); !fault.empty()) {
    throw std::invalid_argument("submit: " + fault);
  }
  runtime_.messages.note_reach(body, device());
  return Handle(
      runtime_.messages.submit(std::move(body), rank_, device(), runtime_.messages.stream_of(rank_, stream), {}, {}));
}

void Context::wait(const Handle& handle) {
  if (!handle) throw std::invalid_argument("wait: the handle is empty");
  runtime_.messages.await_done(handle.state_);
}

Handle Context::launch_bound(const std::string& name, const LaunchOptions& options, BoundKernel kernel,
                             const std::vector<Tensor>& tensors) {
  const std::string who = "launch '" + name + "'";
  if (kernel.arguments.size() > kMaxArgumentBytes) {
    throw std::invalid_argument(fmt::format("{}: {} B of arguments, a launch carries at most {}", who,
                                            kernel.arguments.size(), kMaxArgumentBytes));
  }
  for (const Tensor& tensor : tensors) check_usable(tensor, who);
  std::vector<PeCoord> targets = options.targets;
  const int sip = tensors.empty() ? (targets.empty() ? device() : targets.front().sip) : tensors.front().sip();
  LaunchMessage launch;
  launch.kernel = name;
  launch.entry = kernel.entry;
  launch.arguments = std::move(kernel.arguments);
  for (const Tensor& tensor : tensors) {
    if (tensor.sip() != sip) {
      throw std::invalid_argument(
          fmt::format("{}: tensor '{}' is on sip{}, tensor '{}' on sip{}: all must be on one SIP", who,
                      tensors.front().name(), sip, tensor.name(), tensor.sip()));
    }
    launch.tensors.push_back({tensor.va(), machine_shards(tensor.shards()), tensor.shape()});
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
  const std::uint16_t stream = runtime_.messages.stream_of(rank_, options.stream);
  if (options.cube_queues) launch.group = runtime_.groups.cube_queues(rank_, sip, stream).group;
  auto state = runtime_.messages.submit(std::move(launch), rank_, sip, stream, "launch", name, tensors);
  state->bound = options.bound;
  state->cube_queues = options.cube_queues;
  state->work = options.work;
  state->alone = options.alone || options.cube_queues || runtime_.groups.all().empty();
  return Handle(std::move(state));
}

void Context::prepare_cube_queues(int sip, std::uint16_t stream) {
  if (const auto state = runtime_.groups.cube_queues(rank_, sip, runtime_.messages.stream_of(rank_, stream)).installed)
    runtime_.messages.await(state);
}

}  // namespace kernbench
