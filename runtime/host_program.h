#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/scheduler.h"
#include "runtime/scheduling.h"

namespace kernbench {

/// The program: its workers, their devices, and who drives the simulation until when.
class HostProgram {
 public:
  HostProgram(RuntimeImpl& runtime, SchedulingKind kind);

  /// `single_driver`: one rank that was not made by spawn.
  void begin(std::function<void(Context&)> fn, int nprocs, bool single_driver);
  /// Lets the simulation run until nothing is left, or until `state` is done if it is given: `text` says what that is.
  void go(const std::shared_ptr<Handle::State>& state, const std::string& text = {});
  void check_stopped() const;  ///< throws RunStopped
  /// Nothing can be submitted from here on: what does throws std::logic_error.
  void refuse(const std::string& why) { refused_ = why; }
  bool refuses() const { return !refused_.empty(); }
  /// What its launches left in queues; empty: nothing.
  const std::string& left() const { return left_; }
  void check_open() const;  ///< throws std::logic_error if it refuses
  /// Messages may be submitted now.
  bool open() const;

  Scheduler& scheduler() { return scheduler_; }
  const Scheduler& scheduler() const { return scheduler_; }
  Scheduling& scheduling() { return *scheduling_; }
  bool running() const { return in_program_; }             ///< workers are declared, and the run has not ended
  int nprocs() const { return nprocs_; }                   ///< of the last program
  int ranks() const { return in_program_ ? nprocs_ : 1; }  ///< now
  /// The program is one rank that was not made by spawn: its waits never touch the queues of a scheduling.
  bool single_driver() const { return driver_ || !in_program_; }
  int device(int rank) const;  ///< SIP of the rank's PE, or its current device; -1: none set
  void set_device(int rank, int sip) { devices_[static_cast<std::size_t>(rank)] = sip; }

  Context& context(int rank) { return contexts_[static_cast<std::size_t>(rank)]; }
  /// The main context, as rank 0; made with the first call.
  Context& main();
  bool has_main() const { return main_context_; }  ///< somebody uses it
  /// The main context goes on if it waits for this.
  void notify_main(const std::shared_ptr<Handle::State>& done);

  /// Who asks the machine for the deadlock report.
  void set_explain(std::function<void(std::vector<Blocked>&)> explain) { explain_ = std::move(explain); }
  /// `main`: what the main context waits for, if it does.
  std::string deadlock_text(const std::string& main = {}) const;
  std::vector<BlockedRank> blocked_ranks() const;

  void begin_stretch(const std::string& name, Ps now, bool timed);
  /// The end of one is the beginning of the next; without a name: there is none.
  const std::vector<Stretch>& stretches() const { return stretches_; }

 private:
  void run_worker(int rank);
  void failed();
  void end();
  /// The machine has nothing left to do. True: somebody can go on all the same.
  bool starved();

  RuntimeImpl& runtime_;
  Scheduler scheduler_;
  const std::unique_ptr<Scheduling> scheduling_;
  std::function<void(Context&)> function_;
  int nprocs_ = 0;
  bool driver_ = false;
  bool in_program_ = false;
  int devices_of_main_ = -1;          // kept while a program runs
  std::vector<int> program_devices_;  // of the last program, after its end
  bool main_context_ = false;
  std::string refused_;  // why nothing can be submitted any more; empty: it can
  std::string left_;
  std::size_t faults_before_ = 0;  // of the programs before this one
  std::deque<Context> contexts_;   // by rank
  std::vector<int> devices_{-1};   // by rank; -1: none set. Outside a program: of the main context
  std::function<void(std::vector<Blocked>&)> explain_;
  std::unique_ptr<Context> main_handle_;
  std::weak_ptr<Handle::State> main_target_;  // what the main context waits for
  std::unique_ptr<sc_core::sc_event> main_resumes_;
  std::vector<Stretch> stretches_;
};

}  // namespace kernbench
