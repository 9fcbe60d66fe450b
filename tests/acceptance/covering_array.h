#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kernbench {

/// A choice of one value for each factor, by number.
using Row = std::vector<int>;
/// What the generator fills in; -1: not chosen yet.
using Partial = std::vector<int>;

/// Rows that hold every pair of values of two factors that a legal row can hold. Deterministic: greedy, pairs in their
/// order; each row begins with the first pair that is missing and takes, factor by factor, the value that covers the
/// most pairs that are missing (the first one of equals), going back where no legal row is left.
///
/// `values`: how many each factor has. `legal`: of a partial row, whether it can still become legal; it may say yes too
/// often as long as it is right for complete rows.
std::vector<Row> covering_array(const std::vector<int>& values, const std::function<bool(const Partial&)>& legal);

/// Pairs of values that a legal row can hold and that none of `rows` does: 0 for a covering array.
std::size_t missing_pairs(const std::vector<int>& values, const std::function<bool(const Partial&)>& legal,
                          const std::vector<Row>& rows);

}  // namespace kernbench
