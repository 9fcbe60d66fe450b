#include "runtime/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/runtime_impl.h"
#include "tlm/sim/hierarchy.h"
#include "tlm/sim/main_stack.h"

namespace kernbench {

Runtime::Runtime(const sc_core::sc_module_name& name, const MachineMap& map, Dispatcher& dispatcher,
                 const RunOptions& options, Observer* observer)
    : sc_module(name), impl_(std::make_shared<RuntimeImpl>(*this, map, dispatcher, options, observer)) {
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    pcie.push_back(std::make_unique<tlm::tlm_initiator_socket<>>(fmt::format("pcie{}", sip).c_str()));
    pcie.back()->bind(*impl_);
  }
}

Runtime::~Runtime() {
  impl_->refused = "the run has ended";  // what unwinds from here on submits nothing
  impl_->scheduler.end_workers();
}

void Runtime::program(std::function<void(Context&)> fn, int nprocs) { impl_->program(std::move(fn), nprocs, false); }

void Runtime::drive(std::function<void(Context&)> fn) {
  impl_->program(std::move(fn), 1, true);
  run();
  check();
}

void Runtime::run() { impl_->go(nullptr); }
void Runtime::kill(int rank) { impl_->scheduler.kill(rank); }
void Runtime::set_explain(std::function<void(std::vector<Blocked>&)> explain) { impl_->explain = std::move(explain); }

void Runtime::check_join(bool join) {
  if (!join) throw std::invalid_argument("spawn: join = false is not supported: workers always end before it returns");
}

Context& Runtime::context() {
  const int rank = impl_->scheduler.current();
  if (rank >= 0) return impl_->contexts[static_cast<std::size_t>(rank)];
  if (!impl_->main_context) throw std::logic_error("context: no worker is running: call it from a worker");
  return main();
}

void RuntimeImpl::program(std::function<void(Context&)> fn, int count, bool single_driver) {
  if (!refused.empty()) throw std::logic_error(refused);
  if (sc_core::sc_get_status() == sc_core::SC_RUNNING) {
    throw std::logic_error("spawn: call it from the main context, not from a worker");
  }
  if (count < 1 || count > 0x7FFF) {
    throw std::invalid_argument(fmt::format("spawn: nprocs is {}: give 1 to 32767", count));
  }
  // Workers behind those of the group are the host's own, where ranks are SIPs: they take part in no collective.
  const bool own = rank_pes.empty() && count > map.sips;
  if (!groups.empty() && groups.front()->size() != count && !(own && groups.front()->size() == map.sips)) {
    throw std::invalid_argument(
        fmt::format("spawn: nprocs is {}, the process group has {} ranks", count, groups.front()->size()));
  }
  scheduler.spawn(count, [this](int rank) { run_worker(rank); });
  function = std::move(fn);
  nprocs = count;
  driver = single_driver;
  next_stream = std::max(next_stream, static_cast<std::uint16_t>(count));
  const int main_device = devices.front();
  devices.assign(static_cast<std::size_t>(count), -1);
  contexts.clear();
  for (int rank = 0; rank < count; ++rank) {
    if (!driver && rank < map.sips) devices[static_cast<std::size_t>(rank)] = rank;
    contexts.emplace_back(*this, rank);
  }
  devices_of_main = main_device;
  joined.assign(static_cast<std::size_t>(count), 0);
  next_new_group.assign(static_cast<std::size_t>(count), 0);
  barriers.clear();
  new_groups.clear();
  parts.clear();
  for (const auto& group : groups) group->restart();
  in_program = true;
}

/// Neighbour tables first, on all SIPs, if the group was made beforehand and is to have them; then the program.
void RuntimeImpl::run_worker(int rank) {
  if (made_beforehand && !tables_installed) {
    if (group_options.install_at_once) await_tables(*groups.front(), 0, rank);
    barrier(rank, "the other ranks' neighbour tables");
    tables_installed = true;
  }
  function(contexts[static_cast<std::size_t>(rank)]);
  for (const auto& group : groups) {
    if (group->group_rank(rank) >= 0) group->left(rank);
  }
}

void RuntimeImpl::failed_program() {
  refused = "the machine cannot be used after a failed program: contents can be read, nothing can be submitted";
  scheduling->clear();
  barriers.clear();
  for (auto state = pending.begin(); state != pending.end();) {
    state = state->second->sent ? std::next(state) : pending.erase(state);  // the rest comes back
  }
}

void RuntimeImpl::go(const std::shared_ptr<Handle::State>& state, const std::string& text) {
  if (sc_core::sc_get_status() == sc_core::SC_RUNNING) {
    throw std::logic_error((state ? state->describe() : "run") + ": only a worker or the main context can wait for it");
  }
  main_target = state;
  do {
    sc_core::sc_start();
    back_on_main_stack();
  } while (!dispatcher.limit_reached() && !dispatcher.stopped() && !(state && state->done) && starved());
  main_target.reset();
  if (state == nullptr) {
    end_program();
    return;
  }
  check_stopped();
  if (!state->done) throw Deadlock(deadlock_text(text));
}

bool RuntimeImpl::starved() {
  if (scheduling->starved()) return true;
  if (stands_still()) return false;
  still_at = sends;  // host reads do not wait any more for what others submitted
  if (!scheduler.any_satisfied()) return false;
  if (!scheduling->starved()) scheduler.resume_satisfied();
  return true;
}

