#pragma once
#include <cstdint>
#include <optional>

#include "runtime/tp/gemm_mapping.h"
#include "runtime/tp/tensor_view.h"
#include "tlm/kernel/tl.h"

namespace kernbench::tp {

/// What a GEMM's kernel gets beside the bases of its operands.
struct GemmCall {
  TensorGeometry a, b, bias, c;
  Activation activation = Activation::none;
  GemmMapping mapping;
  std::uint64_t kept_bytes = 0;   ///< of b that may stay in TCM over groups of rows
  std::int64_t span = 0;          ///< of a split k: elements of a row of a that are loaded at once, if more than a step
  std::uint64_t pes_of_cube = 0;  ///< passed, and of a split k: bit p: PE p of each cube takes part
  std::int64_t first_row = 0;     ///< of a, that belongs to row 0 of c
  std::int64_t cube_w = 0;        ///< of the SIP's mesh
};

/// The same of a GEMM that adds a tensor: other launches do not carry it.
struct GemmResidualCall {
  GemmCall gemm;
  TensorGeometry residual;
};

/// Makes this PE's part of c. All bases are those of tensors; `bias` 0: none.
void gemm_kernel(Va a, Va b, Va bias, Va c, const GemmCall& call, Tl& tl);
void gemm_residual_kernel(Va a, Va b, Va bias, Va residual, Va c, const GemmResidualCall& call, Tl& tl);

/// `sum` with bias, activation and residual, in `dtype`.
Tile finish(Tl& tl, Tile sum, const std::optional<TensorView::Place>& bias, std::int64_t cols, DType dtype,
            Activation activation, const std::optional<TensorView::Place>& residual = {});

}  // namespace kernbench::tp
