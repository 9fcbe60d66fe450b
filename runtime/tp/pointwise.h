#pragma once
#include <cstdint>
#include <string>

#include "runtime/runtime.h"

/// Layers' work on single elements: each PE its own shard of the result, one launch, one pass. They submit and return
/// at once. All throw std::invalid_argument on shapes, dtypes or SIPs that do not fit, naming `name`.
namespace kernbench::tp {

/// Copies rows [from_row, from_row + rows of `to`) of `from` to `to`, all columns.
Handle copy_rows(Context& context, const std::string& name, const Tensor& from, std::int64_t from_row,
                 const Tensor& to);

/// y = y * x: the gated half of an MLP, whose gate has its activation already.
Handle multiply(Context& context, const std::string& name, const Tensor& y, const Tensor& x);

/// y = y + x.
Handle add(Context& context, const std::string& name, const Tensor& y, const Tensor& x);

/// Row b * length + t of `y` gets row start + t of `table` added: learned positions of sequences of `length` rows, one
/// below the other.
Handle add_positions(Context& context, const std::string& name, const Tensor& y, const Tensor& table,
                     std::int64_t length, std::int64_t start);

}  // namespace kernbench::tp
