#include "runtime/scheduler.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tlm/sim/main_stack.h"

namespace kernbench {

namespace {
/// The C++ runtime keeps the exceptions that are being handled per operating system thread, but workers share one. A
/// worker that yields inside a catch block takes its own along, so that others can throw and catch meanwhile.
class OwnExceptions {
 public:
  OwnExceptions() : globals_(reinterpret_cast<Globals*>(abi::__cxa_get_globals())), saved_(*globals_) {
    *globals_ = {};
  }
  ~OwnExceptions() {
    globals_->caught = saved_.caught;
    globals_->uncaught += saved_.uncaught;  // an unwinding that began in between counts too
  }
  OwnExceptions(const OwnExceptions&) = delete;
  OwnExceptions& operator=(const OwnExceptions&) = delete;

 private:
  struct Globals {  // Itanium C++ ABI, 2.2.2
    void* caught = nullptr;
    unsigned uncaught = 0;
  };
  Globals* globals_;
  Globals saved_;
};
}  // namespace

Scheduler::Worker::Worker(int rank) : rank(rank), wake(fmt::format("rank{}_wake", rank).c_str()) {}

void Scheduler::set_hooks(std::function<void()> all_yielded, std::function<void()> failed) {
  all_yielded_ = std::move(all_yielded);
  failed_ = std::move(failed);
}

void Scheduler::spawn(int count, std::function<void(int)> body) {
  if (std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.live(); })) {
    throw std::logic_error("spawn: the workers of an earlier program have not ended");
  }
  workers_.clear();
  body_ = std::move(body);
  const HierarchyScope scope(parent_);
  if (turn_ == nullptr) make_processes();
  for (int rank = 0; rank < count; ++rank) workers_.emplace_back(rank);
  for (Worker& worker : workers_) {
    sc_core::sc_spawn_options options;
    options.set_stack_size(kStackBytes);
    Worker* pointer = &worker;
    const std::string name = fmt::format("rank{}", worker.rank);
    worker.process = sc_core::sc_spawn([this, pointer] { run(*pointer); }, name.c_str(), &options);
    ready_.insert(worker.rank);
  }
  sc_core::sc_spawn_options first;
  first.spawn_method();
  // Runs once, in the first evaluation phase; the turn comes one delta later, when every thread waits for its own
  // event.
  sc_core::sc_spawn([this] { turn_->notify(sc_core::SC_ZERO_TIME); }, sc_core::sc_gen_unique_name("workers_start"),
                    &first);
}

void Scheduler::make_processes() {
  turn_ = std::make_unique<sc_core::sc_event>("workers_turn");
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(turn_.get());
  sc_core::sc_spawn(
      [this] {
        if (current() < 0) pass_baton();
      },
      "workers_schedule", &options);
  end_ = std::make_unique<sc_core::sc_event>("workers_end");
  sc_core::sc_spawn_options last;
  last.spawn_method();
  last.dont_initialize();
  last.set_sensitivity(end_.get());
  sc_core::sc_spawn([this] { end_live_workers(); }, "workers_reaper", &last);  // kill() works in a process only
}

Scheduler::Worker& Scheduler::running() {
  if (current() < 0) throw std::logic_error("only a worker can wait, and only while the simulation runs");
  return workers_[static_cast<std::size_t>(current())];
}

void Scheduler::set_running(int rank) {
  const bool tool_works = rank >= 0 && workers_[static_cast<std::size_t>(rank)].tool_work > 0;
  progress_.tool_works.store(tool_works, std::memory_order_relaxed);
  progress_.running_rank.store(rank, std::memory_order_relaxed);
}

void Scheduler::begin_tool_work(int rank) {
  ++workers_[static_cast<std::size_t>(rank)].tool_work;
  if (rank == current()) set_running(rank);
}

/// Also while the worker's stack unwinds, in nobody's turn.
void Scheduler::end_tool_work(int rank) {
  --workers_[static_cast<std::size_t>(rank)].tool_work;
  progress_.ended.fetch_add(1, std::memory_order_relaxed);
  if (rank == current()) set_running(rank);
}

void Scheduler::make_ready(int rank) {
  Worker& worker = workers_[static_cast<std::size_t>(rank)];
  if (worker.state != State::waiting) return;
  worker.state = State::ready;
  ready_.insert(rank);
  if (current() < 0) dispatcher_.notify_host(*turn_);
}

