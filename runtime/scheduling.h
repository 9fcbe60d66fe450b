#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/runtime.h"

namespace kernbench {

class CallOrder;

/// When messages go to the machine and when waiting workers resume: the one difference between the two schedulings.
/// Everything else (resume invariant, idempotent waits, barriers, failures) is common to both.
class Scheduling {
 public:
  using StatePtr = std::shared_ptr<Handle::State>;
  using Line = std::pair<int, std::uint16_t>;  ///< SIP, stream
  virtual ~Scheduling() = default;

  /// A message has been submitted: it goes to the machine now, or when the strategy sees fit.
  virtual void submitted(const StatePtr& state) = 0;
  /// Worker `rank` is going to wait for `state`, which is not done. Idempotent.
  virtual void waited_for(const StatePtr& state, int rank) = 0;
  /// A drain is to complete `state`, whether or not somebody waits for it.
  virtual void announced(const StatePtr& state) = 0;
  virtual void completed(const StatePtr& state) = 0;
  /// What was not ready (Handle::State::ready) may be now, by a worker's doing.
  virtual void readied() = 0;
  /// What worker `rank` waits for has come true by another worker's doing.
  virtual void satisfied(int rank) = 0;
  /// The running worker was the last to reach a barrier: it yields as the others have, so that all go on in the order
  /// of ranks, whoever came last.
  virtual void barrier_passed(const std::string& barrier) = 0;
  /// Every live worker has yielded or ended.
  virtual void all_yielded() = 0;
  /// The machine has nothing left to do. True: somebody can go on all the same, and the run continues.
  virtual bool starved() = 0;
  /// After a failure: forgets all that is queued.
  virtual void clear() = 0;

  /// Lengths of the queues, for tests and reports.
  struct Queues {
    std::size_t worker_waits = 0, collectives = 0;
  };
  virtual Queues queues() const = 0;
};

/// Every rank is its own host thread: messages go out at once, and a worker resumes when its own handle completes. Only
/// a collective whose queues are still being set up is held, and what stands behind it in its stream.
class ConcurrentScheduling : public Scheduling {
 public:
  explicit ConcurrentScheduling(RuntimeImpl& runtime) : runtime_(runtime) {}
  void submitted(const StatePtr& state) override;
  void waited_for(const StatePtr& state, int rank) override;
  void announced(const StatePtr&) override {}
  void completed(const StatePtr& state) override;
  void readied() override;
  void satisfied(int rank) override;
  void barrier_passed(const std::string& barrier) override;
  void all_yielded() override {}
  bool starved() override { return false; }
  void clear() override { held_.clear(); }
  Queues queues() const override { return {}; }

 private:
  RuntimeImpl& runtime_;
  std::map<Line, std::deque<StatePtr>> held_;  // no empty lines
};

/// Bulk-synchronous: each round gives every live worker one turn until it yields; then the queues drain, and all
/// workers whose condition holds resume at that same point.
///
/// Two queues, each strictly first in, first out by submission: waits of workers, and collectives. A drain empties the
/// drainable waits, then drives the drainable collectives one by one, and repeats that until nothing drainable is left.
/// A collective is kept from the machine until every member of its group has submitted it and the drain has come to it;
/// what stands behind it in a member's stream is kept with it. A wait is drainable once its message is at the machine.
class RoundsScheduling : public Scheduling {
 public:
  explicit RoundsScheduling(RuntimeImpl& runtime) : runtime_(runtime) {}
  void submitted(const StatePtr& state) override;
  void waited_for(const StatePtr& state, int rank) override;
  void announced(const StatePtr& state) override;
  void completed(const StatePtr& state) override;
  void readied() override {}       // the drain asks
  void satisfied(int) override {}  // resumes with the others
  void barrier_passed(const std::string& barrier) override;
  void all_yielded() override;
  bool starved() override;
  void clear() override;
  Queues queues() const override { return {waits_.size(), collectives_.size()}; }

 private:
  struct Collective {
    const CallOrder* order;
    std::size_t call;
    std::vector<StatePtr> members;
    bool released = false;
  };
  bool drain_waits();
  bool drain_collectives();
  bool drainable(const Collective& collective) const;
  void release(Collective& collective);

  RuntimeImpl& runtime_;
  std::deque<StatePtr> waits_;  // pending_worker_waits
  std::deque<Collective> collectives_;
  std::map<Line, std::deque<StatePtr>> held_;  // collectives and what stands behind them; no empty lines
  bool draining_ = false;                      // all have yielded, and the drain goes on when `target_` is done
  std::vector<StatePtr> target_;
};

}  // namespace kernbench
