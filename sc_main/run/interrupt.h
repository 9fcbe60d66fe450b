#pragma once
#include <atomic>
#include <deque>
#include <string>

namespace kernbench {

/// Ctrl-C and SIGTERM while it lives: the first one asks the run to end, the second one ends the process.
/// At most one at a time; what the handlers set and read is the process's one piece of mutable global state.
class Interrupt {
 public:
  /// `soon`: a run that has not heard within four seconds of processor time, as where code does not come back, is ended
  /// by the first one.
  enum class If { asked, soon };
  explicit Interrupt(If ends = If::asked);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;
  /// Whoever acts on the flag: the run ends in an orderly way, in its own time.
  void heard() const;
  /// Removed if the process is ended all the same. A few.
  void owns(std::string temporary) const;

 private:
  mutable std::deque<std::string> owned_;  ///< where the handler of the signal finds them
};

}  // namespace kernbench