void Scheduler::resume_satisfied() {
  for (Worker& worker : workers_) {
    if (worker.state == State::waiting && worker.until()) make_ready(worker.rank);
  }
}

bool Scheduler::any_satisfied() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const Worker& worker) { return worker.state == State::waiting && worker.until(); });
}

void Scheduler::poke() { dispatcher_.notify_host(*turn_); }

void Scheduler::pass_baton() {
  if (ready_.empty() && !aborting_) all_yielded_();
  if (ready_.empty()) return;
  const int rank = *ready_.begin();
  ready_.erase(ready_.begin());
  set_running(rank);
  progress_.turns.fetch_add(1, std::memory_order_relaxed);
  workers_[static_cast<std::size_t>(rank)].wake.notify();
}

void Scheduler::wait(const std::string& waits_for, std::function<bool()> until) {
  running();  // throws where nobody can wait
  if (!until()) give_up_turn(waits_for, std::move(until));
}

void Scheduler::give_up_turn(const std::string& waits_for, std::function<bool()> until) {
  Worker& worker = running();
  worker.waits_for = waits_for;
  worker.until = std::move(until);
  do yield(worker, State::waiting);
  while (!worker.until());
  worker.until = nullptr;
}

void Scheduler::line_up(const std::string& waits_for) {
  Worker& worker = running();
  worker.waits_for = waits_for;
  ready_.insert(worker.rank);
  yield(worker, State::ready);
}

void Scheduler::yield(Worker& worker, State state) {
  if (before_yield_) before_yield_();
  worker.state = state;
  ++switches_;
  set_running(-1);
  pass_baton();
  if (current() != worker.rank) {  // otherwise its own turn comes at once
    const OwnExceptions own;
    const StackGuard::Left left(*worker.guard);
    sc_core::wait(worker.wake);
  }
  worker.state = State::running;
  dispatcher_.synchronise();
}

void Scheduler::run(Worker& worker) {
  std::exception_ptr error;
  try {
    sc_core::wait(worker.wake);
    worker.state = State::running;
    dispatcher_.synchronise();
    call_body(worker);
  } catch (const sc_core::sc_unwind_exception&) {
    throw;  // kill() and end_live_workers() have entered its state
  } catch (...) {
    error = std::current_exception();
  }
  if (before_yield_) before_yield_();
  if (aborting_) error = nullptr;  // it was being ended: whatever it made of that is no cause
  if (error) {
    fail(worker, error);
  } else {
    worker.state = State::finished;
  }
  progress_.ended.fetch_add(1, std::memory_order_relaxed);
  set_running(-1);
  pass_baton();
}

/// SystemC keeps the lowest page of a thread's stack from being touched. Where that stack lies is known from where this
/// stands, near its other end.
void Scheduler::call_body(Worker& worker) {
  constexpr std::size_t kBelow = std::size_t{256} << 10, kNearEnd = std::size_t{16} << 10;
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  worker.guard.emplace(here - kStackBytes - kBelow, here - kStackBytes + kNearEnd, std::size_t{kStackBytes},
                       StackOwner{nullptr, {}, worker.rank});
  const StackGuard::Entered entered(*worker.guard);
  body_(worker.rank);
}

void Scheduler::fail(Worker& worker, std::exception_ptr error) {
  worker.state = State::failed;
  worker.error = std::move(error);
  end_live_workers();
  failed_();
}

void Scheduler::end_workers() {
  const bool live = std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.live(); });
  if (!live || sc_core::sc_get_status() != sc_core::SC_PAUSED) return;
  end_->notify(sc_core::SC_ZERO_TIME);
  sc_core::sc_start();
  back_on_main_stack();
}

void Scheduler::end_live_workers() {
  aborting_ = true;
  ready_.clear();
  for (Worker& other : workers_) {
    if (!other.live()) continue;
    other.process.kill();
    other.state = State::ended;
  }
}

void Scheduler::kill(int rank) {
  Worker& worker = workers_.at(static_cast<std::size_t>(rank));
  if (!worker.live()) return;
  if (sc_core::sc_get_current_process_handle() == worker.process) {
    throw std::logic_error(fmt::format("kill: rank {} cannot end itself: return from its function", rank));
  }
  ready_.erase(rank);
  if (current() == rank) set_running(-1);  // it was about to resume
  worker.state = State::ended;
  worker.process.kill();
  turn_->notify(sc_core::SC_ZERO_TIME);
}

}  // namespace kernbench
