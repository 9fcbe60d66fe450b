#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/runtime.h"

/// What a mixture of experts does beside its GEMMs. All submit and return at once.
namespace kernbench::tp {

/// Rows of which a launch carries the numbers: 3.5 KiB of its 4 KiB.
inline constexpr std::int64_t kMostMoeRows = 896;

/// The `per_token` largest of each row of logits (n x experts), of equal ones the first, and the soft max over these.
///
/// chosen   1 x (per_token R), i32: choice j of row t is element j R + t
/// weights  likewise, in the type that layers compute in
Handle choose_experts(Context& context, const std::string& name, const Tensor& logits, const Tensor& chosen,
                      const Tensor& weights, std::int64_t per_token);

/// Row i of `to` becomes row rows[i] of `from`; -1: is left as it is. Columns are equal. A launch for each kMostMoeRows
/// rows.
std::vector<Handle> take_rows(Context& context, const std::string& name, const Tensor& from,
                              const std::vector<std::int32_t>& rows, const Tensor& to);

/// The other way: row rows[i] of `to` becomes row i of `from`. REQUIRES: rows differ.
std::vector<Handle> put_rows(Context& context, const std::string& name, const Tensor& from,
                             const std::vector<std::int32_t>& rows, const Tensor& to);

/// Row t of `to` becomes the sum over j, in that order, of weight j of t (as choose_experts has them) times row
/// slots[t * per_token + j] of `from`; without those that are -1. Rounded once. A launch for each kMostMoeRows slots of
/// whole tokens. REQUIRES: per_token is at most kMostMoeRows.
std::vector<Handle> combine_rows(Context& context, const std::string& name, const Tensor& from, const Tensor& weights,
                                 const std::vector<std::int32_t>& slots, std::int64_t per_token, const Tensor& to);

}  // namespace kernbench::tp
