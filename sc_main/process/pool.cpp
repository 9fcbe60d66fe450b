#include "sc_main/process/pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>
#include <vector>

#include "sc_main/process/cpu_time.h"

namespace kernbench::process {
namespace {
using std::chrono::steady_clock;

constexpr int kLimitPollMs = 20;            ///< how often limits are looked at
constexpr std::size_t kMostErrors = 4'096;  ///< of standard error that is kept

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

void send_all(int pipe, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(pipe, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    at += static_cast<std::size_t>(written);
  }
}

/// The child's life. Ends without the parent's destructors and buffers.
[[noreturn]] void serve(const std::function<std::string()>& work, int pipe, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before we could ask
  ::setpgid(0, 0);                        // Ctrl-C is the parent's business
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  send_all(pipe, work());
  std::fflush(stderr);
  ::_exit(0);
}

/// Last part of a file.
std::string tail_of(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size <= 0) return {};
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(size), kMostErrors), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::uint64_t resident_bytes(pid_t process) {
  std::FILE* file = std::fopen(fmt::format("/proc/{}/statm", process).c_str(), "r");
  if (file == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const int got = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return got == 2 ? std::uint64_t{resident} * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}
}  // namespace

Pool::~Pool() {
  for (auto& [id, child] : children_) {
    ::kill(-child.process, SIGKILL);
    ::kill(child.process, SIGKILL);
    reap(child);
  }
}

void Pool::start(std::size_t id, const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const int errors = ::memfd_create("stderr", MFD_CLOEXEC);
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t parent = ::getpid(), process = ::fork();
  if (process < 0) {
    const int reason = errno;
    for (const int file : {ends[0], ends[1], errors}) ::close(file);
    throw std::system_error(reason, std::generic_category(), "fork");
  }
  if (process == 0) {
    ::close(ends[0]);
    for (const auto& [other, child] : children_) {
      ::close(child.pipe);
      ::close(child.errors);
    }
    serve(work, ends[1], errors, parent);
  }
  ::close(ends[1]);
  children_[id] = {process, ends[0], errors, steady_clock::now(), Ending::Stopped::no, {}};
}

void Pool::check_limits() {
  for (auto& [id, child] : children_) {
    if (child.stopped != Ending::Stopped::no) continue;
    if (limits_.time_s > 0 && seconds_since(child.start) > limits_.time_s) child.stopped = Ending::Stopped::time;
    if (limits_.memory_bytes > 0 && resident_bytes(child.process) > limits_.memory_bytes)
      child.stopped = Ending::Stopped::memory;
    if (child.stopped == Ending::Stopped::no) continue;
    ::kill(-child.process, SIGKILL);
    ::kill(child.process, SIGKILL);
  }
}

Ending Pool::reap(Child& child) {
  Ending ending;
  rusage usage{};
  while (::wait4(child.process, &ending.status, 0, &usage) < 0 && errno == EINTR) {
  }
  ending.answer = std::move(child.received);
  ending.errors = tail_of(child.errors);
  ending.stopped = child.stopped;
  ending.wall_s = seconds_since(child.start);
  ending.cpu_s = cpu_s(usage);
  ending.peak_rss_bytes = std::uint64_t{1024} * static_cast<std::uint64_t>(usage.ru_maxrss);
  ::close(child.pipe);
  ::close(child.errors);
  return ending;
}

bool Pool::wait(int milliseconds, const std::function<void(std::size_t, Ending)>& ended) {
  if (limits_.time_s > 0 || limits_.memory_bytes > 0) {
    check_limits();
    milliseconds = std::min(milliseconds, kLimitPollMs);
  }
  std::vector<pollfd> pipes;
  std::vector<std::size_t> ids;
  for (const auto& [id, child] : children_) {
    pipes.push_back({child.pipe, POLLIN, 0});
    ids.push_back(id);
  }
  if (::poll(pipes.data(), pipes.size(), milliseconds) <= 0) return false;  // interrupted: the caller looks at its flag
  bool any = false;
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    if (pipes[i].revents == 0) continue;
    Child& child = children_[ids[i]];
    char buffer[65536];
    const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
    if (got > 0) child.received.append(buffer, static_cast<std::size_t>(got));
    if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) continue;
    Ending ending = reap(child);
    children_.erase(ids[i]);
    any = true;
    ended(ids[i], std::move(ending));
  }
  return any;
}

}  // namespace kernbench::process
