#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ccl/bounds.h"
#include "runtime/placement_units.h"
#include "sc_main/workloads/numerics.h"
#include "sc_main/workloads/placement_option.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/nearest.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

template <class Enum>
Enum parse_name(const std::string& option, const std::string& text, int values) {
  std::vector<std::string> names;
  for (int i = 0; i < values; ++i) {
    names.emplace_back(to_string(static_cast<Enum>(i)));
    if (names.back() == text) return static_cast<Enum>(i);
  }
  throw std::invalid_argument(fmt::format("{} is {}; {}", option, quote(text), suggest(text, names, "valid values")));
}

/// What is asked for, checked.
struct Request {
  std::vector<std::uint64_t> sizes;
  DType dtype = DType::f16;
  ReduceOp op = ReduceOp::sum;
  Scope scope = Scope::sip;
  DPPolicy policy;
  int warmup = 1, iterations = 1;
  bool check = true;
};

/// Where the elements of one contribution stand in a rank's tensor: a list per cube with scope cube, else one.
std::vector<std::vector<std::size_t>> contributions_of(const Tensor& tensor, Scope scope) {
  const Shape shape = tensor.shape();
  std::vector<std::vector<std::size_t>> lists;
  if (scope != Scope::cube) {
    lists.emplace_back(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < lists[0].size(); ++i) lists[0][i] = i;
    return lists;
  }
  std::map<int, Region> tiles;  // of each cube: what its shards cover
  for (const ShardSpec& shard : tensor.shards()) {
    if (shard.region.empty()) continue;
    const auto [found, is_new] = tiles.emplace(shard.cube, shard.region);
    if (is_new) continue;
    Region& tile = found->second;
    const std::int64_t bottom = std::max(tile.row + tile.rows, shard.region.row + shard.region.rows);
    const std::int64_t right = std::max(tile.col + tile.cols, shard.region.col + shard.region.cols);
    tile.row = std::min(tile.row, shard.region.row);
    tile.col = std::min(tile.col, shard.region.col);
    tile.rows = bottom - tile.row;
    tile.cols = right - tile.col;
  }
  for (const auto& [cube, tile] : tiles) {
    auto& list = lists.emplace_back();
    for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      for (std::int64_t col = tile.col; col < tile.col + tile.cols; ++col) {
        list.push_back(static_cast<std::size_t>(row * shape.cols + col));
      }
    }
  }
  return lists;
}

/// Shape of a rank's tensor whose contributions have `count` elements each.
Shape shape_of(const MachineMap& map, const Request& request, std::int64_t count) {
  const int cubes = request.policy.num_cubes.value_or(static_cast<int>(placement_units(map).cubes.size()));
  const bool tiles = request.scope == Scope::cube && request.policy.cube != CubeSplit::replicate;
  return shape_for(request.policy, tiles ? count * cubes : count, cubes);
}

std::vector<TensorShard> machine_shards(const Tensor& tensor) {
  std::vector<TensorShard> shards;
  for (const ShardSpec& s : tensor.shards()) {
    shards.push_back(
        {{static_cast<std::uint16_t>(s.sip), static_cast<std::uint16_t>(s.cube), static_cast<std::uint16_t>(s.pe)},
         s.offset_bytes,
         s.nbytes,
         s.region.rows,
         s.region.cols});
  }
  return shards;
}

/// What the ranks of one run share. Ranks take turns, so it needs no lock.
struct Measurement {
  std::vector<std::vector<std::uint8_t>> inputs;                ///< by rank
  std::vector<std::vector<std::vector<std::uint8_t>>> outputs;  ///< by rank, then copy
  std::vector<Ps> starts, ends, submits, completions;           ///< of timed iterations: extremes over ranks
};

class AllReduce final : public Workload {
 public:
  std::string name() const override { return "all_reduce"; }
  std::string help() const override { return "element-wise reduction over all ranks, checked on every rank"; }
  std::string example() const override { return "kernbench run all_reduce --topology default -b 1K -e 1M -f 4"; }
  void add_options(po::options_description& options) override;
  Report run(Session& session) override;

 private:
  Request request(const Session& session) const;
  void rank_program(Context& ctx, const Request& request, const Session& session, Report& report);
  void measure(Context& ctx, const Request& request, const Session& session, std::uint64_t bytes, Report& report);
  Json row(const Session& session, const Request& request, const Tensor& tensor, std::int64_t count) const;
  Comparison compare(const Request& request, const std::vector<std::vector<std::size_t>>& lists) const;

