#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "ccl/choice.h"
#include "runtime/runtime_impl.h"

namespace kernbench {

/// In a copy of the process that tries an algorithm: waits for the call that is tried, and for a few like it that the
/// program makes right behind it, tells the original how long they took, and ends the copy.
class Trial {
 public:
  /// Copies the process (fork(2)): the machine, all that is under way on it, and the programs of its ranks. Returns in
  /// both: in the copy with a new `runtime.trial`; in the original when the copy has ended. What the copy writes goes
  /// nowhere. `order`, `number`: of the call, which its first rank is about to make. `most_events`: of the simulation,
  /// in which the call has to end. Throws std::system_error if there cannot be one, or it failed.
  static ccl::Tried run(RuntimeImpl& runtime, const CallOrder& order, std::size_t number, std::uint64_t most_events);

  Trial(RuntimeImpl& runtime, const CallOrder& order, std::size_t number, std::uint64_t most_events, int pipe)
      : runtime_(runtime),
        order_(order),
        number_(number),
        most_events_(most_events),
        pipe_(pipe),
        begun_(runtime.dispatcher.executed()),
        start_(runtime.dispatcher.now()) {}

  /// Of any collective, on one rank.
  void completed(const Handle::State& state);
  /// Tells what there is to tell.
  [[noreturn]] void end() const;

 private:
  struct Call {
    int ranks = 0;  ///< on which it has ended
    Ps start = kNever, end = 0;
  };
  bool is_enough() const;
  /// Again and again: ends the copy when there is nothing to wait for, or no time.
  void look();

  RuntimeImpl& runtime_;
  const CallOrder& order_;
  const std::size_t number_;
  const std::uint64_t most_events_;
  const int pipe_;
  const std::uint64_t begun_;            ///< events of the simulation by then
  const Ps start_;                       ///< of the copy
  const ccl::Choice* choice_ = nullptr;  ///< of the calls that count
  std::map<std::size_t, Call> calls_;    ///< under way, by number
  std::vector<Ps> taken_;                ///< by those that have ended
};

}  // namespace kernbench
