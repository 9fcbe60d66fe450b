#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace kernbench::process {

/// What a process may take; 0: as much as it needs.
struct Limits {
  double time_s = 0;               ///< by the wall clock
  std::uint64_t memory_bytes = 0;  ///< resident
};

/// How a process ended that was to answer.
struct Ending {
  enum class Stopped : std::uint8_t { no, time, memory };
  std::string answer;  ///< all that it sent
  std::string errors;  ///< end of its standard error
  int status = 0;      ///< of waitpid
  Stopped stopped = Stopped::no;
  double wall_s = 0, cpu_s = 0;
  std::uint64_t peak_rss_bytes = 0;
};

/// Processes forked from this one, at most `jobs` at a time; those that are left are ended with it.
///
/// A child answers over a pipe; its standard output is dropped, its standard error kept. It ends when this process
/// does, whatever ends that. REQUIRES: this process has one thread, and no SystemC elaboration has begun.
class Pool {
 public:
  Pool(unsigned jobs, const Limits& limits) : jobs_(jobs), limits_(limits) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::size_t running() const { return children_.size(); }
  bool full() const { return children_.size() >= jobs_; }
  /// Forks; `work` makes the answer in the child. Throws std::system_error.
  void start(std::size_t id, const std::function<std::string()>& work);
  /// Waits for news for at most `milliseconds`, and ends children that are over a limit. Whether any child ended.
  bool wait(int milliseconds, const std::function<void(std::size_t id, Ending)>& ended);

 private:
  struct Child {
    pid_t process = 0;
    int pipe = -1, errors = -1;
    std::chrono::steady_clock::time_point start;
    Ending::Stopped stopped = Ending::Stopped::no;
    std::string received;
  };
  void check_limits();
  Ending reap(Child& child);

  unsigned jobs_;
  Limits limits_;
  std::map<std::size_t, Child> children_;
};

}  // namespace kernbench::process
