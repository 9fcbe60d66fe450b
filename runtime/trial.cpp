#include "runtime/trial.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <numeric>
#include <string>
#include <system_error>

namespace kernbench {
namespace {

/// Calls of a trial at most: the first, and some that find the queues as the one before has left them.   assumed: with
/// so many, refreshes of the HBM fall everywhere
constexpr std::size_t kCalls = 9;

/// Events of the simulation after which two calls are enough; and those after which fewer than kCalls are, that have
/// seen some refreshes.   assumed: two thirds of a second, a sixth
constexpr std::uint64_t kManyEvents = 1'000'000, kFewEvents = 250'000;

/// assumed: four of the HBM's intervals between refreshes (3.9 us), of which each falls on other calls
constexpr Ps kSomeRefreshes = 16'000'000;

/// How often a copy looks whether it has to end.   assumed: some calls are shorter, most longer
constexpr Ps kLook = 1'000'000;

/// What a copy tells while it is at work; else what a call took, ns.
constexpr double kAtWork = -1;

/// Exit codes of a copy: it has told what there was to tell, there is nothing to tell, it took too long. All others are
/// faults.
constexpr int kTold = 0, kNothing = 2, kTooLong = 3;

std::system_error error(int number, const std::string& what) {
  return {number, std::generic_category(), "auto: " + what};
}

/// Files stay open in the copy, and share their positions with the original: it loses them all.
void lose_files(int but) {
  const int nowhere = ::open("/dev/null", O_RDWR);
  DIR* const list = ::opendir("/proc/self/fd");
  if (nowhere < 0 || list == nullptr) ::_exit(1);
  for (const dirent* entry = ::readdir(list); entry != nullptr; entry = ::readdir(list)) {
    const int file = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && file != but && file != ::dirfd(list) && file != nowhere) ::dup2(nowhere, file);
  }
  ::closedir(list);
}

bool tell(int pipe, double what) { return ::write(pipe, &what, sizeof what) == sizeof what; }

/// What the call took in the copy; nothing: it ended without, or the run is to be stopped. The watchdog hears that it
/// gets on. Throws std::system_error if it failed.
ccl::Tried hear(int pipe, pid_t copy, RuntimeImpl& runtime) {
  double told = kAtWork;
  bool stop = false;
  for (ssize_t bytes = sizeof told; told == kAtWork && bytes != 0 && !stop;) {
    runtime.scheduler.copy_at_work();
    bytes = ::read(pipe, &told, sizeof told);
    stop = runtime.dispatcher.stop_wanted();
  }
  ::close(pipe);
  if (stop) ::kill(copy, SIGKILL);
  int status = 0;
  while (::waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  if (stop) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNothing) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kTooLong) return {false, {}, true};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kTold) return {false, told};
  throw error(
      ECANCELED,
      WIFSIGNALED(status)
          ? fmt::format("a copy of the process, made to try an algorithm, was ended by signal {}", WTERMSIG(status))
          : std::string("a copy of the process cannot try an algorithm: out of memory, or no /proc"));
}

}  // namespace

ccl::Tried Trial::run(RuntimeImpl& runtime, const CallOrder& order, std::size_t number, std::uint64_t most_events) {
  const std::string what = "the process cannot be copied to try algorithms; name one instead";
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw error(errno, what);
  const pid_t original = ::getpid(), process = ::fork();
  if (process < 0) {
    const int why = errno;
    for (const int end : ends) ::close(end);
    throw error(why, what);
  }
  if (process > 0) {
    ::close(ends[1]);
    return hear(ends[0], process, runtime);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != original) ::_exit(1);
  std::set_new_handler([] { ::_exit(1); });
  lose_files(ends[1]);
  runtime.trial = std::make_unique<Trial>(runtime, order, number, most_events, ends[1]);
  runtime.dispatcher.synchronise();
  runtime.trial->look();
  return {true, {}};
}

void Trial::completed(const Handle::State& state) {
  if (state.message != nullptr && !state.message->faults.empty()) ::_exit(kNothing);
  if (state.order != &order_ || state.call < number_) return;
  if (state.call == number_) choice_ = state.choice;
  if (choice_ == nullptr || state.choice != choice_) return;
  Call& call = calls_[state.call];
  if (state.message != nullptr) {
    const auto& launch = std::get<LaunchMessage>(state.message->body);
    call.start = std::min(call.start, launch.first_start);
    call.end = std::max(call.end, launch.last_end);
  }
  if (++call.ranks < order_.size()) return;
  taken_.push_back(call.end > call.start ? call.end - call.start : 0);
  calls_.erase(state.call);
  if (is_enough()) end();
}

bool Trial::is_enough() const {
  const std::uint64_t events = runtime_.dispatcher.executed() - begun_;
  if (taken_.size() >= kCalls || events > most_events_) return true;
  if (taken_.size() < 2) return false;
  return events > kManyEvents || (events > kFewEvents && runtime_.dispatcher.now() - start_ > kSomeRefreshes);
}

void Trial::look() {
  Dispatcher& dispatcher = runtime_.dispatcher;
  const auto counts = [this](const auto& entry) { return entry.second->choice == choice_; };
  const bool more = std::any_of(runtime_.pending.begin(), runtime_.pending.end(), counts);
  if (is_enough() || (!taken_.empty() && !more)) end();
  tell(pipe_, kAtWork);
  dispatcher.queue(0).host_at(dispatcher.now() + kLook, [this] { look(); });
}

void Trial::end() const {
  if (taken_.empty()) ::_exit(kTooLong);
  const auto first = taken_.begin() + (taken_.size() > 1 ? 1 : 0);
  const double ns = static_cast<double>(std::accumulate(first, taken_.end(), Ps{0})) /
                    static_cast<double>(taken_.end() - first) / 1e3;
  ::_exit(tell(pipe_, ns) ? kTold : 1);
}

}  // namespace kernbench