  SizeRange sizes_;
  std::string dtype_, op_, scope_, placement_, algorithm_;
  int warmup_ = 1, iterations_ = 1, check_ = 1;
  Measurement measured_;
  std::string algorithm_in_use_;
};

void AllReduce::add_options(po::options_description& options) {
  auto add = options.add_options();
  add("minbytes,b", po::value(&sizes_.least)->default_value("1M"),
      "smallest size: bytes of one contribution (K, M, G: powers of 1024)");
  add("maxbytes,e", po::value(&sizes_.most), "largest size; default: the smallest");
  add("stepfactor,f", po::value(&sizes_.factor)->default_value(2), "factor from size to size");
  add("stepbytes,i", po::value(&sizes_.step), "bytes from size to size, instead of a factor");
  add("dtype,d", po::value(&dtype_)->default_value("f16"),
      "f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, bool");
  add("op,o", po::value(&op_)->default_value("sum"), "sum, avg, max, min, prod");
  add("check,c", po::value(&check_)->default_value(1)->implicit_value(1),
      "compare every element with the host: 0 or 1");
  add("warmup,w", po::value(&warmup_)->default_value(1), "iterations before those that are timed");
  add("iters,n", po::value(&iterations_)->default_value(1), "timed iterations; times are their mean");
  add("scope", po::value(&scope_)->default_value("sip"), "whose tiles are contributions: sip (one per rank) or cube");
  add("placement", po::value(&placement_)->default_value("cube=column_wise,pe=column_wise"),
      "how a rank's tensor spreads over its SIP: cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N]");
  add("algorithm", po::value(&algorithm_)->default_value("auto"), "entry of ccl.yaml, or auto");
}

Request AllReduce::request(const Session& session) const {
  Request request;
  request.sizes = sizes_.sizes();
  request.dtype = parse_dtype_option(dtype_);
  request.op = parse_name<ReduceOp>("--op", op_, 5);
  request.scope = parse_name<Scope>("--scope", scope_, 3);
  request.policy = parse_placement("--placement", placement_);
  if (request.dtype == DType::boolean && request.op != ReduceOp::max && request.op != ReduceOp::min) {
    throw std::invalid_argument(
        fmt::format("--op {} is not defined for bool; give max (or) or min (and)", to_string(request.op)));
  }
  if (warmup_ < 0) throw std::invalid_argument(fmt::format("-w is {}; give 0 or more", warmup_));
  if (iterations_ < 1) throw std::invalid_argument(fmt::format("-n is {}; give at least 1", iterations_));
  if (check_ != 0 && check_ != 1) throw std::invalid_argument(fmt::format("-c is {}; give 0 or 1", check_));
  request.warmup = warmup_;
  request.iterations = iterations_;
  request.check = check_ == 1 && session.options().run.data;
  if (request.sizes.front() < size_of(request.dtype)) {
    throw std::invalid_argument(
        fmt::format("-b {} is less than one element of {}", sizes_.least, to_string(request.dtype)));
  }
  return request;
}

/// What every rank would find out on its own, before anything runs.
void check_placement(const MachineMap& map, const Request& request) {
  for (const std::uint64_t bytes : request.sizes) {
    const auto count = static_cast<std::int64_t>(bytes / size_of(request.dtype));
    const auto shards = place_shards(request.policy, shape_of(map, request, count),
                                     static_cast<int>(size_of(request.dtype)), placement_units(map), 0);
    if (request.scope != Scope::cube) continue;
    std::map<int, std::map<int, std::int64_t>> tiles;  // elements by cube, then PE
    for (const ShardSpec& shard : shards) {
      if (!shard.region.empty()) tiles[shard.cube][shard.pe] = shard.region.rows * shard.region.cols;
    }
    for (const auto& [cube, tile] : tiles) {
      if (tile != tiles.begin()->second)
        throw std::invalid_argument(
            fmt::format("--scope cube needs equal tiles, and {} B of {} placed {} give cube {} other shards than cube "
                        "{}; choose a size or a --placement that divides",
                        bytes, to_string(request.dtype), to_string(request.policy), cube, tiles.begin()->first));
    }
  }
}

