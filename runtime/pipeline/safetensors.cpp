#include "runtime/pipeline/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

namespace kernbench::pipeline {

namespace {

struct StoredType {
  const char* name;
  DType dtype;
};
/// source: safetensors/src/tensor.rs, enum Dtype. Unsigned and complex types have no counterpart here.
constexpr StoredType kStoredTypes[] = {{"F64", DType::f64},   {"F32", DType::f32},        {"F16", DType::f16},
                                       {"BF16", DType::bf16}, {"F8_E4M3", DType::f8e4m3}, {"F8_E5M2", DType::f8e5m2},
                                       {"I64", DType::i64},   {"I32", DType::i32},        {"I16", DType::i16},
                                       {"I8", DType::i8},     {"BOOL", DType::boolean}};

constexpr std::uint64_t kLongestHeader = 100'000'000;  // source: safetensors/src/tensor.rs, MAX_HEADER_SIZE

[[noreturn]] void broken(const std::string& path, const std::string& text, const std::string& hint = {}) {
  throw ConfigError({path, 0, 0}, text, hint);
}

using HeaderJson = nlohmann::json;

std::vector<std::uint64_t> numbers_of(const HeaderJson& tensor, const char* key) {
  std::vector<std::uint64_t> numbers;
  const auto found = tensor.find(key);
  if (found == tensor.end() || !found->is_array()) throw std::invalid_argument(fmt::format("'{}' is no list", key));
  for (const HeaderJson& number : *found) {
    if (!number.is_number_unsigned())
      throw std::invalid_argument(fmt::format("'{}' holds what is no integer from 0", key));
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

Safetensors::Entry entry_of(const HeaderJson& tensor, std::uint64_t bytes) {
  if (!tensor.is_object()) throw std::invalid_argument("it is no map");
  Safetensors::Entry entry;
  const std::string stored = tensor.value("dtype", std::string());
  const auto* type = std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                                  [&](const StoredType& known) { return stored == known.name; });
  if (type == std::end(kStoredTypes))
    throw std::invalid_argument(fmt::format("dtype {} is not supported", quote(stored)));
  entry.dtype = type->dtype;
  std::uint64_t size = size_of(entry.dtype);
  for (const std::uint64_t dimension : numbers_of(tensor, "shape")) {
    if (dimension != 0 && size > bytes / dimension) throw std::invalid_argument("its shape is larger than the file");
    size *= dimension;
    entry.shape.push_back(static_cast<std::int64_t>(dimension));
  }
  const std::vector<std::uint64_t> offsets = numbers_of(tensor, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > bytes)
    throw std::invalid_argument("its data_offsets do not lie in the file");
  entry.begin = offsets[0];
  entry.end = offsets[1];
  if (entry.end - entry.begin != size)
    throw std::invalid_argument(
        fmt::format("its data_offsets hold {} B, its shape and dtype {} B", entry.end - entry.begin, size));
  return entry;
}

}  // namespace

std::int64_t HostTensor::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

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

Safetensors::Safetensors(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) broken(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  struct stat info {};
  const bool regular = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  bytes_ = regular ? static_cast<std::uint64_t>(info.st_size) : 0;
  void* mapped = bytes_ < 8 ? nullptr : ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  ::close(file);
  if (!regular) broken(path, "is no regular file", "give a safetensors file");
  if (bytes_ < 8)
    broken(path, "is shorter than the 8 bytes in front of a safetensors header", "give a safetensors file");
  if (mapped == MAP_FAILED) broken(path, fmt::format("cannot be mapped: {}", std::strerror(error)));
  data_ = static_cast<const std::uint8_t*>(mapped);
  try {
    parse(path);
  } catch (...) {
    ::munmap(const_cast<std::uint8_t*>(data_), bytes_);
    throw;
  }
}

Safetensors::~Safetensors() { ::munmap(const_cast<std::uint8_t*>(data_), bytes_); }

void Safetensors::parse(const std::string& path) {
  std::uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i) length |= static_cast<std::uint64_t>(data_[i]) << (8 * i);
  if (length > kLongestHeader || length > bytes_ - 8)
    broken(path, fmt::format("says that its header has {} B, but the file has {} B", length, bytes_),
           "this is probably not a safetensors file, or it is cut off");
  data_begin_ = 8 + length;
  const char* text = reinterpret_cast<const char*>(data_ + 8);
  const HeaderJson header = HeaderJson::parse(text, text + length, nullptr, false);
  if (!header.is_object()) broken(path, "its header is no JSON map", "this is probably not a safetensors file");
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      entries_.emplace(name, entry_of(tensor, bytes_ - data_begin_));
    } catch (const std::exception& error) {
      broken(path, fmt::format("tensor {}: {}", quote(name), error.what()), "the file is broken");
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const auto& [name, entry] : entries_) parts.emplace_back(entry.begin, entry.end);
  std::sort(parts.begin(), parts.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : parts) {
    if (begin != at)
      broken(path, fmt::format("its tensors overlap, or leave a gap, at byte {} of the data", std::min(at, begin)),
             "the file is broken");
    at = end;
  }
  if (at != bytes_ - data_begin_)
    broken(path, fmt::format("its tensors have {} B, its data {} B", at, bytes_ - data_begin_), "the file is broken");
}

const Safetensors::Entry* Safetensors::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

HostTensor Safetensors::read(const Entry& entry,
                             const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) const {
  HostTensor tensor;
  tensor.dtype = entry.dtype;
  const std::size_t ranks = entry.shape.size(), item = size_of(entry.dtype);
  std::vector<std::int64_t> strides(ranks, 1), own(ranks, 1);
  for (std::size_t i = ranks; i-- > 1;) strides[i - 1] = strides[i] * entry.shape[i];
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    tensor.shape.push_back(ranges[i].second - ranges[i].first);
    offset += ranges[i].first * strides[i];
  }
  for (std::size_t i = ranks; i-- > 1;) own[i - 1] = own[i] * tensor.shape[i];
  tensor.bytes.resize(static_cast<std::size_t>(tensor.count()) * item);
  copy_strided(tensor.shape, item, data_ + data_begin_ + entry.begin + static_cast<std::size_t>(offset) * item, strides,
               tensor.bytes.data(), own);
  return tensor;
}

HostTensor Safetensors::read(const Entry& entry) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const std::int64_t size : entry.shape) all.emplace_back(0, size);
  return read(entry, all);
}

std::string to_safetensors(const std::map<std::string, HostTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto* type = std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                                    [&](const StoredType& known) { return known.dtype == tensor.dtype; });
    header[name] = {{"dtype", type->name}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begin at a multiple of 8
  std::string file;
  for (unsigned i = 0; i < 8; ++i) file += static_cast<char>(text.size() >> (8 * i));
  file += text;
  for (const auto& [name, tensor] : tensors) file.append(tensor.bytes.begin(), tensor.bytes.end());
  return file;
}

}  // namespace kernbench::pipeline