void RuntimeImpl::end_program() {
  if (!in_program) return;
  in_program = false;
  program_devices = std::exchange(devices, {devices_of_main});
  if (!refused.empty() || dispatcher.limit_reached() || dispatcher.stopped()) return;
  if (!blocked_ranks().empty()) {
    refused = "the machine cannot be used after a deadlock: contents can be read, nothing can be submitted";
  }
  const auto unseen = [](const std::shared_ptr<Handle::State>& state) { return !state->fault_seen; };
  if (std::any_of(failed.begin(), failed.end(), unseen)) failed_program();
}

void RuntimeImpl::check_stopped() const {
  if (dispatcher.limit_reached()) throw RunStopped("the limit of simulated time was reached");
  if (dispatcher.stopped()) throw RunStopped("the simulation was stopped");
}

std::string RuntimeImpl::deadlock_text(const std::string& main) const {
  std::vector<Blocked> blocked;
  if (explain) explain(blocked);
  std::vector<BlockedRank> ranks = blocked_ranks();
  if (!main.empty()) ranks.insert(ranks.begin(), {kMainContext, std::max(devices.front(), 0), main + detail(0), {}});
  return deadlock_report(blocked, ranks, dispatcher.latest());
}

void Runtime::check() const {
  impl_->check_stopped();
  rethrow_failures();
  if (!outcome().finished) throw Deadlock(impl_->deadlock_text());
}

Context& Runtime::main() {
  RuntimeImpl& impl = *impl_;
  if (impl.main_resumes == nullptr) {
    const HierarchyScope scope(*this);
    impl.main_resumes = std::make_unique<sc_core::sc_event>("main_resumes");
    sc_core::sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(impl.main_resumes.get());
    sc_core::sc_spawn([] { sc_core::sc_pause(); }, "main_context", &options);
    impl.main_handle = std::make_unique<Context>(impl, 0);
  }
  if (sc_core::sc_get_status() == sc_core::SC_ELABORATION) sc_core::sc_start(sc_core::SC_ZERO_TIME);
  impl.main_context = true;
  return *impl.main_handle;
}

const HostAccessTable& Runtime::host_accesses() const { return impl_->accesses; }
std::uint64_t Runtime::free_bytes(PeCoord pe) const { return impl_->memory.free_bytes(pe); }
std::uint64_t Runtime::switches() const { return impl_->scheduler.switches(); }
std::size_t Runtime::pending_worker_waits() const { return impl_->scheduling->queues().worker_waits; }
std::size_t Runtime::pending_collectives() const { return impl_->scheduling->queues().collectives; }

std::vector<BlockedRank> RuntimeImpl::blocked_ranks() const {
  std::vector<BlockedRank> list;
  for (const Scheduler::Worker& worker : scheduler.workers()) {
    if (!worker.live()) continue;
    const auto at = static_cast<std::size_t>(worker.rank);
    const int device = (in_program ? devices : program_devices)[at];
    BlockedRank blocked{worker.rank, std::max(device, 0), worker.waits_for + detail(worker.rank), {}};
    if (at < rank_pes.size()) {
      blocked.pe = rank_pes[at];
      blocked.sip = rank_pes[at].sip;
    }
    list.push_back(std::move(blocked));
  }
  // A worker that returned without waiting has not finished before its messages have.
  std::set<int> listed;
  for (const auto& [id, state] : pending) {
    if (static_cast<std::size_t>(state->rank) >= scheduler.workers().size()) continue;  // of an earlier program
    const Scheduler::Worker& worker = scheduler.workers()[static_cast<std::size_t>(state->rank)];
    if (worker.live() || !listed.insert(state->rank).second) continue;
    list.push_back({state->rank, state->sip, state->describe() + " (not waited for)", {}});
  }
  std::sort(list.begin(), list.end(), [](const BlockedRank& a, const BlockedRank& b) { return a.rank < b.rank; });
  return list;
}

std::vector<BlockedRank> Runtime::blocked_ranks() const { return impl_->blocked_ranks(); }

Runtime::Outcome Runtime::outcome() const {
  Outcome outcome;
  outcome.finished = true;
  for (const Scheduler::Worker& worker : impl_->scheduler.workers()) {
    if (worker.live()) outcome.finished = false;
    if (worker.error) outcome.failures.emplace(worker.rank, worker.error);
  }
  if (!outcome.failures.empty()) {
    outcome.finished = false;
    return outcome;
  }
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
  if (result.failures.empty()) {
    if (!impl_->beaten.empty()) throw std::logic_error(impl_->beaten);
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
                               ranks, impl_->nprocs, reason),
                   result.failures);
}

const std::vector<HostTraceEntry>& Runtime::host_trace() const { return impl_->trace; }
std::vector<Stretch> Runtime::stretches(Ps end) const {
  std::vector<Stretch> named;
  const std::vector<Stretch>& all = impl_->stretches;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Ps until = i + 1 < all.size() ? all[i + 1].begin : end;
    if (!all[i].name.empty() && until > all[i].begin) named.push_back({all[i].name, all[i].begin, until, all[i].timed});
  }
  return named;
}
void Runtime::set_replay(const ReplayOptions& options) {
  if (impl_->options.data) throw std::invalid_argument("replay: repeated work has no contents: run with data off");
  if (options.sample < 1) throw std::invalid_argument("replay: sample is 0: give 1 or more");
  impl_->replay = std::make_unique<Replay>(*impl_, options);
  impl_->scheduler.set_before_yield([replay = impl_->replay.get()] { replay->flush(); });
}
bool Runtime::replays() const { return impl_->replay != nullptr; }
ReplayReport Runtime::replay_report() const { return impl_->replay->report(); }
std::vector<double> Runtime::replay_counts() const { return impl_->replay->counts(); }
const HostProgress& Runtime::host_progress() const { return impl_->scheduler.progress(); }

}  // namespace kernbench
