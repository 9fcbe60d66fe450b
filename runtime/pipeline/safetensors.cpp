#include "runtime/pipeline/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/pipeline/dims.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

namespace kernbench::pipeline {

namespace {

struct StoredType {
  const char* name;
  unsigned bits;
  std::optional<DType> dtype;  ///< nothing: it has no counterpart here
};
/// source: safetensors/src/tensor.rs, enum Dtype
constexpr StoredType kStoredTypes[] = {
    {"F64", 64, DType::f64},      {"F32", 32, DType::f32},       {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},    {"F8_E4M3", 8, DType::f8e4m3}, {"F8_E5M2", 8, DType::f8e5m2},
    {"I64", 64, DType::i64},      {"I32", 32, DType::i32},       {"I16", 16, DType::i16},
    {"I8", 8, DType::i8},         {"BOOL", 8, DType::boolean},   {"U8", 8, std::nullopt},
    {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},     {"U64", 64, std::nullopt},
    {"C64", 64, std::nullopt},    {"F8_E8M0", 8, std::nullopt},  {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F4", 4, std::nullopt}};

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

struct Stored {
  Safetensors::Entry entry;
  bool known = false;  ///< a type that documents can name
  std::uint64_t end = 0;
};

Stored entry_of(const HeaderJson& tensor, std::uint64_t bytes) {
  if (!tensor.is_object()) throw std::invalid_argument("it is no map");
  Stored made;
  Safetensors::Entry& entry = made.entry;
  const std::string stored = tensor.value("dtype", std::string());
  const auto* type = std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                                  [&](const StoredType& known) { return stored == known.name; });
  if (type == std::end(kStoredTypes))
    throw std::invalid_argument(fmt::format("dtype {} is none of safetensors", quote(stored)));
  made.known = type->dtype.has_value();
  entry.dtype = type->dtype.value_or(DType::i8);
  std::uint64_t bits = type->bits;
  for (const std::uint64_t dimension : numbers_of(tensor, "shape")) {
    if (dimension != 0 && bits > 8 * bytes / dimension)
      throw std::invalid_argument("its shape is larger than the file");
    bits *= dimension;
    entry.shape.push_back(static_cast<std::int64_t>(dimension));
  }
  const std::vector<std::uint64_t> offsets = numbers_of(tensor, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > bytes)
    throw std::invalid_argument("its data_offsets do not lie in the file");
  entry.begin = offsets[0];
  entry.strides = dense_strides(entry.shape);
  made.end = offsets[1];
  if (8 * (offsets[1] - offsets[0]) != bits)
    throw std::invalid_argument(
        fmt::format("its data_offsets hold {} B, its shape and dtype {} B", offsets[1] - offsets[0], (bits + 7) / 8));
  return made;
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : WeightFile(path, "safetensors") {
  if (bytes_ < 8)
    broken(path, "is shorter than the 8 bytes in front of a safetensors header", "give a safetensors file");
  std::uint64_t length = 0;
  for (unsigned i = 0; i < 8; ++i) length |= static_cast<std::uint64_t>(data_[i]) << (8 * i);
  if (length > kLongestHeader || length > bytes_ - 8)
    broken(path, fmt::format("says that its header has {} B, but the file has {} B", length, bytes_),
           "this is probably not a safetensors file, or it is cut off");
  const std::uint64_t data_begin = 8 + length;
  const char* text = reinterpret_cast<const char*>(data_ + 8);
  try {
    refuse_deep_json({text, length});
  } catch (const JsonError& error) {
    broken(path, std::string("its header ") + error.what(), "this is probably not a safetensors file");
  }
  const HeaderJson header = HeaderJson::parse(text, text + length, nullptr, false);
  if (!header.is_object()) broken(path, "its header is no JSON map", "this is probably not a safetensors file");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      Stored stored = entry_of(tensor, bytes_ - data_begin);
      parts.emplace_back(stored.entry.begin, stored.end);
      stored.entry.begin += data_begin;
      if (stored.known) entries_.emplace(name, std::move(stored.entry));
    } catch (const std::exception& error) {
      broken(path, fmt::format("tensor {}: {}", quote(name), error.what()), "the file is broken");
    }
  }
  std::sort(parts.begin(), parts.end());
  std::uint64_t at = 0;
  for (const auto& [begin, end] : parts) {
    if (begin != at)
      broken(path, fmt::format("its tensors overlap, or leave a gap, at byte {} of the data", std::min(at, begin)),
             "the file is broken");
    at = end;
  }
  if (at != bytes_ - data_begin)
    broken(path, fmt::format("its tensors have {} B, its data {} B", at, bytes_ - data_begin), "the file is broken");
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
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begin at a multiple of 8
  std::string file;
  for (unsigned i = 0; i < 8; ++i) file += static_cast<char>(text.size() >> (8 * i));
  file += text;
  for (const auto& [name, tensor] : tensors) file.append(tensor.bytes.begin(), tensor.bytes.end());
  return file;
}

}  // namespace kernbench::pipeline
