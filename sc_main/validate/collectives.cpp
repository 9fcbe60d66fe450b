/// Collectives on preset `astra` against the tables of ASTRA-sim's analytical model: rings in one direction, as the
/// tool runs them. What the tables hold: bench/reference/collectives/README.md.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/runtime.h"
#include "sc_main/validate/one_direction_ring.h"
#include "sc_main/validate/table.h"
#include "sc_main/validate/validate.h"
#include "tlm/config/nearest.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"

namespace kernbench::validate {
namespace {

constexpr double kAccurateLimit = 0.05, kFastCollectiveLimit = 0.10;  // spec: accuracy to reach
constexpr double kSynthesisLimit = 0.10;                              // the same: or better
constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kSamplePackets = 8'000;  // a run takes some 0.1 s
/// Of a run of the whole: some 10 s. In the fast grade packets travel in trains.
double most_packets(const Request& request) { return request.fast ? 2e7 : 1e6; }
constexpr double kMostReported = 1e6;  // of a row that is not judged
const std::vector<std::string> kColumns = {
    "run_id", "backend",       "collective",    "algorithm",       "topology",          "dims",
    "npus",   "size_bytes",    "link_bw_GiBps", "link_latency_ns", "endpoint_delay_ns", "local_mem_GBps",
    "chunks", "multi_dim_opt", "sim_ns",        "closed_form_ns"};

/// Numbers of a field such as "200/50" or "4x4".
std::vector<double> numbers(const Table& table, std::size_t row, const std::string& column, char between) {
  std::vector<double> values;
  std::string rest = table.text(row, column);
  while (!rest.empty()) {
    const std::size_t cut = rest.find(between);
    const std::string one = rest.substr(0, cut);
    char* end = nullptr;
    values.push_back(std::strtod(one.c_str(), &end));
    if (one.empty() || *end != '\0' || !(values.back() > 0))
      table.fail(row, column, std::string("give positive numbers, joined by '") + between + "'");
    rest = cut == std::string::npos ? "" : rest.substr(cut + 1);
  }
  if (values.empty() || values.size() > 2) table.fail(row, column, "give one or two numbers");
  return values;
}

CollectiveOp op_of(const Table& table, std::size_t row) {
  const std::string& name = table.text(row, "collective");
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_to_all}) {
    if (name == to_string(op)) return op;
  }
  table.fail(row, "collective", "give all_reduce, all_gather, reduce_scatter or all_to_all");
}

std::optional<OneDirectionRing::Shape> shape_of(const std::string& word) {
  if (word == "Ring") return OneDirectionRing::Shape::ring;
  if (word == "FullyConnected") return OneDirectionRing::Shape::fully_connected;
  if (word == "Switch") return OneDirectionRing::Shape::fabric;
  return {};
}

/// What one row needs: runs one after the other, whose times add up.
struct RowPlan {
  std::vector<OneDirectionRing> runs;
  double packets() const {
    double sum = 0;
    for (const OneDirectionRing& ring : runs) sum += ring.packets();
    return sum;
  }
  std::string unjudged;  ///< why it is reported only
};

/// The machine of the row's dimension `d`, alone.
OneDirectionRing machine_of(const Table& table, std::size_t row, std::size_t d) {
  const std::vector<double> dims = numbers(table, row, "dims", 'x'), rates = numbers(table, row, "link_bw_GiBps", '/'),
                            latencies = numbers(table, row, "link_latency_ns", '/');
  OneDirectionRing ring;
  const auto shape = shape_of(split(table.text(row, "topology"), '_').at(d));
  if (!shape) table.fail(row, "topology", "give Ring, FullyConnected or Switch for each dimension, joined by '_'");
  ring.shape = *shape;
  // README: only where it knows of no contention the switch does not store what passes.
  if (ring.shape == OneDirectionRing::Shape::fabric && table.text(row, "backend") != "congestion_unaware")
    ring.shape = OneDirectionRing::Shape::storing_fabric;
  ring.dims[0] = static_cast<unsigned>(dims.at(d));
  ring.bytes_per_second = static_cast<std::uint64_t>(rates.at(std::min(d, rates.size() - 1)) * kGiB);
  ring.latency_ns = latencies.at(std::min(d, latencies.size() - 1));
  ring.endpoint_ns = table.number(row, "endpoint_delay_ns");
  ring.memory_bytes_per_second = table.number(row, "local_mem_GBps") * 1e9;
  ring.pieces = static_cast<unsigned>(table.integer(row, "chunks"));
  return ring;
}

