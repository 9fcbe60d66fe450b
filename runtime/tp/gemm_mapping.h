#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kernbench::tp {

/// How a GEMM c = a b is spread over PEs and over time. In space: the PE that holds a shard of c makes it, so rows and
/// columns are split as c lies, or k over the PEs of a cube and, by `split` and `lanes`, columns over cubes, by `ring`
/// rows. In time:
/// column groups of `tile_n`, in them groups of `row_blocks` blocks of `tile_m` rows, in them k in steps of `tile_k`.
/// Loads of the next steps go on while the array works.
struct GemmMapping {
  enum class Kind : std::uint8_t {
    stream,  ///< outputs stay in TCM over k; b is loaded once and kept for all rows if it fits; a streams past it
    passed,  ///< the same, but each PE of a cube fetches a part of a and passes it on to the others over IPCQ
    split,   ///< each PE makes all rows of its cube's columns over the rows of b that it holds; the PEs of a cube then
             ///< exchange and add their partial sums over IPCQ, each for the rows of c that it holds
    ring,    ///< the same for the rows of c that the cube holds, while the blocks of b go round the cubes; see
             ///< gemm_ring.h
    vector,  ///< on the math engine: b streams through once, its columns weighted by one row of a after the other
    lanes    ///< k split as by `split`, the partial sums made as by `vector`
  };
  Kind kind = Kind::stream;
  std::int64_t tile_m = 0, tile_n = 0, tile_k = 0;  ///< at most, elements; 0: the planner chooses
  std::int32_t row_blocks = 0;                      ///< with sums at once; 0: the planner chooses
  std::int32_t chains = 0;  ///< sums of one block that steps of k go to in turn; 0: the planner chooses

  bool whole() const { return tile_m > 0 && tile_n > 0 && tile_k > 0 && row_blocks > 0 && chains > 0; }
  /// "stream:32x112x512,rows=4,chains=1"; of one that the planner has not filled in "stream".
  std::string str() const;
  /// The loops, outside in, with what stays where: for people.
  std::string loops() const;
  /// As a file has it: a key a line.
  std::string yaml() const;
};
const char* to_string(GemmMapping::Kind kind);
/// k is split over the PEs of a cube, which exchange partial sums.
inline bool exchanges_sums(GemmMapping::Kind kind) {
  return kind == GemmMapping::Kind::split || kind == GemmMapping::Kind::lanes || kind == GemmMapping::Kind::ring;
}
/// The products are the math engine's, not the array's.
inline bool on_math_engine(GemmMapping::Kind kind) {
  return kind == GemmMapping::Kind::vector || kind == GemmMapping::Kind::lanes;
}

/// All kinds, in the order in which the planner looks at them.
const std::vector<GemmMapping::Kind>& gemm_mapping_kinds();

/// Of str(), with or without what follows the name. Throws std::invalid_argument with the text and what it may be.
GemmMapping parse_gemm_mapping(const std::string& text);
/// Reads a file of the form of GemmMapping::yaml(): the key `mapping` alone, or all. Throws ConfigError with
/// file:line:column.
GemmMapping load_gemm_mapping(const std::string& file);

}  // namespace kernbench::tp
