#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/scheduler.h"
#include "tlm/sim/dispatcher.h"

namespace kernbench {

/// Watches, from a thread outside the simulation, that it gets on: reports when for `seconds` of wall clock no work has
/// come to its end on the machine (Activity::completed), no worker has ended, and the host was not at work of the
/// tool's own (ToolWork). Neither turns that workers pass around among themselves, as at barriers, nor simulated time
/// that passes are progress. Reads published atomics only.
class Watchdog {
 public:
  /// `expired` gets the report, once; the usual one prints it and leaves the process with exit code 4, since a thread
  /// that never yields cannot be ended otherwise.
  Watchdog(double seconds, const Dispatcher& dispatcher, const HostProgress& host,
           std::function<void(const std::string&)> expired = exit_with_report);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  static void exit_with_report(const std::string& report);

 private:
  void watch();
  /// Who runs; `turns`: how many ranks were given, and `instants` how many passed, while nothing came to its end.
  std::string who(std::uint64_t turns, std::uint64_t instants) const;

  const std::chrono::duration<double> period_;
  const Dispatcher& dispatcher_;
  const HostProgress& host_;
  std::function<void(const std::string&)> expired_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace kernbench
