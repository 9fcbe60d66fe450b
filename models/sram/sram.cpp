#include "models/sram/sram.h"

#include <algorithm>

#include "models/memory/memory_port.h"
#include "models/sram/bank_timing.h"
#include "tlm/ext/packet.h"
#include "tlm/machine/address.h"
#include "tlm/observe/usage.h"

namespace kernbench {

struct Sram::Impl final : MemoryBackend {
  Impl(Sram& module, const SramConfig& config, const RunOptions& options, EventQueue& queue, Observer* observer)
      : name(module.name()),
        config(config),
        options(options),
        queue(queue),
        observer(observer),
        timing(config),
        contents(options.debug),
        port(module.port, 0, *this, queue) {
    if (observer == nullptr) return;
    for (std::uint32_t i = 0; i < config.banks; ++i) {
      tracks.push_back(
          observer->add_track(name + ".bank" + std::to_string(i), TrackKind::state, {"idle", "read", "write"}));
    }
    queue_track = observer->add_track(name + ".queue", TrackKind::level);
  }

  bool take(unsigned, tlm::tlm_generic_payload& payload, Ps arrival) override {
    const std::optional<std::uint64_t> offset = locate(payload);
    if (!offset) {
      port.respond(payload, queue.now() + config.latency);
      return true;
    }
    if (in_service == config.queue_depth) {
      blocked = true;
      return false;
    }
    const Ps now = queue.now();
    const SramTiming::Span span = book(payload, *offset, now);
    if (Packet* packet = Packet::find(payload)) {
      const Ps total = span.end + config.latency - arrival;
      const Ps own = std::min(total, timing.service(*offset, payload.get_data_length()) + config.latency);
      packet->charge(Delay::memory, own);
      packet->charge(Delay::contention, total - own);
    }
    level(++in_service);
    queue.at(span.end, [this] { leave(); });
    Packet* packet = payload.is_read() ? Packet::find(payload) : nullptr;
    const Ps first = span.begin + timing.service(*offset, std::min(payload.get_data_length(), kMaxPacketBytes));
    port.respond(payload, answer_time(packet, first + config.latency, span.end + config.latency, now));
    return true;
  }

  Ps serve(unsigned, tlm::tlm_generic_payload& payload, Ps start) override {
    const std::optional<std::uint64_t> offset = locate(payload);
    return (offset ? book(payload, *offset, start).end : start) + config.latency;
  }

  unsigned debug(unsigned, tlm::tlm_generic_payload& payload) override {
    const std::optional<std::uint64_t> offset = locate(payload);
    if (!offset || !options.data) return 0;
    memory_access::apply(payload, *offset, contents);
    return payload.get_data_length();
  }

  /// Offset of the bytes; nothing if they cannot be served. Sets the response status. An Sram does not know which cube
  /// it belongs to: the network brings it its own addresses only.
  std::optional<std::uint64_t> locate(tlm::tlm_generic_payload& payload) const {
    std::uint64_t offset = ~std::uint64_t{0};  // another memory's
    const std::uint64_t fields = payload.get_address() - (payload.get_address() & PhysicalAddress::kMaxOffset);
    const std::uint64_t cube_mask = (std::uint64_t{1} << 43) - 1;  // kind, unit and offset: docs/memory.md
    if ((fields & cube_mask) == PhysicalAddress::sram({0, 0}, 0).encode())
      offset = payload.get_address() & PhysicalAddress::kMaxOffset;
    return memory_access::check(payload, offset, config.bytes);
  }

  SramTiming::Span book(tlm::tlm_generic_payload& payload, std::uint64_t offset, Ps start) {
    const std::uint32_t packets = packets_of(payload.get_data_length());
    served.requests += packets;
    served.bytes += payload.get_data_length();
    if (usage != nullptr) usage->busy(start, start, payload.get_data_length(), packets);
    if (options.data && !memory_access::apply(payload, offset, contents) && unwritten_reports++ < 10)
      memory_access::warn_unwritten(name, payload);
    return timing.book(offset, payload.get_data_length(), start, [&](unsigned bank, Ps begin, Ps end) {
      if (observer != nullptr && tracks[bank] != kNoTrack)
        observer->interval(tracks[bank], begin, end, payload.is_write() ? 2 : 1);
      served.busy += end - begin;
      if (usage == nullptr) return;
      if (begin > start) usage->wait(start, begin);
      usage->busy(begin, end, 0, 0);
    });
  }

  void leave() {
    level(--in_service);
    if (!blocked) return;
    blocked = false;
    port.retry();
  }
  void level(std::uint32_t now) {
    if (usage != nullptr) usage->level(now, queue.now());
    if (observer != nullptr && queue_track != kNoTrack) observer->change(queue_track, queue.now(), now);
  }

  const std::string name;
  const SramConfig config;
  const RunOptions options;
  EventQueue& queue;
  Observer* const observer;
  SramTiming timing;
  SparseMemory contents;
  MemoryPort port;
  Served served;
  Usage* usage = nullptr;
  std::uint32_t in_service = 0;
  bool blocked = false;
  std::vector<TrackId> tracks;
  TrackId queue_track = kNoTrack;
  unsigned unwritten_reports = 0;
};

Sram::Sram(const sc_core::sc_module_name& name, const SramConfig& config, const RunOptions& options, EventQueue& queue,
           Observer* observer)
    : sc_module(name), impl_(std::make_unique<Impl>(*this, config, options, queue, observer)) {}

Sram::~Sram() = default;
std::uint64_t Sram::bytes_moved() const { return impl_->served.bytes; }
const Sram::Served& Sram::served() const { return impl_->served; }
void Sram::observe_usage(Usage* usage) { impl_->usage = usage; }

}  // namespace kernbench
