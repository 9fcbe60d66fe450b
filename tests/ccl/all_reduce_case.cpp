#include "tests/ccl/all_reduce_case.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ccl/select/registry.h"
#include "tests/ccl/lone_collective.h"

namespace kernbench::test {
namespace {

std::vector<std::int64_t> split(std::int64_t count, int parts, bool really) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), count);
  for (int i = 0; really && i < parts; ++i)
    sizes[static_cast<std::size_t>(i)] = count / parts + (i < count % parts ? 1 : 0);
  return sizes;
}

std::vector<TensorShard> place(const MachineMap& map, const AllReduceCase& c, std::uint16_t sip) {
  const int cubes = c.num_cubes ? c.num_cubes : map.cubes_per_sip(), pes = c.num_pes ? c.num_pes : map.pes_per_cube;
  const std::uint64_t item = size_of(c.dtype);
  std::vector<TensorShard> shards;
  const bool tiles = c.scope == Scope::cube;  // every cube a tile of `count`, or copies of one
  const auto cube_counts = split(c.count * (tiles && c.split_cubes ? cubes : 1), cubes, c.split_cubes);
  std::uint64_t cube_offset = 0;
  for (int cube = 0; cube < cubes; ++cube) {
    const std::int64_t in_cube = cube_counts[static_cast<std::size_t>(cube)];
    std::uint64_t offset = cube_offset;
    for (int pe = 0; pe < pes; ++pe) {
      const std::int64_t n = split(in_cube, pes, c.split_pes)[static_cast<std::size_t>(pe)];
      shards.push_back({{sip, static_cast<std::uint16_t>(cube), static_cast<std::uint16_t>(pe)},
                        offset,
                        static_cast<std::uint64_t>(n) * item,
                        1,
                        n});
      if (c.split_pes) offset += static_cast<std::uint64_t>(n) * item;
    }
    if (c.split_cubes) cube_offset += static_cast<std::uint64_t>(in_cube) * item;
  }
  return shards;
}

}  // namespace

