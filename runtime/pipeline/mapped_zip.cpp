#include "runtime/pipeline/mapped_zip.h"

#include <unzip.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace kernbench::pipeline {

namespace {

/// A part of memory that minizip reads as a file.
struct Window {
  const std::uint8_t* data;
  std::uint64_t bytes, at;
};

void* open_window(void* window, const void*, int) { return window; }
uLong read_window(void*, void* stream, void* to, uLong count) {
  auto& window = *static_cast<Window*>(stream);
  const std::uint64_t given = std::min<std::uint64_t>(count, window.bytes - window.at);
  if (given > 0) std::memcpy(to, window.data + window.at, given);
  window.at += given;
  return given;
}
ZPOS64_T tell_window(void*, void* stream) { return static_cast<Window*>(stream)->at; }
long seek_window(void*, void* stream, ZPOS64_T offset, int origin) {
  auto& window = *static_cast<Window*>(stream);
  const std::uint64_t from = origin == ZLIB_FILEFUNC_SEEK_CUR   ? window.at
                             : origin == ZLIB_FILEFUNC_SEEK_END ? window.bytes
                                                                : 0;
  if (offset > window.bytes - from) return -1;
  window.at = from + offset;
  return 0;
}
int close_window(void*, void*) { return 0; }
int no_error(void*, void*) { return 0; }

constexpr const char* kNoArchive = "give a file of PyTorch 1.6 or later; this is another one, or it is cut off";

}  // namespace

MappedZip::MappedZip(const std::uint8_t* data, std::uint64_t begin, std::uint64_t bytes) : data_(data) {
  Window window{data + begin, bytes, 0};
  zlib_filefunc64_def functions{open_window, read_window,  nullptr,  tell_window,
                                seek_window, close_window, no_error, &window};
  const std::unique_ptr<void, int (*)(void*)> zip(bytes == 0 ? nullptr : unzOpen2_64("", &functions), unzClose);
  if (zip == nullptr) throw BrokenFile("is no zip archive", kNoArchive);
  int status = unzGoToFirstFile(zip.get());
  for (; status == UNZ_OK; status = unzGoToNextFile(zip.get())) {
    unz_file_info64 info{};
    char name[1024];
    if (unzGetCurrentFileInfo64(zip.get(), &info, name, sizeof name, nullptr, 0, nullptr, 0) != UNZ_OK ||
        info.size_filename >= sizeof name)
      throw BrokenFile("has a broken directory", kNoArchive);
    int method = 0, level = 0;
    if (unzOpenCurrentFile2(zip.get(), &method, &level, 1) != UNZ_OK)
      throw BrokenFile(std::string("has a broken entry '") + name + "'");
    const std::uint64_t at = unzGetCurrentFileZStreamPos64(zip.get());
    unzCloseCurrentFile(zip.get());
    if (at > bytes || info.compressed_size > bytes - at)
      throw BrokenFile(std::string("is cut off in its entry '") + name + "'");
    if (!entries_.emplace(name, Entry{begin + at, info.compressed_size, info.compression_method, info.crc}).second)
      throw BrokenFile(std::string("has two entries '") + name + "'");
  }
  if (status != UNZ_END_OF_LIST_OF_FILE) throw BrokenFile("has a broken directory", kNoArchive);
}

const MappedZip::Entry& MappedZip::stored(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw BrokenFile("has no entry '" + name + "'");
  if (found->second.method != 0)
    throw BrokenFile("has its entry '" + name + "' compressed", "PyTorch does not compress: pack it without");
  return found->second;
}

std::string MappedZip::text(const std::string& name) const {
  const Entry& entry = stored(name);
  const std::uint8_t* from = data_ + entry.begin;
  if (crc32_z(0, from, entry.bytes) != entry.crc) throw BrokenFile("has a wrong checksum in its entry '" + name + "'");
  return std::string(reinterpret_cast<const char*>(from), entry.bytes);
}

}  // namespace kernbench::pipeline
