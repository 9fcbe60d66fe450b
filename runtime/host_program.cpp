#include "runtime/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/host_cycle.h"
#include "runtime/runtime_impl.h"
#include "tlm/sim/main_stack.h"

namespace kernbench {

namespace {
std::unique_ptr<Scheduling> make_scheduling(RuntimeImpl& runtime, SchedulingKind kind) {
  if (kind == SchedulingKind::rounds) return std::make_unique<RoundsScheduling>(runtime);
  return std::make_unique<ConcurrentScheduling>(runtime);
}
}  // namespace

HostProgram::HostProgram(RuntimeImpl& runtime, SchedulingKind kind)
    : runtime_(runtime), scheduler_(runtime.dispatcher, runtime.module), scheduling_(make_scheduling(runtime, kind)) {
  scheduler_.set_hooks([this] { scheduling_->all_yielded(); }, [this] { failed(); });
}

void HostProgram::begin(std::function<void(Context&)> fn, int count, bool single_driver) {
  check_open();
  if (sc_core::sc_get_status() == sc_core::SC_RUNNING) {
    throw std::logic_error("spawn: call it from the main context, not from a worker");
  }
  if (count < 1 || count > 0x7FFF) {
    throw std::invalid_argument(fmt::format("spawn: nprocs is {}: give 1 to 32767", count));
  }
  // Workers behind those of the group are the host's own, where ranks are SIPs: they take part in no collective.
  const bool own = runtime_.groups.rank_pes().empty() && count > runtime_.map.sips;
  if (const auto& groups = runtime_.groups.all(); !groups.empty()) {
    const int size = groups.front()->size();
    if (size != count && !(own && size == runtime_.map.sips)) {
      throw std::invalid_argument(fmt::format("spawn: nprocs is {}, the process group has {} ranks", count, size));
    }
  }
  scheduler_.spawn(count, [this](int rank) { run_worker(rank); });
  function_ = std::move(fn);
  nprocs_ = count;
  driver_ = single_driver;
  runtime_.messages.streams_of_ranks(count);
  const int main_device = devices_.front();
  devices_.assign(static_cast<std::size_t>(count), -1);
  contexts_.clear();
  for (int rank = 0; rank < count; ++rank) {
    if (!driver_ && rank < runtime_.map.sips) devices_[static_cast<std::size_t>(rank)] = rank;
    contexts_.emplace_back(runtime_, rank);
  }
  devices_of_main_ = main_device;
  runtime_.groups.begin_program(count);
  runtime_.tensors.forget_parts();
  in_program_ = true;
  faults_before_ = runtime_.messages.failed().size();
}

void HostProgram::run_worker(int rank) {
  runtime_.groups.enter(rank);
  function_(context(rank));
  runtime_.groups.left(rank);
}

void HostProgram::failed() {
  refused_ = "the machine cannot be used after a failed program: contents can be read, nothing can be submitted";
  scheduling_->clear();
  runtime_.groups.forget_barriers();
  runtime_.messages.drop_unsent();
}

void HostProgram::go(const std::shared_ptr<Handle::State>& state, const std::string& text) {
  if (sc_core::sc_get_status() == sc_core::SC_RUNNING) {
    throw std::logic_error((state ? state->describe() : "run") + ": only a worker or the main context can wait for it");
  }
  main_target_ = state;
  do {
    sc_core::sc_start();
    back_on_main_stack();
  } while (!runtime_.dispatcher.limit_reached() && !runtime_.dispatcher.stopped() && !(state && state->done) &&
           starved());
  main_target_.reset();
  if (state == nullptr) {
    end();
    return;
  }
  check_stopped();
  if (!state->done) throw Deadlock(deadlock_text(text));
}

bool HostProgram::starved() {
  if (scheduling_->starved()) return true;
  if (runtime_.port.stands_still()) return false;
  runtime_.port.machine_stands();  // host reads do not wait any more for what others submitted
  if (!scheduler_.any_satisfied()) return false;
  if (!scheduling_->starved()) scheduler_.resume_satisfied();
  return true;
}

void HostProgram::end() {
  if (!in_program_) return;
  in_program_ = false;
  program_devices_ = std::exchange(devices_, {devices_of_main_});
  if (!refused_.empty() || runtime_.dispatcher.limit_reached() || runtime_.dispatcher.stopped()) return;
  if (!blocked_ranks().empty()) {
    refused_ = "the machine cannot be used after a deadlock: contents can be read, nothing can be submitted";
  }
  const std::string left = runtime_.messages.leftovers().at_end();
  const auto unseen = [](const std::shared_ptr<Handle::State>& state) { return !state->fault_seen; };
  const auto& faulty = runtime_.messages.failed();
  if (std::any_of(faulty.begin(), faulty.end(), unseen)) return failed();
  if (refused_.empty() && faulty.size() == faults_before_) left_ = left;
  if (!left_.empty()) failed();
}

void HostProgram::check_stopped() const {
  if (runtime_.dispatcher.limit_reached()) throw RunStopped("the limit of simulated time was reached");
  if (runtime_.dispatcher.stopped()) throw RunStopped("the simulation was stopped");
}

std::string HostProgram::deadlock_text(const std::string& main) const {
  std::vector<Blocked> blocked;
  if (explain_) explain_(blocked);
  std::vector<BlockedRank> ranks = blocked_ranks();
  if (!main.empty())
    ranks.insert(ranks.begin(), {kMainContext, std::max(devices_.front(), 0), main + runtime_.groups.detail(0), {}});
  return deadlock_report(blocked, ranks, runtime_.dispatcher.latest(), host_cycle(runtime_));
}

std::vector<BlockedRank> HostProgram::blocked_ranks() const {
  std::vector<BlockedRank> list;
  for (const Scheduler::Worker& worker : scheduler_.workers()) {
    if (!worker.live()) continue;
    const auto at = static_cast<std::size_t>(worker.rank);
    const int device = (in_program_ ? devices_ : program_devices_)[at];
    BlockedRank blocked{worker.rank, std::max(device, 0), worker.waits_for + runtime_.groups.detail(worker.rank), {}};
    if (const std::vector<PeCoord>& pes = runtime_.groups.rank_pes(); at < pes.size()) {
      blocked.pe = pes[at];
      blocked.sip = pes[at].sip;
    }
    list.push_back(std::move(blocked));
  }
  // A worker that returned without waiting has not finished before its messages have.
  std::set<int> listed;
  for (const auto& [id, state] : runtime_.messages.pending()) {
    if (static_cast<std::size_t>(state->rank) >= scheduler_.workers().size()) continue;  // of an earlier program
    const Scheduler::Worker& worker = scheduler_.workers()[static_cast<std::size_t>(state->rank)];
    if (worker.live() || !listed.insert(state->rank).second) continue;
    list.push_back({state->rank, state->sip, state->describe() + " (not waited for)", {}});
  }
  std::sort(list.begin(), list.end(), [](const BlockedRank& a, const BlockedRank& b) { return a.rank < b.rank; });
  return list;
}

int HostProgram::device(int rank) const {
  const std::vector<PeCoord>& pes = runtime_.groups.rank_pes();
  const auto at = static_cast<std::size_t>(rank);
  return in_program_ && at < pes.size() ? pes[at].sip : devices_[at];
}

void HostProgram::check_open() const {
  if (!refused_.empty()) throw std::logic_error(refused_);
}

bool HostProgram::open() const {
  return refused_.empty() && !scheduler_.aborting() &&
         (main_context_ || sc_core::sc_get_status() == sc_core::SC_RUNNING);
}

Context& HostProgram::main() {
  if (main_resumes_ == nullptr) {
    const HierarchyScope scope(runtime_.module);
    main_resumes_ = std::make_unique<sc_core::sc_event>("main_resumes");
    sc_core::sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(main_resumes_.get());
    sc_core::sc_spawn([] { sc_core::sc_pause(); }, "main_context", &options);
    main_handle_ = std::make_unique<Context>(runtime_, 0);
  }
  if (sc_core::sc_get_status() == sc_core::SC_ELABORATION) sc_core::sc_start(sc_core::SC_ZERO_TIME);
  main_context_ = true;
  return *main_handle_;
}

void HostProgram::notify_main(const std::shared_ptr<Handle::State>& done) {
  if (done == main_target_.lock()) runtime_.dispatcher.notify_host(*main_resumes_);
}

void HostProgram::begin_stretch(const std::string& name, Ps now, bool timed) {
  if (!stretches_.empty() && stretches_.back().begin == now) stretches_.pop_back();
  stretches_.push_back({name, now, now, timed});
}

}  // namespace kernbench