Report AllReduce::run(Session& session) {
  const Request wanted = request(session);
  check_placement(session.map(), wanted);
  const int ranks = session.map().sips;
  session.runtime().init_process_group({algorithm_, session.options().ccl_file, wanted.scope, {}});
  algorithm_in_use_ = session.runtime().algorithm();
  Report report;
  report.text = fmt::format(
      "# all_reduce on {} SIPs ({}), algorithm {}, scope {}, {}\n"
      "# warm-up {}, iterations {}, seed {}; sizes are of one contribution, GB/s = 10^9 B/s, bound = share of the "
      "topology's bound\n"
      "#{:>11} {:>12} {:>8} {:>6} {:>10} {:>8} {:>8} {:>6} {:>7}  {}\n"
      "#{:>11} {:>12} {:>8} {:>6} {:>10} {:>8} {:>8} {:>6} {:>7}\n",
      ranks, to_string(session.map().sip_topology), algorithm_in_use_, to_string(wanted.scope),
      to_string(wanted.policy), wanted.warmup, wanted.iterations, session.options().seed, "size", "count", "type",
      "redop", "time", "algbw", "busbw", "bound", "#wrong", "limited by", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
      "(GB/s)", "", "");
  session.run(ranks, [&](Context& ctx) { rank_program(ctx, wanted, session, report); });
  std::uint64_t wrong = 0;
  double busbw = 0;
  for (const Json& result : report.results) {
    wrong += result.at("mismatches").is_number() ? result.at("mismatches").get<std::uint64_t>() : 0;
    busbw += result.at("busbw_gbps").get<double>();
  }
  report.wrong = wrong > 0;
  report.text += fmt::format("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:.3f} GB/s\n", wrong,
                             !wanted.check ? "NOT CHECKED"
                             : wrong == 0  ? "OK"
                                           : "FAILED",
                             busbw / static_cast<double>(report.results.size()));
  return report;
}

void AllReduce::rank_program(Context& ctx, const Request& request, const Session& session, Report& report) {
  for (const std::uint64_t bytes : request.sizes) measure(ctx, request, session, bytes, report);
}

void AllReduce::measure(Context& ctx, const Request& request, const Session& session, std::uint64_t bytes,
                        Report& report) {
  const auto rank = static_cast<std::size_t>(ctx.rank());
  const auto count = static_cast<std::int64_t>(bytes / size_of(request.dtype));
  const Shape shape = shape_of(ctx.map(), request, count);
  const Pattern pattern(session.options().seed, request.dtype,
                        request.op == ReduceOp::prod ? Pattern::Range::factor : Pattern::Range::unit);
  if (rank == 0) {
    measured_ = Measurement();
    measured_.inputs.resize(static_cast<std::size_t>(ctx.world_size()));
    measured_.outputs.resize(static_cast<std::size_t>(ctx.world_size()));
    for (auto* times : {&measured_.starts, &measured_.submits})
      times->assign(static_cast<std::size_t>(request.iterations), kNever);
    for (auto* times : {&measured_.ends, &measured_.completions})
      times->assign(static_cast<std::size_t>(request.iterations), 0);
  }
  ctx.barrier();
  const bool data = session.options().run.data;
  auto& input = measured_.inputs[rank];
  if (data) input = pattern.bytes(rank, static_cast<std::size_t>(shape.count()));
  Tensor tensor = data ? ctx.from_bytes(input, shape, request.dtype, request.policy, "all_reduce")
                       : ctx.empty(shape, request.dtype, request.policy, "all_reduce");
  const int total = request.warmup + request.iterations;
  for (int i = 0; i < total; ++i) {
    ctx.barrier();
    // In place: what is checked starts from fresh data, so that sums do not grow from iteration to iteration.
    if (data && i > 0 && i + 1 == total) tensor.write_bytes(input);
    ctx.barrier();
    const Handle handle = ctx.all_reduce(tensor, request.op);
    if (i < request.warmup) continue;
    const auto slot = static_cast<std::size_t>(i - request.warmup);
    measured_.starts[slot] = std::min(measured_.starts[slot], handle.kernel_start());
    measured_.ends[slot] = std::max(measured_.ends[slot], handle.kernel_end());
    measured_.submits[slot] = std::min(measured_.submits[slot], handle.submitted());
    measured_.completions[slot] = std::max(measured_.completions[slot], handle.completed());
  }
  ctx.barrier();
  if (request.check) {
    for (std::size_t copy = 0; copy < tensor.copies(); ++copy)
      measured_.outputs[rank].push_back(tensor.bytes_to_host(copy));
  }
  ctx.barrier();
  if (rank == 0) {
    Json result = row(session, request, tensor, count);
    const std::string wrong = request.check ? std::to_string(result["mismatches"].get<std::uint64_t>()) : "N/A";
    const Json& fraction = result["bound_fraction"];
    report.text += fmt::format(" {:>11} {:>12} {:>8} {:>6} {:>10.2f} {:>8.3f} {:>8.3f} {:>6} {:>7}  {}\n",
                               result["bytes"].get<std::uint64_t>(), result["count"].get<std::int64_t>(),
                               to_string(request.dtype), to_string(request.op), result["time_ns"].get<double>() / 1e3,
                               result["algbw_gbps"].get<double>(), result["busbw_gbps"].get<double>(),
                               fraction.is_number() ? fmt::format("{:.3f}", fraction.get<double>()) : "-", wrong,
                               result["limited_by"].get<std::string>());
    report.results.push_back(std::move(result));
  }
  ctx.barrier();  // nobody touches what the row is made of before it is made
}

