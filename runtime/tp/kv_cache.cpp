#include "runtime/tp/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/tp/own_shard.h"

namespace kernbench::tp {

namespace {
std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// PEs that a tensor spreads over, by rows.
std::int64_t pes_of(Context& context) {
  const TensorGeometry geometry = geometry_of(context.empty({1, 1}, DType::i8, dense_rows(), "kv_cache.pes"));
  return static_cast<std::int64_t>(geometry.cubes) * geometry.pes_of_cube;
}
}  // namespace

CacheLayout cache_layout(std::int64_t sequences, std::int64_t pes, std::int64_t positions, std::int64_t page) {
  CacheLayout layout;
  layout.sequences = sequences;
  layout.pes = pes;
  layout.run = std::max<std::int64_t>(1, pes / sequences);
  layout.of_each_pe = divide_up(sequences, pes);
  layout.page = page;
  layout.positions = positions;
  layout.pages = divide_up(divide_up(positions, page), layout.run);
  return layout;
}

KvCache::KvCache(Context& context, const KvCacheOptions& options) : options_(options) {
  for (const auto& [what, value] : {std::pair("batch", options.batch), std::pair("kv heads", options.heads),
                                    std::pair("head dim", options.head_dim), std::pair("positions", options.positions),
                                    std::pair("page", options.page)}) {
    if (value >= 1) continue;
    throw std::invalid_argument(fmt::format("KV cache of '{}': {} is {}: give 1 or more", options.name, what, value));
  }
  layout_ = cache_layout(options.batch * options.heads, pes_of(context), options.positions, options.page);
  const Shape shape{layout_.rows(), options.head_dim};
  try {
    keys_ = context.empty(shape, options.dtype, dense_rows(), options.name + ".keys");
    values_ = context.empty(shape, options.dtype, dense_rows(), options.name + ".values");
  } catch (const OutOfDeviceMemory& error) {
    throw OutOfDeviceMemory(fmt::format(
        "KV cache of '{}': batch {} x kv heads {} x positions {} x head dim {} x 2 in {} takes {} B a rank, "
        "which does not fit: {}",
        options.name, options.batch, options.heads, options.positions, options.head_dim, to_string(options.dtype),
        2 * shape.count() * static_cast<std::int64_t>(size_of(options.dtype)), error.what()));
  }
}

std::int64_t KvCache::append(std::int64_t count) {
  const std::int64_t first = length_;
  if (count > options_.positions - first) {
    throw std::invalid_argument(fmt::format("KV cache of '{}': positions {} to {} do not fit: it has {} positions",
                                            options_.name, first, first + count - 1, options_.positions));
  }
  length_ += count;
  return first;
}

void KvCache::fill(std::int64_t count, const Contents& keys, const Contents& values) {
  length_ = 0;
  append(count);
  const std::int64_t dim = options_.head_dim;
  for (auto& [tensor, contents] : {std::pair(keys_, keys), std::pair(values_, values)}) {
    std::vector<std::uint8_t> bytes(tensor.bytes());
    for (std::int64_t sequence = 0; sequence < layout_.sequences; ++sequence) {
      for (std::int64_t position = 0; position < count; ++position) {
        const auto first = static_cast<std::size_t>(layout_.row(sequence, position) * dim);
        for (std::int64_t i = 0; i < dim; ++i) {
          store_element(bytes.data(), options_.dtype, first + static_cast<std::size_t>(i),
                        contents(sequence / options_.heads, sequence % options_.heads, position, i));
        }
      }
    }
    Tensor(tensor).write_bytes(bytes);
  }
}

std::uint64_t KvCache::bytes() const { return keys_.bytes() + values_.bytes(); }

}  // namespace kernbench::tp
