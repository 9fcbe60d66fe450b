#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/tp/gemm.h"
#include "runtime/tp/gemm_bound.h"
#include "runtime/tp/gemm_estimate.h"
#include "runtime/tp/gemm_mapping.h"

namespace kernbench::tp {

struct GemmCandidate {
  GemmMapping mapping;
  GemmEstimate estimate;
};

/// What was chosen for one GEMM, and what it was chosen from.
struct GemmPlan {
  GemmCandidate best;
  GemmBound bound;
  std::vector<GemmCandidate> considered;  ///< the best tiles of each kind: the chosen one, then by estimates
  std::uint64_t kept_bytes = 0;           ///< of b that may stay in TCM
  std::int64_t span = 0;                  ///< GemmCall
  std::uint64_t pes_of_cube = 0;          ///< bit p: PE p of each cube makes a part of c
};

/// The mapping with the least estimate, or near it (docs/gemm.md); `mapping` "auto", or a kind or a whole
/// mapping to force (parse_gemm_mapping). Takes no simulated time. Throws std::invalid_argument on operands that do not
/// fit, naming `name`, and on a mapping that does not serve them.
GemmPlan plan_gemm(const MachineMap& map, const std::string& name, const GemmOperands& operands,
                   const std::string& mapping = "auto");

/// Plans of GEMMs that come again and again, as layers' do: each is made once. Operands are alike in shapes, dtype,
/// placement and rows of a.
class GemmPlans {
 public:
  const GemmPlan& of(const MachineMap& map, const std::string& name, const GemmOperands& operands);

 private:
  std::map<std::string, GemmPlan> plans_;
};

/// Its PEs talk to each other inside a cube: the launch needs cube queues.
bool talks(const GemmPlan& plan);

/// gemm() with a plan made before. REQUIRES: of these operands, or such that lie alike.
Handle gemm(Context& context, const std::string& name, const GemmOperands& operands, const GemmPlan& plan,
            std::uint16_t stream = 0);

}  // namespace kernbench::tp
