#include "tests/acceptance/collective_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "ccl/legal.h"
#include "sc_main/workloads/collective_case.h"

namespace kernbench::matrix {
namespace {

// The larger factors first: rows are completed in this order.
enum Factor { kDType, kOp, kRanks, kMachine, kReduceOp, kCount, kScope, kPlacement, kOutput, kScheduling, kFactors };

const std::array kDTypes{DType::f16,    DType::f32,    DType::i32, DType::bf16, DType::f64,    DType::i8,
                         DType::f8e4m3, DType::f8e5m2, DType::i64, DType::i16,  DType::boolean};
const std::array kOps{CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
                      CollectiveOp::reduce,     CollectiveOp::broadcast,  CollectiveOp::all_to_all,
                      CollectiveOp::gather,     CollectiveOp::scatter,    CollectiveOp::send_recv};
const std::array kRankCounts{1, 2, 3, 4, 5, 8, 16};
const std::array kMachines{"ring_1d", "torus_2d", "mesh_2d_no_wrap", "switch", "fully_connected", "one_cube", "one_pe"};
const std::array kReduceOps{ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min, ReduceOp::prod};
constexpr int kNoReduceOp = 5;
const std::array<std::int64_t, 5> kCounts{7, 1000, 1, 65536, 1 << 20};
const std::array kScopes{Scope::sip, Scope::cube, Scope::pe};
const std::array kPlacements{"cube=column_wise,pe=column_wise", "cube=replicate,pe=replicate",
                             "cube=replicate,pe=column_wise"};
enum Output { kInPlace, kOutAlike, kOutElsewhere, kOutputs };
const std::array kSchedulings{"concurrent", "rounds"};

constexpr int kCubes = 2, kPes = 2;  // of a SIP, a cube: small ones, so that runs are short

template <class T, std::size_t N>
T pick(const std::array<T, N>& list, const Row& row, Factor factor) {
  return list[static_cast<std::size_t>(row[factor])];
}

int cubes_of(int machine) { return machine >= 5 ? 1 : kCubes; }
int pes_of(int machine) { return machine == 6 ? 1 : kPes; }

/// Contributions: of a rank's tensor, its cubes, its PEs.
int contributions(const Row& row) {
  const int ranks = pick(kRankCounts, row, kRanks), machine = row[kMachine];
  const Scope scope = pick(kScopes, row, kScope);
  if (scope == Scope::sip) return ranks;
  return ranks * cubes_of(machine) * (scope == Scope::pe ? pes_of(machine) : 1);
}

int out_placement(const Row& row) {
  return row[kOutput] == kOutElsewhere ? (row[kPlacement] + 1) % 3 : row[kPlacement];
}

bool chosen(const Partial& row, std::initializer_list<Factor> factors) {
  return std::all_of(factors.begin(), factors.end(), [&](Factor factor) { return row[factor] >= 0; });
}

/// The reduce op is one for the operation and the type.
bool triple_is_legal(const Partial& row) {
  if (chosen(row, {kOp, kReduceOp}) && ccl::reduces(pick(kOps, row, kOp)) != (row[kReduceOp] != kNoReduceOp)) {
    return false;
  }
  if (!chosen(row, {kDType, kOp, kReduceOp}) || row[kReduceOp] == kNoReduceOp) return true;
  return ccl::legal(pick(kOps, row, kOp), pick(kDTypes, row, kDType), pick(kReduceOps, row, kReduceOp));
}

/// A torus is at least 2 wide and 2 high.
bool machine_exists(const Partial& row) {
  if (!chosen(row, {kRanks, kMachine}) ||
      kMachines[static_cast<std::size_t>(row[kMachine])] != std::string("torus_2d")) {
    return true;
  }
  const int ranks = pick(kRankCounts, row, kRanks);
  return ranks >= 4 && ranks % 2 == 0;
}

/// avg divides by the number of contributions, which the type has to hold.
bool divisor_is_exact(const Partial& row) {
  if (!chosen(row, {kDType, kRanks, kMachine, kReduceOp, kScope})) return true;
  if (row[kReduceOp] == kNoReduceOp || pick(kReduceOps, row, kReduceOp) != ReduceOp::avg) return true;
  double memory = 0;
  store_element(&memory, pick(kDTypes, row, kDType), 0, contributions(row));
  return load_element(&memory, pick(kDTypes, row, kDType), 0) == contributions(row);
}

/// Outputs that differ from tile to tile cannot be copies of each other.
bool output_is_legal(const Partial& row) {
  if (chosen(row, {kOp, kScope, kOutput}) && row[kOutput] == kInPlace &&
      !works_in_place(pick(kOps, row, kOp), pick(kScopes, row, kScope))) {
    return false;
  }
  if (!chosen(row, {kOp, kScope, kPlacement, kOutput})) return true;
  const CollectiveOp op = pick(kOps, row, kOp);
  const bool differ = op == CollectiveOp::reduce || op == CollectiveOp::scatter || op == CollectiveOp::reduce_scatter ||
                      op == CollectiveOp::all_to_all || op == CollectiveOp::send_recv;
  return pick(kScopes, row, kScope) == Scope::sip || !differ || out_placement(row) == 0;
}

}  // namespace

std::vector<int> values() {
  std::vector<int> list(kFactors);
  list[kDType] = static_cast<int>(kDTypes.size());
  list[kOp] = static_cast<int>(kOps.size());
  list[kRanks] = static_cast<int>(kRankCounts.size());
  list[kMachine] = static_cast<int>(kMachines.size());
  list[kReduceOp] = kNoReduceOp + 1;
  list[kCount] = static_cast<int>(kCounts.size());
  list[kScope] = static_cast<int>(kScopes.size());
  list[kPlacement] = static_cast<int>(kPlacements.size());
  list[kOutput] = kOutputs;
  list[kScheduling] = static_cast<int>(kSchedulings.size());
  return list;
}

bool legal(const Partial& row) {
  return machine_exists(row) && triple_is_legal(row) && divisor_is_exact(row) && output_is_legal(row);
}

double work(const Row& row) { return static_cast<double>(pick(kCounts, row, kCount)) * pick(kRankCounts, row, kRanks); }

std::vector<std::string> command(const Row& row) {
  const CollectiveOp op = pick(kOps, row, kOp);
  const DType dtype = pick(kDTypes, row, kDType);
  const int ranks = pick(kRankCounts, row, kRanks), machine = row[kMachine];
  const std::string links = machine >= 5 ? "ring_1d" : pick(kMachines, row, kMachine);
  const int blocks = blocks_in_size(op, contributions(row));
  // Elements of a rank's tensor, of which each of its contributors has its share; at least one for each block.
  const std::int64_t share = pick(kCounts, row, kCount) / (contributions(row) / ranks);
  const auto bytes = static_cast<std::int64_t>(size_of(dtype)) * std::max<std::int64_t>(share, blocks);
  std::vector<std::string> list{"run", to_string(op), "--topology", "minimal", "--fidelity", "fast", "-w", "0"};
  const auto set = [&](const std::string& key, const std::string& value) {
    list.insert(list.end(), {"--set", key + "=" + value});
  };
  set("system.sips.count", std::to_string(ranks));
  set("system.sips.topology", links);
  if (links == "torus_2d" || links == "mesh_2d_no_wrap") {
    const int h = ranks >= 16 ? 4 : ranks == 8 || ranks == 4 ? 2 : 1;
    set("system.sips.w", std::to_string(ranks / h));
    set("system.sips.h", std::to_string(h));
  }
  set("sip.cube_mesh.w", std::to_string(cubes_of(machine)));
  set("cube.pes", std::to_string(pes_of(machine)));
  list.insert(list.end(),
              {"-b", std::to_string(bytes), "--dtype", to_string(dtype), "--scope",
               to_string(pick(kScopes, row, kScope)), "--placement", pick(kPlacements, row, kPlacement), "--in-place",
               row[kOutput] == kInPlace ? "1" : "0", "--scheduling", pick(kSchedulings, row, kScheduling)});
  if (ccl::reduces(op)) list.insert(list.end(), {"--op", to_string(pick(kReduceOps, row, kReduceOp))});
  if (ccl::rooted(op)) list.insert(list.end(), {"--root", std::to_string((row[kDType] + row[kCount]) % ranks)});
  if (row[kOutput] == kOutElsewhere) {
    list.insert(list.end(), {"--out-placement", kPlacements[static_cast<std::size_t>(out_placement(row))]});
  }
  return list;
}

std::string name(const Row& row) {
  return fmt::format(
      "{}_{}_{}_{}_{}_{}_{}_{}_{}_{}", to_string(pick(kOps, row, kOp)), to_string(pick(kDTypes, row, kDType)),
      row[kReduceOp] == kNoReduceOp ? "none" : to_string(pick(kReduceOps, row, kReduceOp)),
      pick(kRankCounts, row, kRanks), pick(kMachines, row, kMachine), to_string(pick(kScopes, row, kScope)),
      row[kPlacement] == 0   ? "sharded"
      : row[kPlacement] == 1 ? "replicated"
                             : "mixed",
      pick(kCounts, row, kCount),
      row[kOutput] == kInPlace    ? "in_place"
      : row[kOutput] == kOutAlike ? "out"
                                  : "out_elsewhere",
      pick(kSchedulings, row, kScheduling));
}

}  // namespace kernbench::matrix
