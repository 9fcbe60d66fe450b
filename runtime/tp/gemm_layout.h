#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/tp/gemm_exchange.h"
#include "runtime/tp/gemm_kernel.h"

namespace kernbench::tp {

/// Cubes hold different rows of a tensor.
bool cubes_hold_rows(const TensorGeometry& tensor);

/// A GEMM as one PE works on it: where its operands lie, and the pieces in which its loops go over them.
struct GemmLayout {
  /// A shard of c lies on several PEs, and of those in several cubes. Copies have to have the same bits: sums over them
  /// take one order of k.
  struct Copies {
    bool any = false, over_cubes = false;
  };
  /// Of k, in which a lies in one piece, and rows of b, too.
  struct Step {
    Piece k;
    std::size_t span = 0;  ///< which of `spans` it is of
  };

  /// `exchange`: of a split k; null: none.
  GemmLayout(Va a_base, Va b_base, Va bias_base, Va c_base, const GemmCall& the_call, const SumExchange* exchange,
             const Tl& tl, std::optional<TensorView> the_residual);

  /// Blocks of rows of one of `groups`.
  std::vector<Piece> rows_of_group(const Piece& group) const;

  const GemmCall& call;
  const TensorView a, b, bias, c;
  const std::optional<TensorView> residual;
  const bool has_bias;
  const Copies copies;
  Piece k;                             ///< that this PE sums over
  std::vector<Step> steps;             ///< in the order in which they are summed
  std::vector<Piece> groups, columns;  ///< of rows and columns; by `ring` a group for each time round, maybe empty
  std::map<int, std::vector<Piece>> columns_of_cube;  ///< by `ring`: those of `columns` of which a cube has b
  std::vector<Piece> spans;                           ///< neighbouring steps whose a is loaded at once

 private:
  std::vector<Piece> rounds(const Region& part) const;
  void deal_columns();
  void begin_at_own_rows(Va b_base, const Tl& tl);
  void begin_by_cube(bool split, const Tl& tl);
  void find_spans();
  std::int64_t block_rows() const;

  std::vector<std::int64_t> row_cuts_;
  std::size_t first_block_ = 0;  // of a group's rows
};

}  // namespace kernbench::tp
