#include "sc_main/workloads/collective_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "ccl/contract/legal.h"
#include "ccl/import/import.h"
#include "sc_main/workloads/placement_option.h"
#include "tlm/config/enum_names.h"
#include "tlm/config/nearest.h"
#include "tlm/kernel/operations.h"

namespace kernbench {
namespace po = boost::program_options;

namespace {
/// "sum, avg, ...": that it may combine with.
std::string reduce_ops_of(CollectiveOp op) {
  std::vector<std::string> names;
  for (int i = 0; i < ccl::kReduceOps; ++i) {
    const auto reduce_op = static_cast<ReduceOp>(i);
    if (facts_of(op).reduce_ops & bit(reduce_op)) names.emplace_back(to_string(reduce_op));
  }
  return join(names);
}
}  // namespace

void CollectiveOptions::add_to(po::options_description& options) {
  auto add = options.add_options();
  if (has_data()) {
    add("minbytes,b", po::value(&sizes_.least),
        "smallest size in bytes, as nccl-tests counts it (K, M, G: powers of 1024; default: 1M, or what n_elem of "
        "ccl.yaml makes)");
    add("maxbytes,e", po::value(&sizes_.most), "largest size; default: the smallest");
    add("stepfactor,f", po::value(&sizes_.factor)->default_value(2), "factor from size to size");
    add("stepbytes,i", po::value(&sizes_.step), "bytes from size to size, instead of a factor");
    add("dtype,d", po::value(&dtype_)->default_value("f16"),
        "f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, bool");
    add("in-place",
        po::value(&in_place_)
            ->default_value(ccl::works_in_place(op_, Scope::sip) && blocks_in_size(op_, 2) == 1 ? 1 : 0)
            ->implicit_value(1),
        "output in the input: 0 or 1");
    add("placement", po::value(&placement_)->default_value("cube=column_wise,pe=column_wise"),
        "how a rank's tensor spreads over its SIP: cube=SPLIT,pe=SPLIT[,cubes=N][,pes=N]");
    add("out-placement", po::value(&out_placement_), "the same of an output of its own; default: as --placement");
  }
  if (ccl::reduces(op_)) add("op,o", po::value(&redop_)->default_value("sum"), reduce_ops_of(op_).c_str());
  if (ccl::rooted(op_)) add("root,r", po::value(&root_)->default_value(0), "rank of each group");
  add("check,c", po::value(&check_)->default_value(1)->implicit_value(1),
      "compare every element with the host: 0 or 1");
  add("warmup,w", po::value(&warmup_)->default_value(1), "iterations before those that are timed");
  add("iters,n", po::value(&iterations_)->default_value(1), "timed iterations; times are their mean");
  add("scope", po::value(&scope_)->default_value("sip"),
      "whose tiles are contributions: sip (one per rank), cube or pe");
  add("group", po::value(&groups_)->composing(),
      "ranks of a process group, as 0,2,3; repeat it for several at once, which may overlap; default: all ranks");
  add("algorithm", po::value(&algorithm_),
      "entry of ccl.yaml, an MSCCL file (.xml), or auto (default: that of ccl.yaml, or auto)");
  add("schedule", po::value(&schedule_)->value_name("FILE.xml"),
      "runs a schedule of MSCCL's format, once it is proven");
}

namespace {
/// "0,2,3", on whatever machine. Throws std::invalid_argument.
std::vector<int> parse_group(const std::string& text) {
  std::vector<int> group;
  for (const std::string& item : split(text, ',')) {
    if (item.empty() || item.size() > 6 || item.find_first_not_of("0123456789") != std::string::npos) {
      throw std::invalid_argument(
          fmt::format("--group {}: {} is no rank; give ranks and commas, as 0,2,3", quote(text), quote(item)));
    }
    group.push_back(std::stoi(item));
    if (std::count(group.begin(), group.end(), group.back()) > 1)
      throw std::invalid_argument(fmt::format("--group {}: rank {} stands in it twice", quote(text), group.back()));
  }
  return group;
}
}  // namespace

std::vector<std::vector<int>> CollectiveOptions::groups(int ranks) const {
  std::vector<std::vector<int>> groups;
  Refusals refusals;
  for (const std::string& text : groups_) {
    groups.push_back(parse_group(text));
    for (const int rank : groups.back()) {
      if (rank >= ranks)
        refusals.add(fmt::format("--group {}: there is no rank {}; give 0 to {}", quote(text), rank, ranks - 1));
    }
  }
  refusals.throw_if_any();
  return groups;
}

CollectiveRun CollectiveOptions::request(bool data) const {
  CollectiveRun request;
  CollectiveCase& c = request.what;
  Refusals refusals;
  refusals.from([&] { request.sizes = sizes(); });
  request.sized = !has_data() || !sizes_.least.empty() || !sizes_.most.empty();
  c.op = op_;
  refusals.from([&] { c.dtype = parse_dtype_option(dtype_); });
  refusals.from([&] { c.reduce_op = parse_name<ReduceOp>("--op", redop_, ccl::kReduceOps); });
  refusals.from([&] { c.scope = parse_name<Scope>("--scope", scope_, 3); });
  refusals.from([&] { c.in_policy = parse_placement("--placement", placement_); });
  c.out_policy = c.in_policy;
  if (!out_placement_.empty())
    refusals.from([&] { c.out_policy = parse_placement("--out-placement", out_placement_); });
  c.root = root_;
  if (!ccl::legal(c.op, c.dtype, c.reduce_op)) {
    const bool is_bool = c.dtype == DType::boolean;
    refusals.add(fmt::format("--op {} is not defined for {}; give {}", to_string(c.reduce_op),
                             is_bool ? to_string(c.dtype) : to_string(c.op),
                             is_bool ? "max (or) or min (and)" : reduce_ops_of(c.op)));
  }
  check_numbers(refusals);
  c.in_place = in_place_ == 1;
  if (c.in_place && !out_placement_.empty()) {
    refusals.add("--out-placement needs an output of its own; give --in-place 0");
  }
  refusals.from([&] { algorithm(); });
  for (const std::string& text : groups_) refusals.from([&] { parse_group(text); });
  refusals.throw_if_any();
  request.warmup = warmup_;
  request.iterations = iterations_;
  request.check = check_ == 1 && data;
  return request;
}

std::vector<std::uint64_t> CollectiveOptions::sizes() const {
  if (!has_data()) return {size_of(DType::i32)};
  SizeRange sizes = sizes_;
  if (!sizes.least.empty()) return sizes.sizes();
  sizes.least = "1M";
  sizes.by_default = true;
  return sizes.sizes();
}

void CollectiveOptions::check_numbers(Refusals& refusals) const {
  refusals.check_flag("--in-place", in_place_);
  if (warmup_ < 0) refusals.add(fmt::format("-w is {}; give 0 or more", warmup_));
  if (iterations_ < 1) refusals.add(fmt::format("-n is {}; give at least 1", iterations_));
  for (const auto& [option, number] : {std::pair("-w", warmup_), std::pair("-n", iterations_)}) {
    if (number > kMostIterations)
      refusals.add(fmt::format("{} is {}; give at most {}", option, number, kMostIterations));
  }
  refusals.check_flag("-c", check_);
}

std::string CollectiveOptions::algorithm() const {
  if (schedule_.empty()) return algorithm_;
  if (!algorithm_.empty()) throw std::invalid_argument("--schedule and --algorithm: give one of them");
  if (!ccl::is_schedule_file(schedule_))
    throw std::invalid_argument(fmt::format("--schedule {}: give a file that ends in .xml", quote(schedule_)));
  return schedule_;
}

std::vector<std::string> CollectiveOptions::files() const {
  return named_files({placement_, out_placement_}, {schedule_, algorithm_});
}

std::int64_t CollectiveRun::block(int ranks, const PlacementUnits& units, std::uint64_t bytes) const {
  CollectiveCase c = what;
  c.ranks = ranks;
  const int blocks = blocks_in_size(c.op, contributions_of(c, units));
  const auto n = static_cast<std::int64_t>(bytes / (size_of(c.dtype) * static_cast<std::size_t>(blocks)));
  if (n == 0) {
    throw std::invalid_argument(
        blocks == 1 ? fmt::format("-b {} is less than one element of {}", bytes, to_string(c.dtype))
                    : fmt::format("-b {} is less than one element of {} for each of the {} blocks of {}", bytes,
                                  to_string(c.dtype), blocks, to_string(c.op)));
  }
  return n;
}

void CollectiveRun::check_layouts(const PlacementUnits& units) const {
  for (const auto& [option, policy] :
       {std::pair("--placement", &what.in_policy), std::pair("--out-placement", &what.out_policy)}) {
    try {
      place_shards(*policy, {1, 1}, 1, units, 0);  // cubes and PEs that the machine does not have
    } catch (const std::invalid_argument& error) {
      const std::string text = error.what(), member = "policy.num_";  // of programs; here the key's name behind it
      throw std::invalid_argument(option + (" " + text.substr(text.rfind(member, 0) == 0 ? member.size() : 0)));
    }
  }
  for (const std::vector<int>& group : groups) {
    CollectiveCase c = what;
    c.ranks = static_cast<int>(group.size());
    if (ccl::rooted(c.op) && (c.root < 0 || c.root >= c.ranks)) {
      throw std::invalid_argument(fmt::format("--root is {}; give 0 to {}, a rank of the group", c.root, c.ranks - 1));
    }
    for (const std::uint64_t bytes : sizes) {
      CollectiveLayout(c, units, block(c.ranks, units, bytes));
    }
  }
}

}  // namespace kernbench
