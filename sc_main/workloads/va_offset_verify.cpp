#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/tensor_geometry.h"
#include "runtime/tool_work.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/placement_option.h"
#include "sc_main/workloads/sizes.h"
#include "sc_main/workloads/workload.h"
#include "tlm/config/refusals.h"
#include "tlm/config/units.h"
#include "tlm/kernel/tl.h"

namespace kernbench {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

/// Copies to this PE's row of `to` the shard of `from` of the PE `distance` places after it in shard order, empty
/// shards not counted. `row_bytes`: of `to`, a row for each PE.
void copy_shard(Va from, Va to, const TensorGeometry& source, std::uint64_t row_bytes, std::uint64_t distance, Tl& tl) {
  const Va row = tl.shard(to).va;
  const std::size_t place = (row - to) / row_bytes;
  std::vector<ShardSpec> shards;
  std::size_t reader = 0;
  for (const ShardSpec& shard : source.shards()) {
    if (place == static_cast<std::size_t>(shard.cube) * source.pes_of_cube + static_cast<std::size_t>(shard.pe))
      reader = shards.size();
    if (!shard.region.empty()) shards.push_back(shard);
  }
  const ShardSpec& read = shards[(reader + distance) % shards.size()];
  const std::int64_t elements = read.region.rows * read.region.cols;
  constexpr std::int64_t kChunk = 4096;  // elements; several are under way at once
  for (std::int64_t at = 0; at < elements; at += kChunk) {
    const std::int64_t n = std::min(kChunk, elements - at);
    const Va shift = static_cast<Va>(at) * size_of(source.dtype);
    tl.store(row + shift, tl.load(from + read.offset_bytes + shift, {1, n}, source.dtype));
  }
}

/// Reads every shard of a placed tensor through its virtual address, va + offset_bytes, from other PEs than its own,
/// and compares to the bit: whatever the placement, that address has to lead to the owner's memory.
class VaOffsetVerify final : public Workload {
 public:
  std::string name() const override { return "va_offset_verify"; }
  std::string help() const override { return "every PE reads shards of other PEs at va + offset; compared to the bit"; }
  std::string example() const override { return "kernbench run va_offset_verify --bytes 1K"; }

  void add_options(po::options_description& options) override {
    auto add = options.add_options();
    add("bytes", po::value(&bytes_)->default_value("64K"), "size of the tensor (K, M, G: powers of 1024)");
    add("dtype,d", po::value(&dtype_)->default_value("f16"), "of its elements");
    add("placement", po::value(&placement_), "one placement: cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N]; default: all");
  }

  void check_options() const override {
    Refusals refusals;
    std::size_t element = 1;
    refusals.from([&] { element = size_of(parse_dtype_option(dtype_)); });
    refusals.from([&] {
      if (parse_size("--bytes", bytes_) < element)
        refusals.add(fmt::format("--bytes is {}; give an element or more", bytes_));
    });
    if (!placement_.empty()) refusals.from([this] { parse_placement("--placement", placement_); });
    refusals.throw_if_any();
  }

  std::vector<std::string> files() const override { return named_files({placement_}); }

  Report run(Session& session) override {
    const DType dtype = parse_dtype_option(dtype_);
    const std::uint64_t size = parse_size("--bytes", bytes_), bytes = size - size % size_of(dtype);
    std::vector<DPPolicy> policies;
    if (!placement_.empty()) policies.push_back(parse_placement("--placement", placement_));
    if (placement_.empty()) policies = every_policy();
    Report report;
    report.text = fmt::format(
        "# va_offset_verify on {}: {} of {}; each PE copies the shard of the PE `distance` places on\n"
        "#{:>44} {:>9} {:>7} {:>9} {:>12} {:>8}\n",
        counted(session.map().sips, "SIP"), readable_bytes(bytes), dtype_, "placement", "distance", "shards", "bytes",
        "time (ns)", "check");
    session.run(session.map().sips, [&](Context& ctx) {
      for (const DPPolicy& policy : policies) {
        for (const int step : {0, 1, 2}) verify(ctx, session, policy, dtype, bytes, step, report);
      }
    });
    return report;
  }

 private:
  static std::vector<DPPolicy> every_policy() {
    std::vector<DPPolicy> list;
    for (int cube = 0; cube < 3; ++cube) {
      for (int pe = 0; pe < 5; ++pe) {
        const DPPolicy policy = DPPolicy().cube(static_cast<CubeSplit>(cube)).pe(static_cast<PeSplit>(pe));
        list.push_back(policy);
      }
    }
    return list;
  }

