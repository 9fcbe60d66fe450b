#include "runtime/tp/launch_bound.h"

#include <algorithm>

namespace kernbench::tp {

namespace {
constexpr std::uint32_t kHeaderBytes = 16;  // of a request, or the least packet
}  // namespace

PeCoord owner_of(const ShardSpec& shard) {
  return {static_cast<std::uint16_t>(shard.sip), static_cast<std::uint16_t>(shard.cube),
          static_cast<std::uint16_t>(shard.pe)};
}

std::set<PeCoord> holders(const std::vector<Tensor>& tensors) {
  std::set<PeCoord> found;
  for (const Tensor& tensor : tensors) {
    if (!tensor) continue;
    for (const ShardSpec& shard : tensor.shards()) {
      if (!shard.region.empty()) found.insert(owner_of(shard));
    }
  }
  return found;
}

Ps cycles_at(std::uint64_t cycles, std::uint64_t hertz) { return Clock(hertz).at(cycles); }

Ps time_of(double bytes, Rate rate) {
  return static_cast<Ps>(bytes / static_cast<double>(rate.bytes_per_second()) * 1e12);
}

Ps fill_and_drain(const PeEngines& e) {
  return cycles_at(std::uint64_t{e.gemm_rows} + e.gemm_cols - 2 + e.gemm_rows, e.gemm_hz);
}

namespace {
Ps access_of(const MachineMap& map, PeCoord pe, PeCoord owner, std::uint32_t brings) {
  const PeEngines e = map.rates(pe).engines;
  const NodeId from = map.pe(pe), port = map.hbm_port(owner);
  Ps way = 0;
  if (map.packet_latency) way = map.packet_latency(from, port, kHeaderBytes) + map.packet_latency(port, from, brings);
  return e.dma_setup + way + e.hbm_hit;
}
}  // namespace

Ps access_of(const MachineMap& map, PeCoord pe, PeCoord owner) { return access_of(map, pe, owner, kPacketBytes); }

Ps least_access(const MachineMap& map, PeCoord pe) { return access_of(map, pe, pe, kHeaderBytes); }

Ps one_way(const MachineMap& map, PeCoord owner, PeCoord pe) {
  const PeEngines e = map.rates(owner).engines;
  return e.dma_setup + e.hbm_hit +
         (map.packet_latency ? map.packet_latency(map.hbm_port(owner), map.pe(pe), kHeaderBytes) : 0);
}

Ps least_message(const MachineMap& map, PeCoord from, PeCoord to) {
  return map.packet_latency ? map.packet_latency(map.pe(from), map.pe(to), kHeaderBytes) : 0;
}

Ps way_there_and_back(const MachineMap& map, PeCoord pe) {
  if (!map.packet_latency) return 0;
  const NodeId from = map.pe(pe), port = map.hbm_port(pe);
  return map.packet_latency(from, port, kHeaderBytes) + map.packet_latency(port, from, kHeaderBytes);
}

Ps least_memory_time(const MachineMap& map, const std::vector<Moved>& moved, double* bytes) {
  std::set<PeCoord> all;
  double sum = 0, written = 0;
  Ps longest = 0;
  const auto time_of_slices = [&](double read_and_written, double posted, const std::set<PeCoord>& slices) {
    const PeRates rates = map.rates(*slices.begin());
    const auto count = static_cast<double>(slices.size());
    const double waits = std::min(posted / count, static_cast<double>(rates.engines.hbm_write_queue));
    return time_of(read_and_written / count - waits, rates.hbm_slice);
  };
  for (const Moved& one : moved) {
    if (!one.tensor) continue;
    const std::set<PeCoord> some = holders({one.tensor});
    const double whole =
        static_cast<double>(one.tensor.shape().count()) * static_cast<double>(size_of(one.tensor.dtype()));
    longest = std::max(longest, time_of_slices(one.share * whole, one.written * whole, some));
    sum += one.share * whole;
    written += one.written * whole;
    all.insert(some.begin(), some.end());
  }
  if (bytes != nullptr) *bytes = sum;
  if (all.empty()) return 0;
  return std::max(longest, time_of_slices(sum, written, all));
}

LaunchBound stream_bound(const MachineMap& map, const char* kind, const std::vector<Moved>& moved, bool reads) {
  LaunchBound bound;
  bound.kind = kind;
  const PeCoord pe = *holders({moved.front().tensor}).begin();
  const Ps memory = least_memory_time(map, moved, &bound.bytes);
  const Ps latency = map.rates(pe).engines.dispatch + (reads ? least_access(map, pe) : 0) + way_there_and_back(map, pe);
  bound.time = memory + latency;
  bound.by = memory >= latency ? "HBM" : "latency";
  return bound;
}

}  // namespace kernbench::tp
