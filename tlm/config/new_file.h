#pragma once
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>
#include <string>

namespace kernbench {

/// Opens a new file beside `path`, to be renamed to it when it is whole. Its name cannot be foreseen and it follows no
/// link; the mode is that of the file it will replace, or a new file's. Returns its descriptor, or -1 and errno.
inline int create_beside(const std::string& path, std::string& temporary) {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary = fmt::format("{}.{:08x}.tmp", path, random());
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    struct stat old {};
    if (file >= 0 && ::stat(path.c_str(), &old) == 0) static_cast<void>(::fchmod(file, old.st_mode & 07777));
    return file;
  }
  return -1;
}

}  // namespace kernbench
