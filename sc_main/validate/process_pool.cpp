#include "sc_main/validate/process_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>

#include "tlm/config/problems.h"

namespace kernbench::validate {
namespace {
using Run = std::function<std::vector<double>()>;

/// First byte of what a child sends; then figures or a text.
enum class Answer : char { figures = 'f', refused = 'r', failed = 'e' };

void send(int pipe, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(pipe, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

void send(int pipe, Answer answer, const std::string& text) {
  send(pipe, &answer, 1);
  send(pipe, text.data(), text.size());
}

/// The child's life. Ends without the parent's destructors and buffers.
[[noreturn]] void serve(const Run& run, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  try {
    const std::vector<double> figures = run();
    const Answer answer = Answer::figures;
    send(pipe, &answer, 1);
    send(pipe, figures.data(), figures.size() * sizeof(double));
  } catch (const ConfigError& error) {
    send(pipe, Answer::refused, error.what());
  } catch (const std::invalid_argument& error) {
    send(pipe, Answer::refused, error.what());
  } catch (const std::exception& error) {
    send(pipe, Answer::failed, error.what());
  } catch (...) {
    send(pipe, Answer::failed, "unknown exception");
  }
  std::fflush(stderr);
  ::_exit(0);
}

/// The processes under way; those that are left are ended with it.
class Children {
 public:
  struct Child {
    pid_t process = 0;
    int pipe = -1;
    std::string received;
  };
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const auto& [index, child] : running_) {
      ::kill(child.process, SIGKILL);
      ::close(child.pipe);
      ::waitpid(child.process, nullptr, 0);
    }
  }

  std::size_t size() const { return running_.size(); }

  void start(std::size_t index, const Run& run) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t process = ::fork();
    if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (process == 0) {
      ::close(ends[0]);
      for (const auto& [other, child] : running_) ::close(child.pipe);
      serve(run, ends[1]);
    }
    ::close(ends[1]);
    running_[index] = {process, ends[0], {}};
  }

  /// Waits a little for news. `finished(index, text)` for each child that has sent everything.
  template <class F>
  void wait(const F& finished) {
    std::vector<pollfd> pipes;
    std::vector<std::size_t> indices;
    for (const auto& [index, child] : running_) {
      pipes.push_back({child.pipe, POLLIN, 0});
      indices.push_back(index);
    }
    if (::poll(pipes.data(), pipes.size(), 200) <= 0) return;  // interrupted: the caller looks at its flag
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].revents == 0) continue;
      Child& child = running_[indices[i]];
      char buffer[65536];
      const ssize_t got = ::read(child.pipe, buffer, sizeof buffer);
      if (got > 0) child.received.append(buffer, static_cast<std::size_t>(got));
      if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) continue;
      int status = 0;
      ::waitpid(child.process, &status, 0);
      ::close(child.pipe);
      const std::string text = std::move(child.received);
      running_.erase(indices[i]);
      finished(indices[i], text, status);
    }
  }

 private:
  std::map<std::size_t, Child> running_;
};

std::vector<double> figures_of(const std::string& text, int status) {
  if (WIFSIGNALED(status)) throw std::runtime_error(fmt::format("a run ended by signal {}", WTERMSIG(status)));
  if (text.empty() || WEXITSTATUS(status) != 0) throw std::runtime_error("a run ended without a result");
  const std::string rest = text.substr(1);
  switch (static_cast<Answer>(text.front())) {
    case Answer::refused:
      throw std::invalid_argument(rest);
    case Answer::failed:
      throw std::runtime_error(rest);
    case Answer::figures:
      break;
  }
  std::vector<double> figures(rest.size() / sizeof(double));
  if (!figures.empty()) std::memcpy(figures.data(), rest.data(), figures.size() * sizeof(double));
  return figures;
}
}  // namespace

std::vector<std::vector<double>> run_forked(const std::vector<Run>& runs, unsigned jobs, const std::atomic<bool>& stop,
                                            const std::function<void(std::size_t)>& done) {
  std::vector<std::vector<double>> results(runs.size());
  std::vector<bool> ended(runs.size());
  Children children;
  std::size_t next = 0, finished = 0;
  while (finished < runs.size()) {
    if (stop.load(std::memory_order_relaxed)) throw Interrupted{std::move(results), std::move(ended)};
    while (next < runs.size() && children.size() < jobs) {
      children.start(next, runs[next]);
      ++next;
    }
    children.wait([&](std::size_t index, const std::string& text, int status) {
      if (stop.load(std::memory_order_relaxed)) return;  // the signal may have been the end of it, too
      results[index] = figures_of(text, status);
      ended[index] = true;
      ++finished;
      if (done) done(finished);
    });
  }
  return results;
}

}  // namespace kernbench::validate