std::string run_all_reduce(const MachineMap& map, const AllReduceCase& c) {
  ccl::RingNumbers rings;
  std::vector<std::uint16_t> sips(map.sips);
  for (std::uint16_t s = 0; s < map.sips; ++s) sips[s] = s;
  LoneCollective collective(ccl::Registry().load(c.algorithm, c.parameters), map, {0, sips, c.queue}, c.scope, rings);
  FakeMachine machine(map, collective);
  std::vector<ccl::Collective::Launch> launches;
  std::vector<std::vector<TensorShard>> placed;
  const std::size_t item = size_of(c.dtype);
  const auto base_of = [](int rank) { return Va{0x10000} * static_cast<Va>(rank + 1); };

  // A value of its own for every (contribution, element): sums stay exact in f32 and i32, not in f16.
  const auto value = [&](int rank, int cube, std::int64_t element) {
    std::uint64_t random = (static_cast<std::uint64_t>(rank) * 1'000'003 + static_cast<std::uint64_t>(cube) * 10'007 +
                            static_cast<std::uint64_t>(element) + 1) *
                           0x9E37'79B9'7F4A'7C15;
    random = (random ^ (random >> 31)) * 0xBF58'476D'1CE4'E5B9 >> 20;
    if (c.op == ReduceOp::prod) return is_float(c.dtype) ? (random % 2 ? 1.0 : 0.5) : (random % 4 ? 1.0 : 3.0);
    if (c.dtype == DType::boolean) return static_cast<double>(random % 2);
    const std::uint64_t range = size_of(c.dtype) == 1 ? 8 : 1000;
    const double x =
        (static_cast<double>(random % (2 * range + 1)) - static_cast<double>(range)) / (is_float(c.dtype) ? 16 : 1);
    double rounded = 0;
    store_element(&rounded, c.dtype, 0, x);
    return load_element(&rounded, c.dtype, 0);
  };
  for (int rank = 0; rank < map.sips; ++rank) {
    placed.push_back(place(map, c, static_cast<std::uint16_t>(rank)));
    for (const TensorShard& shard : placed.back()) {
      if (shard.nbytes == 0) continue;
      auto& bytes = machine.memory(shard.owner, base_of(rank) + shard.offset_bytes);
      bytes.resize(shard.nbytes);
      for (std::int64_t i = 0; i < shard.cols; ++i) {
        const auto element = static_cast<std::int64_t>(shard.offset_bytes / item) + i;
        const bool cube_tiles = c.scope == Scope::cube;
        const auto in_tile = cube_tiles && c.split_cubes ? element % std::max<std::int64_t>(c.count, 1) : element;
        store_element(bytes.data(), c.dtype, static_cast<std::size_t>(i),
                      value(rank, cube_tiles ? shard.owner.cube : 0, in_tile));
      }
    }
    CollectiveCall call;
    call.reduce_op = c.op;
    call.dtype = c.dtype;
    const LaunchMessage::TensorArg tensor{base_of(rank), placed.back(), {1, c.count}};
    launches.push_back(collective.bind({call, tensor, tensor, map.sips, rank}));
  }
  if (const std::string stuck = machine.run(launches); !stuck.empty()) return stuck;
  if (machine.most_message_bytes > c.queue.slot_bytes) return "a message is longer than a slot";

  const int cubes = c.scope == Scope::cube ? (c.num_cubes ? c.num_cubes : map.cubes_per_sip()) : 1;
  const int contributions = map.sips * cubes;
  if (launches.front().contributions != contributions) return "wrong number of contributions";
  std::map<std::int64_t, std::vector<std::uint8_t>> first_bits;
  for (int rank = 0; rank < map.sips; ++rank) {
    for (const TensorShard& shard : placed[static_cast<std::size_t>(rank)]) {
      if (shard.nbytes == 0) continue;
      const auto& bytes = machine.memory(shard.owner, base_of(rank) + shard.offset_bytes);
      for (std::int64_t i = 0; i < shard.cols; ++i) {
        auto element = static_cast<std::int64_t>(shard.offset_bytes / item) + i;
        if (c.scope == Scope::cube && c.split_cubes) element %= c.count;
        double expected = 0, magnitude = 0;
        for (int r = 0; r < map.sips; ++r) {
          for (int cube = 0; cube < cubes; ++cube) {
            const double x = value(r, cube, element);
            const bool first = r == 0 && cube == 0;
            magnitude += std::abs(x);
            switch (c.op) {
              case ReduceOp::max:
                expected = first ? x : std::max(expected, x);
                break;
              case ReduceOp::min:
                expected = first ? x : std::min(expected, x);
                break;
              case ReduceOp::prod:
                expected = first ? x : expected * x;
                break;
              default:
                expected += x;
            }
          }
        }
        double unit = 0;  // relative rounding of one addition
        if (c.op == ReduceOp::sum || c.op == ReduceOp::avg) {
          unit = c.dtype == DType::f16      ? 0x1p-11
                 : c.dtype == DType::bf16   ? 0x1p-8
                 : c.dtype == DType::f8e4m3 ? 0x1p-4
                                            : 0x1p-24;
        }
        if (c.op == ReduceOp::avg) {
          expected = is_float(c.dtype) ? expected / contributions : std::trunc(expected / contributions);
          magnitude /= contributions;
        }
        const double tolerance = is_float(c.dtype) ? unit * contributions * magnitude : 0;
        const double got = load_element(bytes.data(), c.dtype, static_cast<std::size_t>(i));
        if (!(std::abs(got - expected) <= tolerance)) {
          return "sip " + std::to_string(rank) + " cube " + std::to_string(shard.owner.cube) + " pe " +
                 std::to_string(shard.owner.pe) + " element " + std::to_string(element) + ": " + std::to_string(got) +
                 ", expected " + std::to_string(expected);
        }
        const std::vector<std::uint8_t> bits(bytes.begin() + i * static_cast<std::int64_t>(item),
                                             bytes.begin() + (i + 1) * static_cast<std::int64_t>(item));
        if (first_bits.emplace(element, bits).first->second != bits) return "ranks or copies differ in their bits";
      }
    }
  }
  return {};
}

}  // namespace kernbench::test
