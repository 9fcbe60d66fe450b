#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "tlm/kernel/dtype.h"

namespace kernbench {

class Tl;

/// Virtual address: one range per tensor and SIP.
using Va = std::uint64_t;

/// Rows x columns, in elements. A vector of n is 1 x n.
struct Shape {
  /** elements */ std::int64_t rows = 1, cols = 1;
  std::int64_t count() const { return rows * cols; }                                     ///< elements
  std::string str() const { return std::to_string(rows) + "x" + std::to_string(cols); }  ///< "2x3"
  friend bool operator==(Shape a, Shape b) { return a.rows == b.rows && a.cols == b.cols; }
  friend bool operator!=(Shape a, Shape b) { return !(a == b); }
};

/// A tensor in TCM as a kernel sees it: an immutable value that never exposes its data. Copies share it; when the last
/// copy goes, its TCM range may be reused (which waits for the ops that still touch it).
class Tile {
 public:
  /** What the recorder knows of a tile. */ struct State {
    Tl* tl = nullptr;          ///< that made it
    std::uint64_t id = 0;      ///< op that makes it
    std::uint64_t tcm = 0;     ///< offset in the PE's TCM, bytes
    Shape shape;               ///< in elements
    DType dtype = DType::f16;  ///< of the elements
  };
  Tile() = default;
  /** for recorders */ explicit Tile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  explicit operator bool() const { return state_ != nullptr; }  ///< not an empty handle
  // Of an empty handle they throw KernelError.
  Shape shape() const { return of("shape").shape; }  ///< in elements
  DType dtype() const { return of("dtype").dtype; }  ///< of the elements
  std::uint64_t bytes() const {
    const State& state = of("bytes");
    return static_cast<std::uint64_t>(state.shape.count()) * size_of(state.dtype);
  }
  const State& state() const { return of("state"); }  ///< for recorders

 private:
  [[noreturn]] static void throw_empty(const char* call);
  const State& of(const char* call) const {
    if (state_ == nullptr) throw_empty(call);
    return *state_;
  }

  std::shared_ptr<const State> state_;
};

// Elementwise, on the math engine of the PE that made the operands. Shapes must agree, or one operand is 1 x n, n x 1
// or 1 x 1 and is broadcast. The result has the operands' dtype, which must agree. They throw KernelError as Tl::math
// does.
Tile operator+(const Tile& a, const Tile& b);
Tile operator-(const Tile& a, const Tile& b);
Tile operator*(const Tile& a, const Tile& b);
Tile operator/(const Tile& a, const Tile& b);

}  // namespace kernbench
