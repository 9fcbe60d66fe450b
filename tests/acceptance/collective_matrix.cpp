#include "tests/acceptance/collective_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "ccl/contract/legal.h"
#include "sc_main/workloads/collective_case.h"
#include "sc_main/workloads/placement_option.h"

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

/// Tiles of a rank that contribute: its tensor, its cubes, its PEs.
int tiles_of(const Row& row) {
  const int machine = row[kMachine];
  const Scope scope = pick(kScopes, row, kScope);
  if (scope == Scope::sip) return 1;
  return cubes_of(machine) * (scope == Scope::pe ? pes_of(machine) : 1);
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

bool average_is_legal(const Partial& row) {
  if (!chosen(row, {kDType, kRanks, kMachine, kReduceOp, kScope})) return true;
  if (row[kReduceOp] == kNoReduceOp || pick(kReduceOps, row, kReduceOp) != ReduceOp::avg) return true;
  return divisor_is_exact(pick(kDTypes, row, kDType), pick(kRankCounts, row, kRanks) * tiles_of(row));
}

/// Outputs that differ from tile to tile cannot be copies of each other.
bool output_is_legal(const Partial& row) {
  if (chosen(row, {kOp, kScope, kOutput}) && row[kOutput] == kInPlace &&
      !ccl::works_in_place(pick(kOps, row, kOp), pick(kScopes, row, kScope))) {
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
  return machine_exists(row) && triple_is_legal(row) && average_is_legal(row) && output_is_legal(row);
}

double work(const Row& row) { return static_cast<double>(elements(row)) * pick(kRankCounts, row, kRanks); }

std::int64_t elements(const Row& row) { return pick(kCounts, row, kCount); }

bool divisor_is_exact(DType dtype, int contributions) {
  double memory = 0;
  store_element(&memory, dtype, 0, contributions);
  return load_element(&memory, dtype, 0) == contributions;
}

Machine machine(const Row& row) {
  return {pick(kRankCounts, row, kRanks), pick(kMachines, row, kMachine),
          row[kScheduling] == 0 ? SchedulingKind::concurrent : SchedulingKind::rounds};
}

std::vector<Machine> machines() {
  std::vector<Machine> list;
  Row row(kFactors, -1);
  for (row[kRanks] = 0; row[kRanks] < static_cast<int>(kRankCounts.size()); ++row[kRanks]) {
    for (row[kMachine] = 0; row[kMachine] < static_cast<int>(kMachines.size()); ++row[kMachine]) {
      if (!machine_exists(row)) continue;
      for (row[kScheduling] = 0; row[kScheduling] < static_cast<int>(kSchedulings.size()); ++row[kScheduling]) {
        list.push_back(machine(row));
      }
    }
  }
  return list;
}

std::vector<std::string> options(const Machine& machine) {
  const int kind = static_cast<int>(std::find(kMachines.begin(), kMachines.end(), machine.kind) - kMachines.begin());
  const std::string links = kind >= 5 ? "ring_1d" : machine.kind;
  std::vector<std::string> list{
      "--topology",   "minimal",
      "--fidelity",   "fast",
      "--scheduling", machine.scheduling == SchedulingKind::concurrent ? kSchedulings[0] : kSchedulings[1]};
  const auto set = [&](const std::string& key, const std::string& value) {
    list.insert(list.end(), {"--set", key + "=" + value});
  };
  set("system.sips.count", std::to_string(machine.ranks));
  set("system.sips.topology", links);
  if (links == "torus_2d" || links == "mesh_2d_no_wrap") {
    const int h = machine.ranks >= 16 ? 4 : machine.ranks == 8 || machine.ranks == 4 ? 2 : 1;
    set("system.sips.w", std::to_string(machine.ranks / h));
    set("system.sips.h", std::to_string(h));
  }
  set("sip.cube_mesh.w", std::to_string(cubes_of(kind)));
  set("cube.pes", std::to_string(pes_of(kind)));
  return list;
}

std::string name(const Machine& machine) {
  return fmt::format("{}_{}_{}", machine.ranks, machine.kind,
                     machine.scheduling == SchedulingKind::concurrent ? kSchedulings[0] : kSchedulings[1]);
}

std::vector<std::string> rows_command(const std::string& plugin, const Machine& machine) {
  std::vector<std::string> list{
      "run", "--plugin", plugin, "collective_rows", "--ranks", std::to_string(machine.ranks), "--kind", machine.kind};
  for (std::string& option : options(machine)) list.push_back(std::move(option));
  return list;
}

CollectiveCase what(const Row& row) {
  CollectiveCase c;
  c.op = pick(kOps, row, kOp);
  c.dtype = pick(kDTypes, row, kDType);
  c.reduce_op = row[kReduceOp] == kNoReduceOp ? ReduceOp::sum : pick(kReduceOps, row, kReduceOp);
  c.scope = pick(kScopes, row, kScope);
  c.in_place = row[kOutput] == kInPlace;
  c.ranks = pick(kRankCounts, row, kRanks);
  c.root = ccl::rooted(c.op) ? (row[kDType] + row[kCount]) % c.ranks : 0;
  c.in_policy = parse_placement("placement", kPlacements[static_cast<std::size_t>(row[kPlacement])]);
  c.out_policy = parse_placement("placement", kPlacements[static_cast<std::size_t>(out_placement(row))]);
  return c;
}

std::int64_t block(const Row& row, const CollectiveCase& what) {
  // Of a rank's tensor each of its contributors has its share; at least one element for each block.
  const int blocks = blocks_in_size(what.op, what.ranks * tiles_of(row));
  return std::max<std::int64_t>(elements(row) / tiles_of(row) / blocks, 1);
}

std::vector<std::string> command(const Row& row) {
  const CollectiveCase c = what(row);
  const int blocks = blocks_in_size(c.op, c.ranks * tiles_of(row));
  const auto bytes = static_cast<std::int64_t>(size_of(c.dtype)) * blocks * block(row, c);
  std::vector<std::string> list{"run", to_string(c.op), "-w", "0"};
  for (std::string& option : options(machine(row))) list.push_back(std::move(option));
  list.insert(list.end(),
              {"-b", std::to_string(bytes), "--dtype", to_string(c.dtype), "--scope", to_string(c.scope), "--placement",
               kPlacements[static_cast<std::size_t>(row[kPlacement])], "--in-place", c.in_place ? "1" : "0"});
  if (ccl::reduces(c.op)) list.insert(list.end(), {"--op", to_string(c.reduce_op)});
  if (ccl::rooted(c.op)) list.insert(list.end(), {"--root", std::to_string(c.root)});
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
