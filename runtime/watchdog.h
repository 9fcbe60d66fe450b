#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tlm/sim/dispatcher.h"

namespace kernbench {

/// Watches, from a thread outside the simulation, that it gets on: reports when neither simulated time nor the running
/// process has changed for `seconds` of wall clock. Reads published atomics only.
class Watchdog {
 public:
  /// `running_rank`: rank whose host code runs, -1 for the hardware. `expired` gets the report, once; the usual one
  /// prints it and leaves the process with exit code 4, since a thread that never yields cannot be ended otherwise.
  Watchdog(double seconds, const Dispatcher& dispatcher, const std::atomic<int>& running_rank,
           std::function<void(const std::string&)> expired = exit_with_report);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  static void exit_with_report(const std::string& report);

 private:
  void watch();

  const std::chrono::duration<double> period_;
  const Dispatcher& dispatcher_;
  const std::atomic<int>& running_rank_;
  std::function<void(const std::string&)> expired_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kernbench
