#include "tests/ccl/collective_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "ccl/contract/schedule.h"
#include "ccl/select/registry.h"
#include "tests/ccl/lone_collective.h"

namespace kernbench::test {
namespace {

using TensorArg = LaunchMessage::TensorArg;
using Unit = std::pair<int, int>;  ///< (cube, PE), 0 where the scope does not tell them apart

constexpr std::int32_t kUnwritten = -77;

Unit unit_of(Scope scope, const TensorShard& shard) {
  return {scope == Scope::sip ? 0 : shard.owner.cube, scope == Scope::pe ? shard.owner.pe : 0};
}

TensorArg place(const MachineMap& map, const DPPolicy& policy, Shape shape, Va base, std::uint16_t sip) {
  TensorArg tensor{base, {}, shape};
  for (const ShardSpec& s :
       resolve_dp_policy(policy, shape, 4, NumPes{map.pes_per_cube}, NumCubes{map.cubes_per_sip()}, SipNumber{sip})) {
    tensor.shards.push_back({{sip, static_cast<std::uint16_t>(s.cube), static_cast<std::uint16_t>(s.pe)},
                             s.offset_bytes,
                             s.nbytes,
                             s.region.rows,
                             s.region.cols,
                             s.region.row,
                             s.region.col});
  }
  return tensor;
}

/// Where the tile of each contributor begins, and how wide it is.
struct Tiles {
  std::vector<Unit> units;
  std::map<Unit, std::int64_t> row, col, right;

  Tiles(Scope scope, const TensorArg& tensor) {
    std::set<Unit> found;
    for (const TensorShard& shard : tensor.shards) {
      if (shard.rows * shard.cols == 0) continue;
      const Unit unit = unit_of(scope, shard);
      if (found.insert(unit).second) {
        row[unit] = shard.row;
        col[unit] = shard.col;
      }
      row[unit] = std::min(row[unit], shard.row);
      col[unit] = std::min(col[unit], shard.col);
      right[unit] = std::max(right[unit], shard.col + shard.cols);
    }
    units.assign(found.begin(), found.end());
  }
  int number(Unit unit) const { return static_cast<int>(std::find(units.begin(), units.end(), unit) - units.begin()); }
};

/// Calls f(shard, element of the shard, unit, element of the unit's tile or of the tensor).
template <class F>
void each_element(const CollectiveCase& c, const TensorArg& tensor, bool whole, F&& f) {
  const Tiles tiles(c.scope, tensor);
  for (const TensorShard& shard : tensor.shards) {
    const Unit unit = unit_of(c.scope, shard);
    for (std::int64_t i = 0; i < shard.rows * shard.cols; ++i) {
      const std::int64_t row = shard.row + i / shard.cols, col = shard.col + i % shard.cols;
      const std::int64_t element =
          whole ? row * tensor.shape.cols + col
                : (row - tiles.row.at(unit)) * (tiles.right.at(unit) - tiles.col.at(unit)) + col - tiles.col.at(unit);
      f(shard, static_cast<std::size_t>(i), whole ? 0 : tiles.number(unit), element);
    }
  }
}

class Run {
 public:
  Run(MachineMap machine, const CollectiveCase& c) : map_(std::move(machine)), c_(c) {
    const MachineMap& map = map_;
    large_in_ = c.op == CollectiveOp::scatter;
    large_out_ = c.op == CollectiveOp::all_gather || c.op == CollectiveOp::gather;
    both_ = c.op == CollectiveOp::all_to_all || c.op == CollectiveOp::reduce_scatter;
    // How many tiles a small tensor has, by its policy.
    const DPPolicy& small = large_in_ || c.op == CollectiveOp::reduce_scatter ? c.out : c.in;
    const TensorArg probe = place(map, small, {1, 4096}, 0, 0);
    units_ = static_cast<int>(Tiles(c.scope, probe).units.size());
    p_ = map.sips * units_;
    std::set<std::int64_t> begins;  // of tiles side by side in a small tensor
    const Tiles tiles(c.scope, probe);
    for (const auto& [unit, col] : tiles.col) begins.insert(col);
    split_ = static_cast<int>(begins.size());
  }

