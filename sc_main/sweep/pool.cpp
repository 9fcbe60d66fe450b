#include "sc_main/sweep/pool.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>
#include <vector>

#include "sc_main/cli/exit_code.h"
#include "tlm/config/units.h"

namespace kernbench::sweep {
namespace {
using std::chrono::steady_clock;

constexpr int kLimitPollMs = 20;            ///< how often limits are looked at
constexpr std::size_t kMostErrors = 4'096;  ///< of standard error that is kept

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}
double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
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

/// A signal that a program earns by its own doing; others come from outside.
bool own_fault(int signal) {
  for (const int own :
       {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGXFSZ, SIGXCPU, SIGPIPE, SIGALRM}) {
    if (signal == own) return true;
  }
  return false;
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
  ending.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
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

Record refused_record(const std::string& key, int exit_code, const std::string& error) {
  Record record;
  record.key = key;
  record.status = Status::failed;
  record.exit_code = exit_code;
  record.error = error;
  record.finished = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return record;
}

Record record_of(const std::string& key, const Ending& ending, const Limits& limits) {
  Record record = refused_record(key, 0, {});
  record.wall_s = ending.wall_s;
  record.cpu_s = ending.cpu_s;
  record.peak_rss_bytes = ending.peak_rss_bytes;
  const auto set = [&](Status status, int code, std::string error) {
    record.status = status;
    record.exit_code = code;
    record.error = std::move(error);
  };
  if (ending.stopped == Ending::Stopped::time) {
    set(Status::failed, static_cast<int>(ExitCode::limit),
        fmt::format("the point's time limit of {:g} s was reached", limits.time_s));
  } else if (ending.stopped == Ending::Stopped::memory) {
    set(Status::failed, static_cast<int>(ExitCode::environment),
        fmt::format("the point's memory limit of {} was reached",
                    format_quantity(limits.memory_bytes, Dimension::bytes)));
  } else if (WIFSIGNALED(ending.status)) {
    const int signal = WTERMSIG(ending.status);
    set(own_fault(signal) ? Status::failed : Status::lost, 128 + signal,
        fmt::format("ended by signal {} ({})", signal, ::strsignal(signal)));
  } else if (WEXITSTATUS(ending.status) != 0) {
    const std::string& text = ending.errors;
    set(Status::failed, WEXITSTATUS(ending.status),
        text.empty() ? fmt::format("ended with exit code {} and no answer", WEXITSTATUS(ending.status)) : text);
  } else {
    const auto answer = nlohmann::ordered_json::parse(ending.answer, nullptr, false);
    if (answer.is_discarded() || !answer.is_object()) {
      set(Status::failed, static_cast<int>(ExitCode::internal), "ended without an answer");
    } else {
      const int code = answer.value("exit_code", static_cast<int>(ExitCode::internal));
      // What this computer lacked says nothing of the point, which stays open.
      const bool lost =
          code == static_cast<int>(ExitCode::interrupted) || code == static_cast<int>(ExitCode::environment);
      set(code == 0 ? Status::ok : lost ? Status::lost : Status::failed, code, answer.value("error", std::string()));
      record.result = answer.value("result", nlohmann::ordered_json());
      record.model_cpu_s = answer.value("model_cpu_s", 0.0);
    }
  }
  return record;
}

}  // namespace kernbench::sweep
