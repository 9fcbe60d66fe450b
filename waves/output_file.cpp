#include "waves/output_file.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tlm/config/new_file.h"

namespace kernbench {
namespace fs = std::filesystem;

struct OutputFile::Deflate {
  /// Level 1: a third of the time of the usual 6, for a trace that is a third larger.
  Deflate() { ok = deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK; }
  ~Deflate() { deflateEnd(&stream); }
  z_stream stream{};
  bool ok = false;
};

OutputFile::OutputFile(std::string path, bool gzip) : path_(std::move(path)) {
  if (gzip) deflate_ = std::make_unique<Deflate>();
  if (gzip && !deflate_->ok) throw OutputError(fmt::format("cannot compress '{}'", path_));
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
  deflate_ ? compress(text, false) : put(text);
}

void OutputFile::put(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("write");
}

void OutputFile::compress(std::string_view text, bool last) {
  std::array<char, 65536> out;
  z_stream& stream = deflate_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = out.size();
    deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    put({out.data(), out.size() - stream.avail_out});
  } while (stream.avail_out == 0);
}

void OutputFile::flush() {
  if (file_ == nullptr) throw OutputError(failure_);
  if (std::fflush(file_) != 0) fail("write");
}

void OutputFile::commit() {
  if (file_ == nullptr) throw OutputError(failure_);
  if (deflate_) compress({}, true);
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

bool has_ending(const std::string& path, std::string_view ending) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return path.size() > ending.size() &&
         std::equal(path.end() - static_cast<std::ptrdiff_t>(ending.size()), path.end(), ending.begin(), same);
}

bool is_gzip(const std::string& path) { return has_ending(path, ".gz"); }

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace kernbench
