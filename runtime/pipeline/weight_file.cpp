#include "runtime/pipeline/weight_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/pipeline/dims.h"
#include "tlm/config/problems.h"

namespace kernbench::pipeline {

std::int64_t HostTensor::count() const { return count_of(shape); }

void copy_strided(const std::vector<std::int64_t>& shape, std::size_t item, const std::uint8_t* from,
                  const std::vector<std::int64_t>& from_strides, std::uint8_t* to,
                  const std::vector<std::int64_t>& to_strides) {
  const std::size_t ranks = shape.size();
  for (const std::int64_t size : shape) {
    if (size == 0) return;
  }
  std::vector<std::int64_t> at(ranks, 0);
  const std::int64_t run = ranks == 0 ? 1 : shape.back();
  const std::int64_t step = ranks == 0 ? 1 : from_strides.back(), to_step = ranks == 0 ? 1 : to_strides.back();
  while (true) {
    std::int64_t source = 0, target = 0;
    for (std::size_t d = 0; d + 1 < ranks; ++d) {
      source += at[d] * from_strides[d];
      target += at[d] * to_strides[d];
    }
    if (step == 1 && to_step == 1) {
      std::memcpy(to + static_cast<std::size_t>(target) * item, from + static_cast<std::size_t>(source) * item,
                  static_cast<std::size_t>(run) * item);
    } else {
      for (std::int64_t i = 0; i < run; ++i)
        std::memcpy(to + static_cast<std::size_t>(target + i * to_step) * item,
                    from + static_cast<std::size_t>(source + i * step) * item, item);
    }
    std::size_t d = ranks < 2 ? 0 : ranks - 1;  // the next one up of the outer dimensions
    while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

WeightFile::WeightFile(const std::string& path, const char* format) : path_(path) {
  const auto refuse = [&](const std::string& text, const std::string& hint) {
    throw ConfigError({path, 0, 0}, text, hint);
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(fmt::format("cannot be read: {}", std::strerror(errno)), "");
  struct stat info {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  bytes_ = regular ? static_cast<std::uint64_t>(info.st_size) : 0;
  void* mapped = bytes_ == 0 ? nullptr : ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (!regular) refuse("is no regular file", fmt::format("give a {} file", format));
  if (mapped == MAP_FAILED) refuse(fmt::format("cannot be mapped: {}", std::strerror(error)), "");
  data_ = static_cast<const std::uint8_t*>(mapped);
}

WeightFile::~WeightFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), bytes_);
}

const WeightFile::Entry* WeightFile::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::string> WeightFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

HostTensor WeightFile::read(const Entry& entry,
                            const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) const {
  HostTensor tensor;
  tensor.dtype = entry.dtype;
  const std::size_t item = size_of(entry.dtype);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < entry.shape.size(); ++i) {
    tensor.shape.push_back(ranges[i].second - ranges[i].first);
    offset += ranges[i].first * entry.strides[i];
  }
  tensor.bytes.resize(static_cast<std::size_t>(tensor.count()) * item);
  copy_strided(tensor.shape, item, data_ + entry.begin + static_cast<std::size_t>(offset) * item, entry.strides,
               tensor.bytes.data(), dense_strides(tensor.shape));
  return tensor;
}

HostTensor WeightFile::read(const Entry& entry) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const std::int64_t size : entry.shape) all.emplace_back(0, size);
  return read(entry, all);
}

}  // namespace kernbench::pipeline
