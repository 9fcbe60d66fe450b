#include "models/pe/tcm/tcm_timing.h"

#include <algorithm>
#include <stdexcept>

#include "tlm/observe/usage.h"

namespace kernbench::pe {

TcmTiming::TcmTiming(const TcmConfig& config)
    : config_(config),
      port_(config.bytes_per_second),
      bank_(config.clock_hz * config.bank_bytes),
      banks_(config.clock_hz * config.bank_bytes * config.banks),
      bank_free_(config.banks, 0) {
  if (config.banks == 0 || config.bank_bytes == 0 || config.clock_hz == 0 || config.bytes_per_second == 0) {
    throw std::invalid_argument("tcm: banks, bank_width, clock and bandwidth must be at least 1");
  }
}

/// Share of the banks' cycles that the streams leave to accesses at `now`.
std::uint64_t TcmTiming::left_at(Ps now) const {
  if (streams_.empty()) return kWhole;
  std::uint64_t taken = 0, running = 0;
  for (const Stream& stream : streams_) {
    if (stream.begin > now || stream.end <= now) continue;
    taken += stream.share;
    ++running;
  }
  return std::max(kWhole - std::min(taken, kWhole), kWhole / (running + 1));
}

Ps TcmTiming::access(Port& port, Ps now, std::uint64_t offset, std::uint64_t bytes, std::uint32_t packets) {
  if (bytes == 0) return std::max(now, port.free) + config_.latency;
  const std::uint64_t first = offset / config_.bank_bytes;
  const std::uint64_t count = (offset + bytes - 1) / config_.bank_bytes - first + 1;
  const std::uint64_t touched = std::min<std::uint64_t>(count, config_.banks);
  const std::uint64_t first_bank = first % config_.banks;
  const auto each_bank = [&](auto&& visit) {  // f(i, state of the i-th bank that is touched)
    std::uint64_t bank = first_bank;
    for (std::uint64_t i = 0; i < touched; ++i) {
      visit(i, bank_free_[bank]);
      if (++bank == config_.banks) bank = 0;
    }
  };
  const Ps taken = std::max(now, port.free);  // by others
  Ps begin = taken;
  each_bank([&](std::uint64_t, Ps free) { begin = std::max(begin, free); });
  const std::uint64_t left = left_at(now);
  const auto stretched = [&](Ps time) { return left == kWhole ? time : time * kWhole / left; };
  // The first `longer` banks have a word more than the others.
  const std::uint64_t words = count / config_.banks, longer = count % config_.banks;
  const Ps time = words == 0 ? 0 : bank_.time_for(words * config_.bank_bytes);
  const Ps longest = longer == 0 ? time : bank_.time_for((words + 1) * config_.bank_bytes);  // streams apart
  const Ps most = begin + stretched(longest), least = begin + stretched(time);
  each_bank([&](std::uint64_t i, Ps& free) { free = i < longer ? most : least; });
  // The port goes on at its rate unless the streams leave less than that of all banks; this access's own words wait for
  // their turns.
  const Ps through = port_.time_for(bytes);
  port.free = begin + std::max(through, stretched(banks_.time_for(bytes)));
  TcmTraffic& traffic = port.traffic;
  traffic.accesses += packets;
  traffic.bytes += bytes;
  traffic.busy += port.free - begin;
  if (traffic.usage != nullptr) {
    if (taken > now) traffic.usage->wait(now, taken, static_cast<unsigned>(TcmWait::port));
    if (begin > taken) traffic.usage->wait(taken, begin, static_cast<unsigned>(TcmWait::bank));
    traffic.usage->busy(begin, port.free, bytes, packets);
  }
  const Ps turns = longest * (kWhole - left) / left;
  return std::max(port.free, begin + through + turns) + config_.latency;
}

Ps TcmTiming::stream(Ps now, Ps begin, Ps end, std::uint64_t bytes) {
  streamed_.bytes += bytes;
  streams_.erase(
      std::remove_if(streams_.begin(), streams_.end(), [&](const Stream& stream) { return stream.end <= now; }),
      streams_.end());
  if (bytes == 0 || end <= begin) {
    if (streamed_.usage != nullptr) streamed_.usage->busy(begin, begin, bytes, 0);
    return 0;
  }
  const Ps banks_time = banks_.time_for(bytes);
  const auto share = static_cast<std::uint64_t>(static_cast<unsigned __int128>(banks_time) * kWhole / (end - begin));
  std::uint64_t total = share;
  for (const Stream& stream : streams_) {
    if (stream.end > begin) total += stream.share;
  }
  const Ps longer =
      total <= kWhole ? 0 : static_cast<Ps>(static_cast<unsigned __int128>(end - begin) * (total - kWhole) / kWhole);
  streams_.push_back({begin, end + longer, std::min(share, kWhole)});
  const Ps busy = std::min(banks_time, end + longer - begin);
  ++streamed_.accesses;
  streamed_.busy += busy;
  if (streamed_.usage != nullptr) streamed_.usage->busy(begin, end + longer, busy, bytes, 1);
  return longer;
}

}  // namespace kernbench::pe
