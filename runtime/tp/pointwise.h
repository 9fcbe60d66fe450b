#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "tlm/kernel/tl.h"

/// Layers' work on single elements: each PE its own shard of the result, one launch, one pass. They submit and return
/// at once. All throw std::invalid_argument on shapes, dtypes or SIPs that do not fit, naming `name`.
namespace kernbench::tp {

/// y = activation(y + bias) in place, each PE its own shard; one launch. `bias`: 1 x columns of y, or an empty handle.
Handle add_bias(Context& context, const std::string& name, const Tensor& y, const Tensor& bias, Activation activation);

/// y = activation(the rows of `parts`, one below the other, + bias); one launch. All parts but the last have the same
/// number of rows, and there are at most 16. `bias`: as of add_bias.
Handle join_rows(Context& context, const std::string& name, const std::vector<Tensor>& parts, const Tensor& y,
                 const Tensor& bias, Activation activation);

/// Copies rows [from_row, from_row + rows of `to`) of `from` to `to`, all columns.
Handle copy_rows(Context& context, const std::string& name, const Tensor& from, std::int64_t from_row,
                 const Tensor& to);

/// Copies columns [from_col, from_col + columns of `to`) of `from` to `to`, all rows.
Handle copy_columns(Context& context, const std::string& name, const Tensor& from, std::int64_t from_col,
                    const Tensor& to);

/// Row b of `to` is the last one of the b-th `length` rows of `from`.
Handle copy_last_rows(Context& context, const std::string& name, const Tensor& from, std::int64_t length,
                      const Tensor& to);

/// y = y * x: the gated half of an MLP, whose gate has its activation already.
Handle multiply(Context& context, const std::string& name, const Tensor& y, const Tensor& x);

/// y = y + x.
Handle add(Context& context, const std::string& name, const Tensor& y, const Tensor& x);

/// Row b * length + t of `y` gets row start + t of `table` added: learned positions of sequences of `length` rows, one
/// below the other. `y` may be some of the rows, from row `from` of all on.
Handle add_positions(Context& context, const std::string& name, const Tensor& y, const Tensor& table,
                     std::int64_t length, std::int64_t start, std::int64_t from = 0);

}  // namespace kernbench::tp