/// Bytes up to the next number that divides into what the machine needs.
std::uint64_t divisible(std::uint64_t bytes, const OneDirectionRing& ring, std::uint64_t times) {
  const std::uint64_t unit = std::uint64_t{4} * ring.ranks() * ring.pieces * times;
  return (bytes + unit - 1) / unit * unit;
}

std::vector<OneDirectionRing> runs_of(const Table& table, std::size_t row) {
  const std::vector<double> dims = numbers(table, row, "dims", 'x');
  const std::size_t dimensions = split(table.text(row, "topology"), '_').size();
  if (dims.size() != dimensions) table.fail(row, "dims", "give as many lengths as the topology has dimensions");
  const std::uint64_t bytes = table.integer(row, "size_bytes");
  const CollectiveOp op = op_of(table, row);
  const bool whole = table.text(row, "multi_dim_opt") == "baseline" && op == CollectiveOp::all_reduce;
  OneDirectionRing first = machine_of(table, row, 0);
  first.op = op;
  if (dimensions == 1) {
    first.bytes = divisible(bytes, first, 1);
    return {first};
  }
  OneDirectionRing second = machine_of(table, row, 1);
  second.op = op;
  const bool alike = first.bytes_per_second == second.bytes_per_second && first.latency_ns == second.latency_ns;
  const bool rings = first.shape == OneDirectionRing::Shape::ring && second.shape == first.shape;
  if (alike && rings) {
    first.shape = OneDirectionRing::Shape::torus;
    first.dims[1] = second.dims[0];
    first.whole_per_dimension = whole;
    first.bytes = divisible(bytes, first, 1);
    return {first};
  }
  // Two kinds of links: the dimensions work one after the other in any case, each on a machine of its own.
  first.bytes = divisible(bytes, first, second.ranks());
  second.bytes = whole ? first.bytes : first.bytes / first.dims[0];
  if (op != CollectiveOp::all_reduce || whole) return {first, second};
  OneDirectionRing scatter = first, gather = first;
  scatter.op = CollectiveOp::reduce_scatter;
  gather.op = CollectiveOp::all_gather;
  return {scatter, second, gather};
}

RowPlan plan_of(const Table& table, std::size_t row) {
  RowPlan plan;
  const std::string& algorithm = table.text(row, "algorithm");
  if (algorithm != "ring" || op_of(table, row) == CollectiveOp::all_to_all) return {{}, "the tool's own " + algorithm};
  plan.runs = runs_of(table, row);
  if (table.integer(row, "chunks") > 1) {
    plan.unjudged = "how the tool interleaves chunks is its own";
  } else if (table.empty(row, "closed_form_ns")) {
    plan.unjudged = "no closed form";
  }
  return plan;
}

auto key(const OneDirectionRing& r) {
  return std::make_tuple(r.shape, r.dims[0], r.dims[1], r.op, r.bytes, r.whole_per_dimension, r.pieces,
                         r.bytes_per_second, r.latency_ns, r.endpoint_ns, r.memory_bytes_per_second);
}

/// Rows of one shape of one table; equal runs are made once.
class RingGroup {
 public:
  explicit RingGroup(const Request& request)
      : fidelity_(request.fidelity),
        limit_(request.fast ? kFastCollectiveLimit : kAccurateLimit),
        most_packets_(most_packets(request)) {}

  void add(const Table& table, std::size_t row, const RowPlan& plan) {
    Line line;
    line.name =
        fmt::format("{}/{}_{}_{}_{}_{}_B", table.name(), table.text(row, "run_id"), table.text(row, "collective"),
                    table.text(row, "topology"), table.text(row, "dims"), table.integer(row, "size_bytes"));
    line.reference = table.number(row, "sim_ns");
    line.unjudged = plan.unjudged;
    if (plan.packets() > (line.unjudged.empty() ? most_packets_ : kMostReported)) {
      line.unjudged = fmt::format("not run: {:.1f} million packets of 256 B", plan.packets() / 1e6);
      lines_.push_back(std::move(line));
      return;
    }
    for (OneDirectionRing ring : plan.runs) {
      ring.fidelity = fidelity_;
      const auto [found, fresh] = index_.emplace(key(ring), runs_.size());
      if (fresh) runs_.push_back(ring);
      line.runs.push_back(found->second);
    }
    lines_.push_back(std::move(line));
  }