  std::string run() {
    ccl::RingNumbers rings;
    std::vector<std::uint16_t> sips(map_.sips);
    for (std::uint16_t s = 0; s < map_.sips; ++s) sips[s] = s;
    for (int rank = 0; rank < map_.sips; ++rank) place_tensors(rank);
    const ccl::CallTensors tensors{call_of(0), in_.front(), out_.front(), map_.sips};
    const LoneCollective collective(ccl::Registry().load(c_.algorithm, c_.parameters), map_, {0, sips, c_.queue},
                                    c_.scope, rings, tensors);
    FakeMachine machine(map_, collective);
    std::vector<ccl::Collective::Launch> launches;
    for (int rank = 0; rank < map_.sips; ++rank) fill(machine, rank);
    for (int rank = 0; rank < map_.sips; ++rank) {
      launches.push_back(collective.bind(
          {call_of(rank), in_[static_cast<std::size_t>(rank)], out_[static_cast<std::size_t>(rank)], map_.sips, rank}));
      if (launches.back().contributions != p_) {
        return fmt::format("{} contributions, not {}", launches.back().contributions, p_);
      }
    }
    if (std::string stuck = machine.run(launches); !stuck.empty()) return stuck;
    if (machine.most_message_bytes > c_.queue.slot_bytes) return "a message is longer than a slot";
    for (int rank = 0; rank < map_.sips; ++rank) {
      if (std::string wrong = check(machine, rank); !wrong.empty()) return wrong;
      const Ps least = launches[static_cast<std::size_t>(rank)].message.least, links = on_links(machine, rank);
      if (least > links || static_cast<double>(least) < c_.least_share * static_cast<double>(links)) {
        return fmt::format("rank {}: least time {} ps, what it receives takes {} ps", rank, least, links);
      }
    }
    return {};
  }

 private:
  CollectiveCall call_of(int rank) const {
    CollectiveCall call;
    call.op = c_.op;
    call.reduce_op = c_.reduce_op;
    call.dtype = DType::i32;
    call.root = c_.root;
    if (c_.op == CollectiveOp::send_recv) {
      call.to = (rank + c_.shift) % map_.sips;
      call.from = (rank - c_.shift + map_.sips) % map_.sips;
    }
    return call;
  }
  /// What the links to a rank's SIP take at least for what its rings cannot have held before the launch.
  Ps on_links(const FakeMachine& machine, int rank) const {
    std::uint64_t rate = 0, bytes = 0;
    for (const LinkBundle& link : map_.sip_links) {
      if (link.a == rank || link.b == rank) rate += link.capacity.bytes_per_second();
    }
    for (const auto& [ring, received] : machine.received) {
      if (ring.first.sip == rank) bytes += received - std::min(received, c_.queue.ring_bytes());
    }
    return rate == 0 ? 0 : Rate(rate).time_for(bytes);
  }
  Shape small() const { return {1, c_.count * split_}; }
  Shape large() const { return c_.rows ? Shape{p_, c_.count} : Shape{1, p_ * c_.count}; }
  /// Tiles that hold a block for every contributor.
  Shape blocks() const {
    return c_.rows && c_.scope == Scope::sip ? Shape{p_, c_.count} : Shape{1, p_ * c_.count * split_};
  }
  void place_tensors(int rank) {
    const auto sip = static_cast<std::uint16_t>(rank);
    const Va base = Va{0x100000} * static_cast<Va>(rank + 1);
    Shape in = large_in_ ? large() : both_ ? blocks() : small();
    Shape out = large_out_ ? large() : c_.op == CollectiveOp::all_to_all ? blocks() : small();
    if (c_.in_place) in = out = large_in_ || large_out_ ? large() : both_ ? blocks() : small();
    in_.push_back(place(map_, c_.in, in, base, sip));
    out_.push_back(c_.in_place ? in_.back() : place(map_, c_.out, out, base + 0x80000, sip));
  }

  static std::int32_t value(int contributor, std::int64_t element) {
    return static_cast<std::int32_t>((contributor * 7919 + element * 31 + 5) % 1009 - 500);
  }

  void fill(FakeMachine& machine, int rank) {
    const auto write = [&](const TensorArg& tensor, bool whole, bool values) {
      each_element(c_, tensor, whole, [&](const TensorShard& shard, std::size_t i, int unit, std::int64_t element) {
        auto& bytes = machine.memory(shard.owner, tensor.base + shard.offset_bytes);
        bytes.resize(shard.nbytes);
        int contributor = rank * units_ + unit;
        if (c_.in_place && large_out_) {  // its own block only
          values = element / c_.count == rank;
          element %= c_.count;
        }
        store_integer(bytes.data(), DType::i32, i, values ? value(contributor, element) : kUnwritten);
      });
    };
    if (!c_.in_place) write(out_[static_cast<std::size_t>(rank)], large_out_, false);
    write(in_[static_cast<std::size_t>(rank)], large_in_ || (c_.in_place && large_out_), true);
  }

