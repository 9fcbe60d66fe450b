#include "runtime/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"

namespace kernbench {

Runtime::Runtime(const sc_core::sc_module_name& name, const MachineMap& map, Dispatcher& dispatcher,
                 const RunOptions& options, Observer*)
    : sc_module(name), impl_(std::make_shared<RuntimeImpl>(*this, map, dispatcher, options)) {
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    pcie.push_back(std::make_unique<tlm::tlm_initiator_socket<>>(fmt::format("pcie{}", sip).c_str()));
    pcie.back()->bind(*impl_);
  }
}

Runtime::~Runtime() { impl_->scheduler.end_workers(); }

void Runtime::spawn(std::function<void(Context&)> fn, int nprocs) {
  if (nprocs < 1 || nprocs > 0x7FFF) {
    throw std::invalid_argument(fmt::format("spawn: nprocs is {}: give 1 to 32767", nprocs));
  }
  if (impl_->group != nullptr && impl_->group->world_size() != nprocs) {
    throw std::invalid_argument(
        fmt::format("spawn: nprocs is {}, the process group has {} ranks", nprocs, impl_->group->world_size()));
  }
  RuntimeImpl& impl = *impl_;
  impl.program = std::move(fn);
  impl.nprocs = nprocs;
  impl.next_stream = static_cast<std::uint16_t>(nprocs);
  for (int rank = 0; rank < nprocs; ++rank) impl.devices.push_back(rank < impl.map.sips ? rank : -1);
  impl.scheduler.spawn(nprocs, [&impl](int rank) { impl.run_worker(rank); });
}

void Runtime::init_process_group(const ProcessGroupOptions& options) {
  if (impl_->group != nullptr) throw std::logic_error("init_process_group: the default group exists already");
  const int world_size = impl_->nprocs > 0 ? impl_->nprocs : impl_->map.sips;
  if (world_size > impl_->map.sips) {
    throw std::invalid_argument(
        fmt::format("init_process_group: {} ranks, but the machine has {} SIPs", world_size, impl_->map.sips));
  }
  impl_->group = std::make_unique<ProcessGroup>(options, impl_->map, world_size);
  if (impl_->map.ipcq_buffer != MemoryKind::hbm) return;  // kernels own TCM, and tensors leave SRAM alone
  for (const std::uint16_t sip : impl_->group->collective().group().sips) {
    for (const PeCoord pe : impl_->map.pes(sip)) impl_->memory.reserve(pe, impl_->group->ring_bytes(pe));
  }
}

const std::string& Runtime::algorithm() const {
  static const std::string kNone;
  return impl_->group == nullptr ? kNone : impl_->group->collective().name();
}

/// Neighbour tables first, on all SIPs; then the program.
void RuntimeImpl::run_worker(int rank) {
  if (group != nullptr) {
    SfrWriteMessage tables{group->collective().neighbours(rank)};
    const int sip = group->collective().group().sips[static_cast<std::size_t>(rank)];
    const auto state = submit(std::move(tables), rank, sip, stream_of(rank, 0), {}, "neighbour tables");
    await(state);
    throw_fault(*state);
    barrier(rank, "the other ranks' neighbour tables");
  }
  Context context(*this, rank);
  program(context);
}

void RuntimeImpl::barrier(int rank, const char* what) {
  const std::uint64_t number = barriers;
  if (++at_barrier == nprocs) {
    at_barrier = 0;
    ++barriers;
    for (int other = 0; other < nprocs; ++other) {
      if (other != rank) scheduler.make_ready(other);
    }
    return;
  }
  scheduler.wait(what, [&] { return barriers != number; });
}

std::vector<BlockedRank> RuntimeImpl::blocked_ranks() const {
  std::vector<BlockedRank> list;
  for (const Scheduler::Worker& worker : scheduler.workers()) {
    if (!worker.live()) continue;
    const int device = devices[static_cast<std::size_t>(worker.rank)];
    list.push_back({worker.rank, device < 0 ? 0 : device, worker.waits_for});
  }
  // A worker that returned without waiting has not finished before its messages have.
  std::set<int> listed;
  for (const auto& [id, state] : pending) {
    const Scheduler::Worker& worker = scheduler.workers()[static_cast<std::size_t>(state->rank)];
    if (worker.state != Scheduler::State::finished || !listed.insert(state->rank).second) continue;
    list.push_back({state->rank, state->sip, state->describe() + " (not waited for)"});
  }
  std::sort(list.begin(), list.end(), [](const BlockedRank& a, const BlockedRank& b) { return a.rank < b.rank; });
  return list;
}

std::vector<BlockedRank> Runtime::blocked_ranks() const { return impl_->blocked_ranks(); }

Runtime::Outcome Runtime::outcome() const {
  Outcome outcome;
  outcome.finished = true;
  for (const Scheduler::Worker& worker : impl_->scheduler.workers()) {
    if (worker.state != Scheduler::State::finished) outcome.finished = false;
    if (worker.error) outcome.failures.emplace(worker.rank, worker.error);
  }
  if (!outcome.failures.empty()) return outcome;
  for (const BlockedRank& rank : impl_->blocked_ranks()) outcome.unfinished.push_back(rank.rank);
  if (!outcome.unfinished.empty()) outcome.finished = false;
  for (const auto& state : impl_->failed) {
    if (!state->fault_seen) {
      outcome.failures.emplace(state->rank, std::make_exception_ptr(DeviceFault(state->fault_text())));
    }
  }
  return outcome;
}

void Runtime::rethrow_failures() const {
  const Outcome result = outcome();
  if (result.failures.empty()) return;
  std::string ranks, reason;
  for (const auto& [rank, error] : result.failures) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  try {
    std::rethrow_exception(result.failures.begin()->second);
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "an exception that is not a std::exception";
  }
  throw SpawnError(fmt::format("{} {} of {} failed; first reason: {}", result.failures.size() == 1 ? "rank" : "ranks",
                               ranks, impl_->nprocs, reason),
                   result.failures);
}

const std::vector<HostTraceEntry>& Runtime::host_trace() const { return impl_->trace; }
const std::atomic<int>& Runtime::running_rank() const { return impl_->scheduler.published_current(); }

}  // namespace kernbench
