#pragma once
#include <atomic>
#include <string>
#include <thread>

#include "sc_main/run/terminal.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {

/// A line on standard error that is redrawn while the simulation runs: simulated time, wall time, speed, and the time
/// left where --max-sim-time bounds the run. Only on a terminal. It reads what the dispatcher publishes and never
/// touches the simulation.
class Progress {
 public:
  Progress(const Terminal& terminal, const Dispatcher& dispatcher, bool wanted, Ps limit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void draw();

  const Dispatcher& dispatcher_;
  Ps limit_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// "1.234 us": simulated time for people.
std::string readable(Ps time);

}  // namespace kernbench
