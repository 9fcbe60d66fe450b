#pragma once
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace kernbench {

/// Memory does not fit: pool, what was asked, what is free, the largest free block, the biggest tensors in it.
class OutOfDeviceMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The memory of this computer does not suffice for what a program wants: what is needed, what there is, what helps.
class HostShortage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault of the simulated machine, raised in the worker that waits for the launch.
class DeviceFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Ranks of a group do not call the same collective: names group, ranks, and both calls.
class CollectiveMismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Nothing is left to happen, and a rank or the main context still waits; the text is the deadlock report.
class Deadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The simulation was ended from outside: by the limit of simulated time, or by whoever set the dispatcher's stop flag.
class RunStopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Workers threw: rank -> original exception. Only ranks that failed by their own code are in the map.
class SpawnError : public std::runtime_error {
 public:
  /// `what` names the ranks and the first reason.
  SpawnError(const std::string& what, std::map<int, std::exception_ptr> failures)
      : std::runtime_error(what), failures(std::move(failures)) {}
  std::map<int, std::exception_ptr> failures;  ///< by rank
};

}  // namespace kernbench