  /// step 0: a PE's own shard; 1: the next PE's; 2: that of the PE half the list away.
  void verify(Context& ctx, const Session& session, const DPPolicy& policy, DType dtype, std::uint64_t bytes, int step,
              Report& report) {
    const auto count = static_cast<std::int64_t>(bytes / size_of(dtype));
    const Shape shape = shape_for(policy, count, session.map().cubes_per_sip() * session.map().pes_per_cube);
    const bool data = session.options().run.data;
    const Pattern pattern(session.options().seed, dtype, Pattern::Range::unit);
    Tensor source = ctx.empty(shape, dtype, policy, "source");
    std::vector<std::uint8_t> input;
    {
      const ToolWork filling(ctx);
      input = pattern.bytes(static_cast<std::uint64_t>(ctx.rank()), static_cast<std::size_t>(shape.count()));
      source.write_bytes(input);
    }
    // Each PE writes to a place of its own, so that copies of a shard are read by all that hold one.
    std::vector<const ShardSpec*> shards;
    std::int64_t longest = 0;
    for (const ShardSpec& shard : source.shards()) {
      if (shard.region.empty()) continue;
      shards.push_back(&shard);
      longest = std::max(longest, shard.region.rows * shard.region.cols);
    }
    const std::size_t distance = step == 0 ? 0 : step == 1 ? 1 : shards.size() / 2;
    const DPPolicy one_each =
        DPPolicy().cube(CubeSplit::row_wise).pe(PeSplit::row_wise).cubes(policy.num_cubes()).pes(policy.num_pes());
    const Tensor result = ctx.zeros({static_cast<std::int64_t>(units(source)), longest}, dtype, one_each, "result");
    LaunchOptions on;
    std::vector<std::size_t> rows;  // of the result, by reader
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const ShardSpec& reader = *shards[i];
      rows.push_back(row_of(result, reader));
      on.targets.push_back({static_cast<std::uint16_t>(reader.sip), static_cast<std::uint16_t>(reader.cube),
                            static_cast<std::uint16_t>(reader.pe)});
    }
    const Handle handle = ctx.launch("va_offset_verify", on, copy_shard, source, result, geometry_of(source),
                                     static_cast<std::uint64_t>(longest) * size_of(dtype), std::uint64_t{distance});
    const ToolWork checking(ctx);
    std::uint64_t mismatches = 0;
    const std::vector<std::uint8_t> output = result.bytes_to_host();
    const std::size_t item = size_of(dtype);
    for (std::size_t i = 0; data && i < shards.size(); ++i) {
      const Region& read = shards[(i + distance) % shards.size()]->region;
      const auto row = static_cast<std::size_t>(result.shards()[rows[i]].region.row);
      std::size_t at = row * static_cast<std::size_t>(longest) * item;
      for (std::int64_t r = 0; r < read.rows; ++r) {
        const auto from = static_cast<std::size_t>((read.row + r) * shape.cols + read.col) * item;
        for (std::size_t b = 0; b < static_cast<std::size_t>(read.cols) * item; ++b)
          mismatches += output[at++] != input[from + b] ? 1 : 0;
      }
    }
    add_row(ctx, policy, dtype, bytes, distance, shards.size(), handle, mismatches, data, report);
  }

  /// PEs that a SIP offers: rows of the result.
  static std::size_t units(const Tensor& tensor) {
    std::set<std::pair<int, int>> pes;
    for (const ShardSpec& shard : tensor.shards()) pes.emplace(shard.cube, shard.pe);
    return pes.size();
  }

  static std::size_t row_of(const Tensor& result, const ShardSpec& reader) {
    for (std::size_t i = 0; i < result.shards().size(); ++i) {
      const ShardSpec& shard = result.shards()[i];
      if (shard.cube == reader.cube && shard.pe == reader.pe) return i;
    }
    throw std::logic_error("the result has no row for a PE");
  }

  static void add_row(const Context& ctx, const DPPolicy& policy, DType dtype, std::uint64_t bytes,
                      std::size_t distance, std::size_t shards, const Handle& handle, std::uint64_t mismatches,
                      bool data, Report& report) {
    Json row;
    row["op"] = "va_offset_verify";
    row["sip"] = ctx.device();
    row["placement"] = to_string(policy);
    row["distance"] = distance;
    row["dtype"] = to_string(dtype);
    row["bytes"] = bytes;
    row["shards"] = shards;
    row["time_ns"] = static_cast<double>(handle.kernel_end() - handle.kernel_start()) / 1e3;
    row["check"] = !data ? "skipped" : mismatches == 0 ? "ok" : "wrong";
    row["mismatches"] = data ? Json(mismatches) : Json();
    if (ctx.rank() == 0) {
      report.text += fmt::format(" {:>44} {:>9} {:>7} {:>9} {:>12.1f} {:>8}\n", to_string(policy), distance, shards,
                                 bytes, row["time_ns"].get<double>(), row["check"].get<std::string>());
    }
    report.wrong = report.wrong || mismatches > 0;
    report.results.push_back(std::move(row));
  }

  std::string bytes_, dtype_, placement_;
};

}  // namespace

std::unique_ptr<Workload> make_va_offset_verify() { return std::make_unique<VaOffsetVerify>(); }

}  // namespace kernbench
