#pragma once
#include <optional>
#include <set>
#include <vector>

#include "runtime/tp/gemm.h"

namespace kernbench::tp {

/// Bytes that one PE reads of an operand, by how far away they lie.
struct GemmReads {
  double own = 0, cube = 0, far = 0;
  Ps latency = 0;          ///< of one packet, mean over the bytes, nothing else under way
  std::int64_t width = 1;  ///< elements of a row that lie in one piece, where the part begins
  double all() const { return own + cube + far; }
};

/// What all PEs' reads of a and b, each once, put on a wire between cubes: its time at the payload rate of full
/// packets.
struct WireLoad {
  double a = 0, b = 0;  ///< ps
};

/// A GEMM as estimates look at it: what the busiest PE makes, and where its operands lie.
struct GemmProblem {
  explicit GemmProblem(const MachineMap& map) : map(map) {}

  const MachineMap& map;
  std::int64_t first_k = 0, k = 0;  ///< that the PE sums over
  DType dtype = DType::f16;
  double item = 2;  ///< bytes of an element
  std::set<PeCoord> workers, a_holders, b_holders;
  Region part{0, 0, 0, 0};  ///< that it makes, or partial sums of which
  PeCoord pe;
  PeRates rates;
  GemmReads a, b;
  std::vector<std::int64_t> a_cuts, b_cuts, columns;
  std::vector<std::int64_t> b_borders;  ///< ends of the rows of b on each PE of the cube, if these make up all of k
  std::vector<WireLoad> wires;          ///< those that reads go over
  Ps farthest = 0;                      ///< one access of the farthest part of a
  std::size_t pes_of_cube = 1;          ///< that work
  std::uint64_t common_pes = 0;         ///< bit p: PE p of each cube. As c lies: 0 unless all make parts with the same
                                        ///< rows; of a split k: those over which b and c spread
  std::uint64_t sharers = 1;            ///< of a split k: PEs of the cube that sum over some of it
  std::int64_t own_rows = 0;            ///< of a split k: of the result that the PE holds in the end
  bool rows_over_cubes = false;         ///< cubes hold different rows of a
  std::int64_t block_cols = 0;          ///< of b that go round: columns of a cube's block, at most; 0: b does not
  int blocks_over_link = 0;             ///< of those: that go over the busiest link between cubes, one way
  bool residual = false;                ///< a tensor is added to the result
};

/// The PE that holds a shard of c makes it.
GemmProblem as_c_lies(const MachineMap& map, const GemmOperands& operands);
/// PEs make partial sums over the rows of b that they hold. Nothing unless in each cube these are all of k, each once,
/// and all shards of b and c there have the same columns.
std::optional<GemmProblem> as_k_is_split(const MachineMap& map, const GemmOperands& operands);
/// The same, but each cube makes its rows of c, and the columns of b that the cubes hold go round them. Nothing unless
/// all cubes of the SIP hold a part of each, cut alike over their PEs.
std::optional<GemmProblem> as_b_goes_round(const MachineMap& map, const GemmOperands& operands);
/// PEs that work then: those of the cubes that hold some of c.
std::set<PeCoord> split_workers(const GemmOperands& operands);

}  // namespace kernbench::tp
