#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tlm/kernel/program.h"
#include "tlm/kernel/tile.h"
#include "tlm/machine/ids.h"

namespace kernbench {

enum class CollectiveOp : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  reduce,
  broadcast,
  all_to_all,
  gather,
  scatter,
  send_recv,
  barrier
};
enum class ReduceOp : std::uint8_t { sum, avg, max, min, prod };
/// Whose tiles are contributions of their own: a rank's, every cube's, every PE's. See docs/collectives.md.
enum class Scope : std::uint8_t { sip, cube, pe };
const char* to_string(CollectiveOp op);
const char* to_string(ReduceOp op);
const char* to_string(Scope scope);

/// Numbers that an algorithm declares, by name.
class Parameters : public std::map<std::string, std::int64_t> {
 public:
  using map::map;
  /// Throws std::invalid_argument, which says those that there are, if none has that name.
  std::int64_t at(const std::string& name) const;
};

/// Everything about a collective call that is not in the kernel's positional parameters.
struct CollectiveCall {
  CollectiveOp op = CollectiveOp::all_reduce;  ///< which collective
  ReduceOp reduce_op = ReduceOp::sum;          ///< how elements combine
  DType dtype = DType::f16;                    ///< of the elements
  /** VA bases on this SIP; equal: in place */ Va in = 0, out = 0;
  int root = 0;  ///< group rank, where there is one
  /** send_recv: group ranks whom this one sends to and receives from; -1: none */ int to = -1, from = -1;
  Scope scope = Scope::sip;  ///< what contributes
  std::uint16_t group = 0;   ///< process group: selects the IPCQ queue pairs
  ProgramId program{};       ///< what the call's kernels follow
  std::vector<int> ranks;    ///< members of the group, by group rank
  Parameters parameters;     ///< declared by the algorithm, from ccl.yaml
};

/// This PE's own tile of a tensor. Empty shards (count 0) hold nothing and take part in nothing.
struct ShardView {
  Va va = 0;  ///< of the first element
  /** elements */ std::int64_t rows = 0, cols = 0;
  std::int64_t count() const { return rows * cols; }  ///< elements
};

}  // namespace kernbench
