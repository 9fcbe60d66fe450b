#include "waves/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tlm/config/new_file.h"

namespace kernbench {
namespace fs = std::filesystem;

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path_, ignored);
  if (fs::is_directory(status)) {
    errno = EISDIR;
    fail("write");
  }
  if (!fs::exists(status) || fs::is_regular_file(status)) {
    const int created = create_beside(path_, temporary_);
    if (created < 0) {
      temporary_.clear();  // whatever has the name is not ours
      fail("write");
    }
    file_ = ::fdopen(created, "wb");
  } else {
    file_ = std::fopen(path_.c_str(), "wb");
  }
  if (file_ == nullptr) fail("write");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void OutputFile::write(std::string_view text) {
  if (file_ == nullptr) throw OutputError(failure_);
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail("write");
}

void OutputFile::flush() {
  if (file_ == nullptr) throw OutputError(failure_);
  if (std::fflush(file_) != 0) fail("write");
}

void OutputFile::commit() {
  if (file_ == nullptr) throw OutputError(failure_);
  if (std::fflush(file_) != 0) fail("write");
  if (std::fclose(std::exchange(file_, nullptr)) != 0) fail("write");
  if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename to");
}

void OutputFile::fail(const char* doing) {
  const int reason = errno;
  if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
  failure_ = fmt::format("cannot {} '{}': {}", doing, path_, std::strerror(reason));
  throw OutputError(failure_);
}

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace kernbench
