#pragma once
#include <vector>

#include "runtime/tp/gemm_kernel.h"

namespace kernbench::tp {

/// Of a GEMM whose k is split over the PEs of a cube: who has partial sums, who holds which part of c, and the exchange
/// of a block's sums over IPCQ. Each PE sends to the others the rows of c that they hold, and adds what it gets, always
/// in the order of the PEs. REQUIRES: no block has columns of several shards of c.
///
/// Additions wait for the slowest PE, and what the math engine does for the next products waits behind them: receive()
/// is for when those are issued. But it always comes before the next send(), so that nobody's messages wait for ever.
class SumExchange {
 public:
  SumExchange(Va c, const GemmCall& call, Tl& tl);

  const Piece& own_k() const { return k_; }     ///< that this PE sums over; may be empty
  const Region& sums() const { return part_; }  ///< of c: what the PEs of the cube make together

  /// `sum`: of this PE; none if it has no part of k. REQUIRES: what was sent before has been received.
  void send(const Piece& rows, const Piece& cols, Tile sum);

  struct Sum {
    Piece rows, cols;
    Tile tile;
  };
  /// Those rows of what was sent last that this PE holds, added up; nothing if there are none.
  std::vector<Sum> receive();

 private:
  /// A PE of the cube, and what it holds of c.
  struct Owner {
    unsigned pe = 0;
    Region part;
  };
  /// Of a block: the rows that a PE holds.
  static Piece held(const Owner& owner, const Piece& rows, const Piece& cols);
  Tile own_rows(const Piece& rows) const;

  const DType wide_;
  Tl& tl_;
  Piece k_;
  Region part_{0, 0, 0, 0};
  std::vector<unsigned> sharers_;  // PEs of the cube that sum over some of k, in order
  std::vector<Owner> owners_;      // of c
  bool open_ = false;              // sent, not received
  Sum sent_;
};

}  // namespace kernbench::tp