  Group group(const std::string& name) const {
    Group group;
    group.name = name;
    for (const OneDirectionRing& ring : runs_) {
      group.runs.push_back([ring] { return Figures{run_one_direction_ring(ring).ns}; });
    }
    group.verdict = case_by_case(lines_.size(), [lines = lines_, limit = limit_](std::size_t i, const auto& figures) {
      const Line& line = lines[i];
      double ns = line.runs.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
      for (const std::size_t run : line.runs) ns += figures[run].at(0);
      return judge(line.name, "time_ns", line.reference, ns, limit, line.unjudged);
    });
    return group;
  }

 private:
  struct Line {
    std::string name, unjudged;
    double reference = 0;
    std::vector<std::size_t> runs;
  };
  Fidelity fidelity_;
  double limit_, most_packets_;
  std::vector<Line> lines_;
  std::vector<OneDirectionRing> runs_;
  std::map<decltype(key(std::declval<OneDirectionRing>())), std::size_t> index_;
};

/// An all-gather over a grid of ranks on preset `astra`, by the algorithm that `auto` takes.
struct GridGather {
  bool wraps = false;  ///< a torus
  unsigned w = 2, h = 2;
  std::uint64_t bytes = 0;  ///< that every rank ends with
  std::uint64_t bytes_per_second = 0;
  double latency_ns = 0;
  Fidelity fidelity;

  /// Packets of 256 B that cross links at least, all together: what a run costs.
  double packets() const { return (static_cast<double>(w) * h - 1) * static_cast<double>(bytes) / 256; }
};

/// Builds the machine and runs it once; nanoseconds from the first kernel's start to the last one's end. Once per
/// process. Throws std::runtime_error if the run fails.
double run_grid_gather(const GridGather& gather) {
  const unsigned ranks = gather.w * gather.h;
  const topology::Plan plan(
      topology::resolve("astra", {fmt::format("system.sips.count={}", ranks),
                                  fmt::format("system.sips.topology={}", gather.wraps ? "torus_2d" : "mesh_2d_no_wrap"),
                                  fmt::format("system.sips.w={}", gather.w), fmt::format("system.sips.h={}", gather.h),
                                  fmt::format("system.links.bandwidth={} B/s", gather.bytes_per_second),
                                  fmt::format("system.links.propagation={:.0f} ps", gather.latency_ns * 1e3),
                                  "system.links.serdes=0 ps"})
          .spec);
  RunOptions options;
  options.data = false;
  options.fidelity = gather.fidelity;
  // Its process ends without taking the machine down.
  auto& machine = *new topology::Machine(plan, options, nullptr);
  auto& runtime = *new Runtime("host", machine.map(), machine.dispatcher(), options, nullptr);
  for (std::uint16_t sip = 0; sip < machine.map().sips; ++sip) runtime.pcie[sip]->bind(machine.host_socket(sip));
  Ps start = kNever, end = 0;
  runtime.init_process_group({});
  runtime.spawn(
      [&](Context& ctx) {
        const auto block = static_cast<std::int64_t>(std::max<std::uint64_t>(gather.bytes / ranks / 2, 1));
        const Tensor in = ctx.empty({1, block}, DType::f16, {}, "block"),
                     out = ctx.empty({1, block * ranks}, DType::f16, {}, "all");
        ctx.barrier();
        const Handle handle = ctx.all_gather_async(in, out);
        ctx.wait(handle);
        start = std::min(start, handle.kernel_start());
        end = std::max(end, handle.kernel_end());
      },
      std::tuple<>(), static_cast<int>(ranks));
  return static_cast<double>(end - start) / 1e3;
}

