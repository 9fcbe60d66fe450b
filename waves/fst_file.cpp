#include "waves/fst_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "waves/output_file.h"

namespace kernbench {
namespace {
constexpr const char* kProgram = "vcd2fst";

bool is_on_path(const std::string& program) {
  const char* const value = std::getenv("PATH");
  const std::string path = value == nullptr ? "" : value;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    if (::access(((folder.empty() ? "." : folder) + "/" + program).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}
}  // namespace

bool is_fst(const std::string& path) { return has_ending(path, ".fst"); }

void check_vcd2fst(const std::string& path) {
  if (is_on_path(kProgram)) return;
  throw OutputError(fmt::format(
      "cannot write '{}': there is no {} on the PATH; install the package gtkwave, or give a name that ends in .vcd",
      path, kProgram));
}

namespace {
/// Beside `path`, for nobody else: vcd2fst writes files whose names can be foreseen, and through links.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& path) : name_(path + ".XXXXXX") {
    if (::mkdtemp(name_.data()) == nullptr)
      throw OutputError(fmt::format("cannot make a folder beside '{}': {}", path, std::strerror(errno)));
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  std::string file(const char* name) const { return name_ + "/" + name; }

 private:
  std::string name_;
};

void convert(const std::string& from, const std::string& to, const std::string& path) {
  const auto fail = [&path](const std::string& why) {
    throw OutputError(fmt::format("cannot write '{}': {} {}", path, kProgram, why));
  };
  std::array<std::string, 5> words{kProgram, "-v", from, "-f", to};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);  // --json - owns it
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, kProgram, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) fail(fmt::format("does not start: {}", std::strerror(failed)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(fmt::format("cannot be waited for: {}", std::strerror(errno)));
  }
  if (WIFSIGNALED(status)) fail(fmt::format("was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) fail(fmt::format("ended with exit code {}", WEXITSTATUS(status)));
}
}  // namespace

void run_vcd2fst(const std::string& from, const std::string& to, const std::string& path) {
  const PrivateFolder folder(path);
  const std::string made = folder.file("waves.fst");
  convert(from, made, path);
  struct stat mode {};
  const bool moved = ::stat(to.c_str(), &mode) == 0 && ::chmod(made.c_str(), mode.st_mode & 07777) == 0 &&
                     std::rename(made.c_str(), to.c_str()) == 0;
  if (!moved) throw OutputError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
}

}  // namespace kernbench
