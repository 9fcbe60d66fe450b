#pragma once
#include "runtime/runtime.h"
#include "runtime/tensor_geometry.h"
#include "tlm/kernel/tl.h"

/// What kernels of layers work on: each PE its own part of what the layer writes.
namespace kernbench::tp {

/// A PE's shard among the distinct ones of a tensor.
struct OwnShard {
  Region region;   ///< of the tensor
  int number = 0;  ///< of distinct non-empty shards, in the order of Tensor::shards(); copies have the same one
};

/// Of the PE that runs the kernel. Throws KernelError if it holds no element of the tensor.
OwnShard own_shard(Va base, const TensorGeometry& geometry, const Tl& tl);
/// The rows that the PE that runs the kernel makes whole, of those that its cube holds: PEs that hold columns of the
/// same rows deal them out among themselves. Its own shard where these are fewer rows than PEs, copies, or not side by
/// side.
Region own_rows(Va base, const TensorGeometry& geometry, const Tl& tl);
/// PEs over which a tensor spreads, bit p for PE p, if these are the same of every cube; 0 if they are not.
std::uint64_t pes_of_every_cube(const Tensor& tensor);
/// The PEs of such a set by place: what ShardSpec::pe of a TensorGeometry counts.
std::vector<unsigned> by_place(std::uint64_t pes);
/// How many distinct non-empty shards there are.
int distinct_shards(const TensorGeometry& geometry);

/// Launches on the PEs that hold a non-empty shard of `tensor`.
LaunchOptions on_pes_of(const Tensor& tensor);

/// Type that layers compute in: one rounding to the dtype of the tensors at the end.
inline DType compute_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
/// `tile` in another type; the tile itself if it has it.
inline Tile as_type(Tl& tl, const Tile& tile, DType dtype) {
  return tile.dtype() == dtype ? tile : tl.cast(tile, dtype);
}

/// Placement whose rows lie one after the other in virtual memory, whatever their number: any block of rows and columns
/// is one strided range.
DPPolicy dense_rows();

/// So many that they lie over the cubes where layers may choose.
bool many_rows(std::int64_t rows);

/// Placement of many rows: over the cubes, and their columns over the PEs of each.
DPPolicy rows_over_cubes();

/// Placement of rows that a GEMM reads next: few of them whole in every cube, on a PE each; more of them each once,
/// whole on a PE; many over the cubes, with their columns over the PEs. A GEMM reads its rows in every cube: of few it
/// is cheaper to make them there than to fetch them from the PEs that would hold one each. Of more the arithmetic
/// counts, done once; of many PEs of a cube that share k then read them from different memories.
DPPolicy rows_for_gemm(std::int64_t rows);

}  // namespace kernbench::tp
