#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <systemc>
#include <utility>

#include "tlm/sim/dispatcher.h"
#include "tlm/sim/stack_guard.h"

namespace kernbench {

/// What the host publishes for readers outside of the simulation.
struct HostProgress {
  std::atomic<int> running_rank{-1};    ///< whose host code runs; -1: none
  std::atomic<std::uint64_t> turns{0};  ///< that workers were given
  std::atomic<std::uint64_t> ended{0};  ///< workers, and what they did of the tool's own work (ToolWork)
  std::atomic<bool> tool_works{false};  ///< the host code that runs is the tool's own work
};

/// The workers: one SC_THREAD per rank, of which one runs at a time.
///
/// The kernel does not order threads that are due at one instant, so no thread is ever woken directly. Whoever becomes
/// ready is entered in a set ordered by rank; a baton passes to the lowest ready rank each time the running one yields
/// or ends. All of one instant's completions are in the set before the first worker resumes, because the dispatcher
/// stops only after it has executed the whole instant.
class Scheduler {
 public:
  /// The workers' threads live under `parent`.
  Scheduler(Dispatcher& dispatcher, sc_core::sc_module& parent) : dispatcher_(dispatcher), parent_(parent) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  enum class State : std::uint8_t { ready, running, waiting, finished, failed, ended };  ///< ended: by the clean-up
  struct Worker {
    explicit Worker(int rank);
    int rank;
    State state = State::ready;
    std::string waits_for;        ///< while waiting
    std::function<bool()> until;  ///< while waiting: its condition
    std::exception_ptr error;
    std::optional<StackGuard> guard;  ///< while its thread lives
    int tool_work = 0;                ///< ToolWork that lives
    sc_core::sc_event wake;
    sc_core::sc_process_handle process;
    bool live() const { return state == State::ready || state == State::running || state == State::waiting; }
  };

  /// Makes `count` workers that call body(rank); they start in rank order when the simulation goes on. The workers of
  /// an earlier call must have ended.
  void spawn(int count, std::function<void(int)> body);

  /// Gives the machine and the other workers turns until the condition holds; no turn if it holds already. Call it from
  /// a worker's thread only. `until` is tested after each turn; whoever makes it true calls make_ready(rank).
  void wait(const std::string& waits_for, std::function<bool()> until);
  /// As wait, but gives up this turn in any case.
  void give_up_turn(const std::string& waits_for, std::function<bool()> until);
  /// Gives the turn to the workers that are ready, and is ready itself: the lowest rank goes on.
  void line_up(const std::string& waits_for);

  /// The worker's condition may hold now. From a model's call-back or from another worker.
  void make_ready(int rank);
  /// Makes all waiting workers ready whose condition holds.
  void resume_satisfied();
  bool any_satisfied() const;
  /// Looks, when the present instant is over, who may run. From a model's call-back, or when the simulation stands.
  void poke();

  /// `all_yielded` is called when no worker runs or is ready; `failed` when one has thrown and the others have ended.
  void set_hooks(std::function<void()> all_yielded, std::function<void()> failed);
  /// Called in a worker's turn, before it ends or gives it up.
  void set_before_yield(std::function<void()> before_yield) { before_yield_ = std::move(before_yield); }

  /// A worker's host code is at work of the tool's own (ToolWork), until as many have ended as began.
  void begin_tool_work(int rank);
  void end_tool_work(int rank);

  /// Ends a worker where it stands: its stack unwinds. What it submitted goes on, and so do the others. From a SystemC
  /// process that is no worker.
  void kill(int rank);

  /// After the run: unwinds the stacks of workers that are blocked for good, which SystemC would leave as they are.
  /// From the main context; executes one delta cycle.
  void end_workers();

  /// Rank whose thread is running; -1: none (the hardware or the main context).
  int current() const { return progress_.running_rank.load(std::memory_order_relaxed); }
  const HostProgress& progress() const { return progress_; }  ///< for the watchdog's thread
  /// A worker failed: the others have been ended, or are being ended now.
  bool aborting() const { return aborting_; }
  std::uint64_t switches() const { return switches_; }  ///< times that a worker gave up its turn
  const std::deque<Worker>& workers() const { return workers_; }

 private:
  Worker& running();
  void set_running(int rank);
  void yield(Worker& worker, State state);
  void run(Worker& worker);
  void call_body(Worker& worker);
  void fail(Worker& worker, std::exception_ptr error);
  void end_live_workers();
  void pass_baton();
  void make_processes();

  static constexpr int kStackBytes = 512 * 1024;  ///< committed page by page, so generous costs nothing

  Dispatcher& dispatcher_;
  sc_core::sc_module& parent_;
  std::function<void(int)> body_;
  std::function<void()> all_yielded_, failed_, before_yield_;
  std::deque<Worker> workers_;
  std::set<int> ready_;
  HostProgress progress_;
  bool aborting_ = false;
  std::uint64_t switches_ = 0;
  std::unique_ptr<sc_core::sc_event> turn_, end_;
};

}  // namespace kernbench
