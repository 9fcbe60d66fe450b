#include "sc_main/process/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sc_main/process/cpu_time.h"
#include "tlm/config/nearest.h"
#include "waves/output_file.h"

namespace kernbench::process {
namespace {
/// What a program wrote into a file in memory.
class Capture {
 public:
  explicit Capture(const char* name) : file_(::memfd_create(name, MFD_CLOEXEC)) {}
  ~Capture() { ::close(file_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  int file() const { return file_; }
  std::string text() const {
    const off_t size = ::lseek(file_, 0, SEEK_END);
    std::string text(static_cast<std::size_t>(size > 0 ? size : 0), '\0');
    const ssize_t got = ::pread(file_, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  int file_;
};
}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words) {
  const Capture out("stdout"), err("stderr");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.file(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.file(), STDERR_FILENO);
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t process = 0;
  const int failed = ::posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw OutputError(fmt::format("cannot run '{}': {}", words.front(), std::strerror(failed)));
  int status = 0;
  rusage usage{};
  while (::wait4(process, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.text(), err.text(),
          seconds(usage.ru_utime), static_cast<double>(usage.ru_maxrss) * 1024};
}

std::string output_of(const std::vector<std::string>& words) {
  ProgramEnd end = run_program(words);
  if (end.code != 0) {
    while (!end.err.empty() && end.err.back() == '\n') end.err.pop_back();
    throw OutputError(fmt::format("'{}' ended with exit code {}: {}", join(words, " "), end.code, end.err));
  }
  return end.out;
}

std::string own_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace kernbench::process