/// Synthesised all-gathers on grids beside the algorithm that `auto` takes there.
Group tacos(const Table& table, const Request& request) {
  table.require({"run_id", "collective", "topology", "width", "height", "link_bw_GiBps", "link_latency_us",
                 "total_gathered_bytes", "chunks_per_npu", "all_gather_time_us"});
  Group group;
  group.name = table.name();
  struct Line {
    std::string name, unjudged;
    double reference_ns;
    std::optional<std::size_t> run;
  };
  std::vector<Line> lines;
  std::map<std::tuple<bool, unsigned, unsigned, std::uint64_t, std::uint64_t, double>, std::size_t> index;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& topology = table.text(row, "topology");
    if (topology != "mesh_2d" && topology != "torus_2d") table.fail(row, "topology", "give mesh_2d or torus_2d");
    if (table.text(row, "collective") != "all_gather") table.fail(row, "collective", "give all_gather");
    GridGather gather;
    gather.wraps = topology == "torus_2d";
    gather.w = static_cast<unsigned>(table.integer(row, "width"));
    gather.h = static_cast<unsigned>(table.integer(row, "height"));
    if (gather.w < 2 || gather.h < 2) table.fail(row, "width", "give grids of at least 2 x 2");
    gather.bytes = table.integer(row, "total_gathered_bytes");
    gather.bytes_per_second = static_cast<std::uint64_t>(table.number(row, "link_bw_GiBps") * kGiB);
    gather.latency_ns = table.number(row, "link_latency_us") * 1e3;
    gather.fidelity = request.fidelity;
    if (request.sample && (gather.packets() > kSamplePackets || gather.wraps)) continue;
    Line line{fmt::format("{}/{}_{}_{}x{}_{}_B_{}_chunks", table.name(), table.text(row, "run_id"), topology, gather.w,
                          gather.h, gather.bytes, table.integer(row, "chunks_per_npu")),
              gather.wraps ? "the specification judges meshes" : "",
              table.number(row, "all_gather_time_us") * 1e3,
              {}};
    if (gather.packets() > (line.unjudged.empty() ? most_packets(request) : kMostReported)) {
      line.unjudged = fmt::format("not run: {:.1f} million packets of 256 B", gather.packets() / 1e6);
    } else {
      const auto key =
          std::make_tuple(gather.wraps, gather.w, gather.h, gather.bytes, gather.bytes_per_second, gather.latency_ns);
      const auto [found, fresh] = index.emplace(key, group.runs.size());
      if (fresh) group.runs.push_back([gather] { return Figures{run_grid_gather(gather)}; });
      line.run = found->second;
    }
    lines.push_back(std::move(line));
  }
  group.verdict = case_by_case(lines.size(), [lines](std::size_t i, const auto& figures) {
    const Line& line = lines[i];
    const double ns = line.run ? figures[*line.run].at(0) : std::numeric_limits<double>::quiet_NaN();
    Case found = judge(line.name, "time_ns", line.reference_ns, ns, kSynthesisLimit, line.unjudged);
    found.less_is_fine = true;
    return found;
  });
  return group;
}

std::vector<Group> astra(const Table& table, const Request& request) {
  table.require(kColumns);
  std::vector<std::string> order;
  std::map<std::string, RingGroup> groups;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const RowPlan plan = plan_of(table, row);
    if (plan.runs.empty()) continue;
    if (request.sample && (plan.packets() > kSamplePackets || !plan.unjudged.empty())) continue;
    const std::string name =
        fmt::format("{}_{}_{}", table.name(), table.text(row, "topology"), table.text(row, "dims"));
    const auto [found, fresh] = groups.emplace(name, RingGroup(request));
    if (fresh) order.push_back(name);
    found->second.add(table, row, plan);
  }
  std::vector<Group> list;
  list.reserve(order.size());
  for (const std::string& name : order) list.push_back(groups.at(name).group(name));
  return list;
}

}  // namespace

std::vector<Group> collectives_groups(const Request& request) {
  std::vector<Group> groups;
  for (const auto& file : csv_files(request.reference)) {
    const Table table(file);
    if (table.has("active_chunks")) {
      for (Group& group : astra(table, request)) groups.push_back(std::move(group));
    } else if (table.has("all_gather_time_us")) {
      groups.push_back(tacos(table, request));
    }
  }
  return groups;
}

}  // namespace kernbench::validate
