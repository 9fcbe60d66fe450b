#include "models/pe/compute/composite_overlap.h"

#include <cstdint>

namespace kernbench::pe {

namespace {
/// Elements of a matrix in memory: rows of `bytes`, `stride` apart.
struct Rows {
  Va begin = 0;
  std::int64_t count = 0;
  std::uint64_t bytes = 0, stride = 0;
  Va at(std::int64_t row) const { return begin + static_cast<std::uint64_t>(row) * stride; }
};

bool overlap(const Rows& a, const Rows& b) {
  for (std::int64_t i = 0, j = 0; i < a.count && j < b.count;) {
    const Va here = a.at(i), there = b.at(j);
    if (here < there + b.bytes && there < here + a.bytes) return true;
    here < there ? ++i : ++j;
  }
  return false;
}
}  // namespace

const char* overwritten(const CompositeGemm& gemm) {
  const std::uint64_t item = size_of(gemm.dtype);
  const auto rows_of = [item](Va begin, std::int64_t rows, std::int64_t cols, std::int64_t leading) {
    return Rows{begin, rows, static_cast<std::uint64_t>(cols) * item,
                static_cast<std::uint64_t>(leading == 0 ? cols : leading) * item};
  };
  const Rows c = rows_of(gemm.c, gemm.m, gemm.n, gemm.ldc);
  if (overlap(c, rows_of(gemm.a, gemm.m, gemm.k, gemm.lda))) return "a";
  if (overlap(c, rows_of(gemm.b, gemm.k, gemm.n, gemm.ldb))) return "b";
  const Va bias = gemm.epilogue.bias, residual = gemm.epilogue.residual;
  if (bias != 0 && overlap(c, rows_of(bias, 1, gemm.n, gemm.n))) return "bias";
  const bool other = residual != 0 && residual != gemm.c;
  return other && overlap(c, rows_of(residual, gemm.m, gemm.n, gemm.ldc)) ? "the residual" : nullptr;
}

}  // namespace kernbench::pe
