#include "sc_main/check/gemm_check.h"

#include <Eigen/Core>
#include <algorithm>

namespace kernbench {
namespace {
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows of the result that are made at a time: what is kept of it stays small.
constexpr std::int64_t kRows = 256;

Matrix matrix_of(const std::vector<std::uint8_t>& bytes, DType dtype, std::int64_t from, std::int64_t rows,
                 std::int64_t cols) {
  Matrix matrix(rows, cols);
  convert(bytes.data() + static_cast<std::size_t>(from * cols) * size_of(dtype), dtype, matrix.data(), DType::f64,
          static_cast<std::size_t>(rows * cols));
  return matrix;
}
}  // namespace

Comparison check_gemm(const GemmShape& shape, const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b,
                      const std::vector<std::uint8_t>& c) {
  Comparison comparison;
  const Matrix right = matrix_of(b, shape.dtype, 0, shape.k, shape.n);
  const Eigen::RowVectorXd columns = right.colwise().norm();
  for (std::int64_t from = 0; from < shape.m; from += kRows) {
    const std::int64_t rows = std::min(kRows, shape.m - from);
    const Matrix left = matrix_of(a, shape.dtype, from, rows, shape.k);
    const Matrix got = matrix_of(c, shape.dtype, from, rows, shape.n);
    const Eigen::VectorXd lengths = left.rowwise().norm();
    const Matrix expected = left * right;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < shape.n; ++j) {
        const double sum = expected(i, j), magnitude = lengths(i) * columns(j);
        comparison.add(got(i, j), sum, gemm_tolerance(shape.dtype, shape.k, sum, magnitude));
      }
    }
  }
  return comparison;
}

}  // namespace kernbench