  std::int32_t reduced(std::int64_t element) const {
    std::int32_t result = value(0, element);
    for (int k = 1; k < p_; ++k) {
      const std::int32_t x = value(k, element);
      result = c_.reduce_op == ReduceOp::max ? std::max(result, x) : result + x;
    }
    return c_.reduce_op == ReduceOp::avg ? result / p_ : result;
  }

  /// What stands in the output of contributor k; nothing: it is not written.
  std::optional<std::int32_t> expected(int rank, int k, std::int64_t element) const {
    const std::int64_t n = c_.count;
    if (c_.custom) {
      const std::vector<int> ranks = c_.custom(rank, element);
      if (ranks.empty()) return std::nullopt;
      return std::accumulate(ranks.begin(), ranks.end(), 0,
                             [&](std::int32_t sum, int of) { return sum + value(of, element); });
    }
    switch (c_.op) {
      case CollectiveOp::all_reduce:
        return reduced(element);
      case CollectiveOp::reduce:
        if (k != c_.root * units_) return std::nullopt;
        return reduced(element);
      case CollectiveOp::broadcast:
        return value(c_.root * units_, element);
      case CollectiveOp::all_gather:
        return value(static_cast<int>(element / n), element % n);
      case CollectiveOp::gather:
        if (rank != c_.root) return std::nullopt;
        return value(static_cast<int>(element / n), element % n);
      case CollectiveOp::scatter:
        return value(c_.root * units_, c_.in_place ? element : k * n + element);
      case CollectiveOp::reduce_scatter:
        return reduced(c_.in_place ? element : k * n + element);
      case CollectiveOp::all_to_all:
        return value(static_cast<int>(element / n), k * n + element % n);
      default:
        return value((rank - c_.shift + map_.sips) % map_.sips * units_ + k % units_, element);
    }
  }

  std::string check(FakeMachine& machine, int rank) const {
    std::string wrong;
    const TensorArg& out = out_[static_cast<std::size_t>(rank)];
    const bool own_block = c_.in_place && (large_in_ || c_.op == CollectiveOp::reduce_scatter);
    each_element(c_, out, large_out_ || own_block,
                 [&](const TensorShard& shard, std::size_t i, int unit, std::int64_t element) {
                   if (!wrong.empty()) return;
                   const int k = rank * units_ + unit;
                   auto want = expected(rank, k, element);
                   if (own_block && element / c_.count != rank) return;  // left over from the input
                   if (c_.in_place && !want) return;
                   const auto got = static_cast<std::int32_t>(
                       load_integer(machine.memory(shard.owner, out.base + shard.offset_bytes).data(), DType::i32, i));
                   if (got == want.value_or(kUnwritten)) return;
                   wrong = fmt::format("rank {} cube {} pe {} element {}: {}, expected {}", rank, shard.owner.cube,
                                       shard.owner.pe, element, got, want.value_or(kUnwritten));
                 });
    return wrong;
  }

  const MachineMap map_;
  const CollectiveCase& c_;
  bool large_in_ = false, large_out_ = false, both_ = false;
  int units_ = 1, p_ = 1, split_ = 1;
  std::vector<TensorArg> in_, out_;
};

/// A ring of links between SIPs, for maps without any.
MachineMap with_links(MachineMap map) {
  const bool none = map.sip_links.empty();
  for (std::uint16_t sip = 0; none && sip + 1 < map.sips; ++sip) {
    map.sip_links.push_back({sip, static_cast<std::uint16_t>(sip + 1), Rate(1'000'000'000), 0, 0});
  }
  if (none && map.sips > 2)
    map.sip_links.push_back({0, static_cast<std::uint16_t>(map.sips - 1), Rate(1'000'000'000), 0, 0});
  return map;
}

}  // namespace

std::string run_collective(const MachineMap& map, const CollectiveCase& c) {
  try {
    return Run(with_links(map), c).run();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace kernbench::test
