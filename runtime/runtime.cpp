#include "runtime/runtime.h"

#include <fmt/format.h>

#include <new>

#include "runtime/host_cycle.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

Runtime::Runtime(const sc_core::sc_module_name& name, const MachineMap& map, Dispatcher& dispatcher,
                 const RunOptions& options, Observer* observer)
    : sc_module(name), impl_(std::make_shared<RuntimeImpl>(*this, map, dispatcher, options, observer)) {
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    pcie.push_back(std::make_unique<tlm::tlm_initiator_socket<>>(fmt::format("pcie{}", sip).c_str()));
    pcie.back()->bind(impl_->port);
  }
}

Runtime::~Runtime() {
  impl_->program.refuse("the run has ended");  // what unwinds from here on submits nothing
  impl_->program.scheduler().end_workers();
}

void Runtime::program(std::function<void(Context&)> fn, int nprocs) {
  impl_->program.begin(std::move(fn), nprocs, false);
}

void Runtime::drive(std::function<void(Context&)> fn) {
  impl_->program.begin(std::move(fn), 1, true);
  run();
  check();
}

void Runtime::run() { impl_->program.go(nullptr); }
void Runtime::kill(int rank) { impl_->program.scheduler().kill(rank); }
void Runtime::set_explain(std::function<void(std::vector<Blocked>&)> explain) {
  impl_->program.set_explain(std::move(explain));
}

void Runtime::check_join(bool join) {
  if (!join) throw std::invalid_argument("spawn: join = false is not supported: workers always end before it returns");
}

Context& Runtime::context() {
  const int rank = impl_->program.scheduler().current();
  if (rank >= 0) return impl_->program.context(rank);
  if (!impl_->program.has_main()) throw std::logic_error("context: no worker is running: call it from a worker");
  return main();
}

void Runtime::check() const {
  impl_->program.check_stopped();
  rethrow_failures();
  if (!outcome().finished) throw Deadlock(impl_->program.deadlock_text());
}

Context& Runtime::main() { return impl_->program.main(); }

const HostAccessTable& Runtime::host_accesses() const { return impl_->messages.accesses(); }
std::uint64_t Runtime::free_bytes(PeCoord pe) const { return impl_->tensors.device().free_bytes(pe); }

std::uint64_t Runtime::most_used_bytes(PeCoord pe) const { return impl_->tensors.device().most_used(pe); }
std::uint64_t Runtime::switches() const { return impl_->program.scheduler().switches(); }
std::size_t Runtime::pending_worker_waits() const { return impl_->program.scheduling().queues().worker_waits; }
std::size_t Runtime::pending_collectives() const { return impl_->program.scheduling().queues().collectives; }

std::vector<BlockedRank> Runtime::blocked_ranks() const { return impl_->program.blocked_ranks(); }
std::vector<std::string> Runtime::host_cycle() const { return kernbench::host_cycle(*impl_); }

Runtime::Outcome Runtime::outcome() const {
  Outcome outcome;
  outcome.finished = true;
  for (const Scheduler::Worker& worker : impl_->program.scheduler().workers()) {
    if (worker.live()) outcome.finished = false;
    if (worker.error) outcome.failures.emplace(worker.rank, worker.error);
  }
  if (!outcome.failures.empty()) {
    outcome.finished = false;
    return outcome;
  }
  for (const BlockedRank& rank : impl_->program.blocked_ranks()) outcome.unfinished.push_back(rank.rank);
  if (!outcome.unfinished.empty()) outcome.finished = false;
  for (const auto& state : impl_->messages.failed()) {
    if (!state->fault_seen) {
      outcome.failures.emplace(state->rank, std::make_exception_ptr(DeviceFault(state->fault_text())));
    }
  }
  return outcome;
}

void Runtime::rethrow_failures() const {
  const Outcome result = outcome();
  if (result.failures.empty()) {
    if (!impl_->messages.beaten().empty()) throw std::logic_error(impl_->messages.beaten());
    if (!impl_->program.left().empty()) throw DeviceFault(impl_->program.left());
    return;
  }
  std::string ranks, reason;
  for (const auto& [rank, error] : result.failures) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  try {
    std::rethrow_exception(result.failures.begin()->second);
  } catch (const std::bad_alloc&) {
    reason = "this computer has not enough memory (std::bad_alloc)";
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
    reason = "an exception that is not a std::exception";
  }
  throw SpawnError(fmt::format("{} {} of {} failed; first reason: {}", result.failures.size() == 1 ? "rank" : "ranks",
                               ranks, impl_->program.nprocs(), reason),
                   result.failures);
}

const std::vector<HostTraceEntry>& Runtime::host_trace() const { return impl_->messages.trace(); }
std::vector<Stretch> Runtime::stretches(Ps end) const {
  std::vector<Stretch> named;
  const std::vector<Stretch>& all = impl_->program.stretches();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Ps until = i + 1 < all.size() ? all[i + 1].begin : end;
    if (!all[i].name.empty() && until > all[i].begin) named.push_back({all[i].name, all[i].begin, until, all[i].timed});
  }
  return named;
}
void Runtime::set_replay(const ReplayOptions& options) {
  if (impl_->options.data) throw std::invalid_argument("replay: repeated work has no contents: run with data off");
  if (options.sample < 1) throw std::invalid_argument("replay: sample is 0: give 1 or more");
  if (options.long_work.least < 1) throw std::invalid_argument("replay: long_work.least is 0: give 1 or more");
  impl_->replay = std::make_unique<Replay>(*impl_, options);
  impl_->program.scheduler().set_before_yield([replay = impl_->replay.get()] { replay->flush(); });
}
bool Runtime::replays() const { return impl_->replay != nullptr; }
ReplayReport Runtime::replay_report() const { return impl_->replay->report(); }
const HostProgress& Runtime::host_progress() const { return impl_->program.scheduler().progress(); }

}  // namespace kernbench