Comparison AllReduce::compare(const Request& request, const std::vector<std::vector<std::size_t>>& lists) const {
  const std::size_t item = size_of(request.dtype);
  Comparison comparison;
  for (std::size_t i = 0; i < lists.front().size(); ++i) {
    Reference reference(request.op, request.dtype);
    for (const auto& input : measured_.inputs) {
      for (const auto& list : lists) reference.add(input.data(), list[i]);
    }
    const std::uint8_t* first = measured_.outputs.front().front().data() + lists.front()[i] * item;
    for (const auto& copies : measured_.outputs) {
      for (const auto& output : copies) {
        for (const auto& list : lists) {
          reference.check(output.data(), list[i], comparison);
          const std::uint8_t* bits = output.data() + list[i] * item;
          if (!std::equal(bits, bits + item, first)) ++comparison.mismatches;  // ranks and copies agree to the bit
        }
      }
    }
  }
  return comparison;
}

Json AllReduce::row(const Session& session, const Request& request, const Tensor& tensor, std::int64_t count) const {
  const int ranks = session.map().sips;
  const auto lists = contributions_of(tensor, request.scope);
  const double contributions = static_cast<double>(lists.size()) * ranks;
  const auto bytes = static_cast<std::uint64_t>(count) * size_of(request.dtype);
  double time = 0, host_time = 0;
  for (std::size_t i = 0; i < measured_.starts.size(); ++i) {
    time += static_cast<double>(measured_.ends[i] - measured_.starts[i]) / 1e3;
    host_time += static_cast<double>(measured_.completions[i] - measured_.submits[i]) / 1e3;
  }
  time /= request.iterations;
  host_time /= request.iterations;
  const double algbw = time > 0 ? static_cast<double>(bytes) / time : 0;

  ccl::BoundInput input{bytes, request.scope, {}, machine_shards(tensor)};
  for (int sip = 0; sip < ranks; ++sip) input.sips.push_back(static_cast<std::uint16_t>(sip));
  const ccl::Bound bound = ccl::largest(ccl::all_reduce_bounds(session.map(), input));
  const Comparison comparison = request.check ? compare(request, lists) : Comparison{};

  Json result;
  result["op"] = "all_reduce";
  result["bytes"] = bytes;
  result["count"] = count;
  result["dtype"] = to_string(request.dtype);
  result["redop"] = to_string(request.op);
  result["algorithm"] = algorithm_in_use_;
  result["topology"] = to_string(session.map().sip_topology);
  result["ranks"] = ranks;
  result["scope"] = to_string(request.scope);
  result["placement"] = to_string(request.policy);
  result["contributions"] = static_cast<std::int64_t>(contributions);
  result["time_ns"] = time;
  result["host_time_ns"] = host_time;
  result["algbw_gbps"] = algbw;
  result["busbw_gbps"] = algbw * 2 * (contributions - 1) / contributions;
  result["bound_ns"] = bound.ns;
  result["bound_name"] = bound.name;
  result["bound_fraction"] = time > 0 && bound.ns > 0 ? Json(bound.ns / time) : Json();
  result["limited_by"] = bound.limited_by;
  result["check"] = !request.check ? "skipped" : comparison.mismatches == 0 ? "ok" : "wrong";
  result["mismatches"] = request.check ? Json(comparison.mismatches) : Json();
  result["max_abs_err"] = request.check ? Json(comparison.max_abs_error) : Json();
  return result;
}

}  // namespace

std::unique_ptr<Workload> make_all_reduce() { return std::make_unique<AllReduce>(); }

}  // namespace kernbench
