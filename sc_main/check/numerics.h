#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tlm/kernel/call.h"
#include "tlm/kernel/dtype.h"
#include "tlm/kernel/tl.h"
#include "tlm/sim/random.h"

namespace kernbench {

/// Input data of a run: a value for every (stream, element), the same on every platform. Neighbouring elements and
/// streams differ, so that a swapped shard, row or rank shows in nearly every element.
///
/// What is to be reduced is such that no partial result rounds, in whatever order, and the result must agree to the
/// bit: with many contributions the roundings of a narrow type may add up to more than what a missing one changes.
class Pattern {
 public:
  enum class Range : std::uint8_t {
    unit,   ///< floats in [-1, 1), integers in [-100, 100]
    term,   ///< to be added: floats are multiples of a unit of which 2^(significant bits) hold all contributions;
            ///< integers any, since sums wrap
    factor  ///< to be multiplied: floats 1, -1 and as many 2, -2, 1/2, -1/2 as every type holds; integers any odd one,
            ///< so that no product ends in zeros only
  };
  /// Of terms and factors: so many streams, numbered one after the other, each with so many contributions.
  struct Contributions {
    int streams = 1, each = 1;
  };
  Pattern(std::uint64_t seed, DType dtype, Range range) : Pattern(seed, dtype, range, {}) {}
  Pattern(std::uint64_t seed, DType dtype, Range range, Contributions contributions);
  /// `count` elements of `stream`, as they stand in memory.
  std::vector<std::uint8_t> bytes(std::uint64_t stream, std::size_t count) const;

 private:
  double value(std::uint64_t random, std::uint64_t place) const;

  std::uint64_t seed_;
  DType dtype_;
  Range range_;
  std::uint64_t every_ = 1;  ///< an element of a stream in so many is a term (is not 1 or -1); 0: none
  std::uint64_t units_ = 1;  ///< terms are 1 to so many units: a power of two
};

/// Outcome of a comparison, element by element.
struct Comparison {
  std::uint64_t mismatches = 0;
  double max_abs_error = 0;
  std::uint64_t not_finite = 0;  ///< expected values: a NaN equals a NaN, an infinity itself
  void add(double got, double expected, double tolerance);
  void add_integer(std::int64_t got, std::int64_t expected);  ///< exactly: a double does not hold every i64
};

/// A reduction of arrays of `count` elements on the host: floats in f64, integers exactly (they wrap, as the machine's
/// do), and how far a result may lie from it.
///
/// A machine that rounds each of its n - 1 additions to the dtype (unit roundoff u) errs by at most (n-1) u sum|x| in
/// any order of additions (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), plus u |result| for the last
/// rounding; additions do not underflow, for a sum of multiples of the smallest subnormal number is one too. Products
/// err by n u |result|, and where a partial product can be subnormal by half the smallest subnormal number per
/// multiplication, times the factors that follow. The quotient of an average may be subnormal: it is rounded once.
/// Minimum, maximum and integers are exact. The host's own reduction errs likewise, with the roundoff of f64.
///
/// Nothing rounds, and the result has to be exact, where all terms are multiples of a unit and their absolute values
/// add up to no more units than the significant bits can count, and where all factors are powers of two and no partial
/// product can leave the range.
class Reference {
 public:
  Reference(ReduceOp op, DType dtype, std::size_t count);
  void add(const void* data);  ///< another contribution
  /// Compares with a result; marks in `wrong`, of as many elements, those that it counts.
  void check(const void* data, Comparison& into, std::vector<bool>* wrong = nullptr) const;

 private:
  void add_integer(std::size_t i, std::int64_t x, bool first);
  void add_floats(std::size_t from, const double* x, std::size_t n, bool first);
  double tolerance(std::size_t i) const;

  ReduceOp op_;
  DType dtype_;
  std::size_t count_;
  int contributions_ = 0;
  std::vector<double> values_, magnitudes_;  ///< of floats; sums of |x| where they are added
  std::vector<double> units_;                ///< of terms: all are multiples; 0: all are 0
  std::vector<bool> powers_;                 ///< of factors: all are powers of two
  std::vector<double> least_, most_;         ///< bounds of |partial product| in any order of multiplications
  std::vector<std::int64_t> integers_;
};

/// Half the distance from 1 to the next larger number of a floating-point dtype.
double unit_roundoff(DType dtype);
/// The smallest positive number of a floating-point dtype.
double smallest_subnormal(DType dtype);
/// The largest finite number of a floating-point dtype.
double largest(DType dtype);

/// How far an element of a GEMM may lie from its exact value `sum`, a sum of `k` products whose absolute values add up
/// to `magnitude`: the products are added in f32 (f64: in f64) and the result is rounded once to the dtype.
///
/// Rounding x errs by at most u |x|, or where the spacing of the numbers no longer shrinks, below the smallest normal
/// number, by half that spacing: half the smallest subnormal number. The k products and additions err by at most
/// k u' magnitude with the roundoff u' of the type they are added in; each product may underflow in it, sums do not.
double gemm_tolerance(DType dtype, std::int64_t k, double sum, double magnitude);

/// On the host, in f64.
double activate(Activation activation, double x);

}  // namespace kernbench
