#include "models/io/pcie_ep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <stdexcept>
#include <utility>
#include <variant>

#include "models/io/host_memory.h"
#include "models/io/host_record.h"
#include "models/io/pcie_link.h"
#include "tlm/ext/message.h"
#include "tlm/machine/names.h"
#include "tlm/observe/cause.h"
#include "tlm/observe/usage.h"
#include "tlm/sim/annotation.h"
#include "tlm/sim/serial_server.h"

namespace kernbench {

/// A message crosses the link (PcieDirection), costs one doorbell, then goes to IO_CPU as command packets, or is
/// carried out here as bursts of at most 256 B if it is a host copy. Messages of one stream keep their order: a copy
/// waits for everything before it, everything waits for a copy. Completion crosses the link as one TLP without payload.
struct PcieEp::Impl : public tlm::tlm_bw_transport_if<> {
  Impl(PcieEp& module, const PcieConfig& config, std::uint16_t sip, const MachineMap& map, PayloadPool& pool,
       const RunOptions& options, EventQueue& queue, Observer* observer)
      : module(module),
        config(config),
        sip(sip),
        map(map),
        self(map.pcie_ep(sip)),
        pool(pool),
        options(options),
        queue(queue),
        observer(observer),
        down(config),
        up(config),
        server(queue, names::pcie_ep(sip)),
        host_side(*this),
        network_side(*this),
        memory(sip, options.data) {
    module.host.bind(host_side);
    module.in.bind(network_side);
    module.out.bind(*this);
    queue.set_silent_until([this] { return silent_until(); });
    if (observer == nullptr) return;
    down_track = observer->add_track(names::pcie_ep(sip) + ".down_busy", TrackKind::state, {"idle", "busy"});
    up_track = observer->add_track(names::pcie_ep(sip) + ".up_busy", TrackKind::state, {"idle", "busy"});
  }

  /// REQUIRES: of one direction, calls in order of `now`. What the host submits counts by its clock, answers to devices
  /// that access its memory by the SIP's, which may be ahead by as much as the host's way: where both happen at once,
  /// only SIPs in step keep that order. No op of Tl accesses host memory, and foreign parts keep SIPs in step.
  PcieDirection::Slot take(PcieDirection& direction, TrackId track, std::uint64_t bytes) {
    return take(direction, track, bytes, queue.now());
  }
  PcieDirection::Slot take(PcieDirection& direction, TrackId track, std::uint64_t bytes, Ps now) {
    const PcieDirection::Slot slot = direction.take(now, bytes);
    if (track != kNoTrack) observer->interval(track, slot.begin, slot.end, 1);
    if (Usage* usage = &direction == &down ? down_usage : up_usage) {
      if (slot.begin > now) usage->wait(now, slot.begin);
      usage->busy(slot.begin, slot.end, bytes, slot.tlps);
    }
    return slot;
  }

  // Host side.

  struct HostSide : public tlm::tlm_fw_transport_if<> {
    explicit HostSide(Impl& ep) : ep(ep) {}
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time& delay) override {
      const auto* extension = payload.get_extension<MessageExtension>();
      if (phase == tlm::END_RESP) return tlm::TLM_COMPLETED;
      if (phase != tlm::BEGIN_REQ || extension == nullptr || extension->message == nullptr) {
        payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
        return tlm::TLM_COMPLETED;
      }
      if (payload.has_mm()) payload.acquire();
      ep.submit(payload, *extension->message, std::max(ep.queue.host_now(), instant(delay)));
      phase = tlm::END_REQ;
      return tlm::TLM_UPDATED;
    }
    /// A message takes simulated time, and nothing here may wait.
    void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time&) override {
      payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);
    }
    bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload& payload) override { return ep.debug(payload); }
    Impl& ep;
  };

  void submit(tlm::tlm_generic_payload& payload, Message& message, Ps now) {
    message.submitted = now;
    std::uint64_t bytes = message_bytes(message);
    if (const auto* write = std::get_if<MemoryWriteMessage>(&message.body)) bytes += write->data.size();
    const PcieDirection::Slot slot = take(down, down_track, bytes, now);
    Incoming* incoming = &incomings.emplace(message.id, Incoming{&payload, &message, slot, {}}).first->second;
    // The doorbell is rung by the descriptor, which travels first; the data of a write stream in behind it.
    const Ps rung = down.sent(slot, message_bytes(message)) + down.latency();
    if (CauseLog* log = queue.causes()) {
      const Cause host =
          log->step(Spent::host, log->place(host_place, [] { return std::string("host"); }), now, log->host);
      incoming->cause = log->step(Spent::pcie, link_at(*log), rung, host);
    }
    queue.from_host(rung, [this, incoming] {
      if (CauseLog* log = queue.causes()) log->current = incoming->cause;
      server.add(config.doorbell, [this, incoming] {
        Stream& stream = streams[incoming->message->stream];
        stream.waiting.push_back(incoming);
        dispatch(stream);
      });
    });
  }

  /// When an answer to the host may leave at the soonest, by what launches say of themselves.
  Ps silent_until() const {
    Ps soonest = kNever;
    for (const auto& [id, incoming] : incomings) soonest = std::min(soonest, least_end(*incoming.message));
    return soonest;
  }
  static Ps least_end(const Message& message) {
    const auto* launch = std::get_if<LaunchMessage>(&message.body);
    return message.submitted + (launch == nullptr ? 0 : launch->least);
  }

  /// A message as it came from the host.
  struct Incoming {
    tlm::tlm_generic_payload* payload;
    Message* message;
    PcieDirection::Slot slot;
    Cause cause;  ///< of what happened to it last: its doorbell, or its answer
  };
  struct Stream {
    std::deque<Incoming*> waiting;
    std::uint32_t at_io_cpu = 0;
    bool copying = false;
  };

  void dispatch(Stream& stream) {
    while (!stream.waiting.empty() && !stream.copying) {
      Incoming& incoming = *stream.waiting.front();
      if (is_copy(*incoming.message)) {
        if (stream.at_io_cpu > 0) return;
        stream.copying = true;
        stream.waiting.pop_front();
        begin_copy(incoming);
      } else {
        ++stream.at_io_cpu;
        stream.waiting.pop_front();
        forward(incoming);
      }
    }
  }

  /// The tags number the messages, so that IO_CPU can put them in order whatever the network did.
  void forward(const Incoming& incoming) {
    const std::uint32_t tag = next_tag++;
    Command command;
    command.message = incoming.message;
    command.pe = {sip, 0, 0};
    command.kind = kind_of(*incoming.message);
    each_packet(command, message_bytes(*incoming.message), [&](const Command& packet_command) {
      tlm::tlm_generic_payload& payload = pool.acquire();
      payload.set_command(tlm::TLM_IGNORE_COMMAND);
      put_command(payload, packet_command);
      Packet& packet = Packet::of(payload);
      packet.destination = map.io_cpu(sip);
      packet.message_class = MessageClass::command;
      packet.tag = tag;
      inject(payload);
      payload.release();
    });
  }

  static CommandKind kind_of(const Message& message) {
    if (std::holds_alternative<MmuMapMessage>(message.body)) return CommandKind::mmu_map;
    if (std::holds_alternative<MmuUnmapMessage>(message.body)) return CommandKind::mmu_unmap;
    if (std::holds_alternative<SfrWriteMessage>(message.body)) return CommandKind::sfr_write;
    if (std::holds_alternative<ProgramMessage>(message.body)) return CommandKind::program;
    return CommandKind::arm;
  }

  std::uint32_t link_at(CauseLog& log) {
    return log.place(link_place, [this] { return names::pcie_ep(sip); });
  }

  void inject(tlm::tlm_generic_payload& payload) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue.now());
    module.out->nb_transport_fw(payload, phase, delay);
  }

  /// The message is complete here: tells the host, with one TLP.
  void complete(Message& message) {
    if (message.faults.empty() && queue.now() < least_end(message)) {
      throw std::logic_error(fmt::format("kernel '{}' ended before the least time that its launch gave",
                                         std::get<LaunchMessage>(message.body).kernel));
    }
    Stream& stream = streams.at(message.stream);
    if (is_copy(message)) {
      stream.copying = false;
    } else {
      --stream.at_io_cpu;
    }
    notify(message, take(up, up_track, 0).arrival);
    dispatch(stream);
  }

  void notify(Message& message, Ps time) {
    Message* pointer = &message;
    if (CauseLog* log = queue.causes())
      incomings.at(message.id).cause = log->step(Spent::pcie, link_at(*log), time, log->current);
    queue.at_host(time, [this, pointer] { answer(*pointer); });
  }

  void answer(Message& message) {
    const auto found = incomings.find(message.id);
    tlm::tlm_generic_payload& payload = *found->second.payload;
    message.completed = queue.host_now();
    const auto* launch = std::get_if<LaunchMessage>(&message.body);
    const char* kernel = launch == nullptr ? nullptr : launch->kernel.c_str();
    if (CauseLog* log = queue.causes())
      log->heard(found->second.cause, kernel, sip, message.submitted, launch == nullptr ? 0 : launch->first_start);
    incomings.erase(found);
    if (observer != nullptr && observer->wants_ops()) observer->op(host_record(message, sip));
    payload.set_response_status(message.faults.empty() ? tlm::TLM_OK_RESPONSE : tlm::TLM_GENERIC_ERROR_RESPONSE);
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = annotation(message.completed);
    module.host->nb_transport_bw(payload, phase, delay);
    if (payload.has_mm()) payload.release();
  }

  // Host copies.

  /// A host copy under way, cut into bursts that do not cross a multiple of kMaxPacketBytes.
  struct Copy {
    Message* message;
    bool write;
    PhysicalAddress address;  ///< of the first byte
    NodeId memory;
    std::uint64_t bytes;
    PcieDirection::Slot slot;         ///< of a write: descriptor and data on the link
    std::uint64_t before;             ///< bytes of the descriptor
    std::uint64_t next = 0;           ///< bytes issued
    std::uint64_t finished = 0;       ///< bytes acknowledged
    Ps host_end = 0;                  ///< of a read: last data TLP has arrived at the host
    std::array<Ps, kDelays> spent{};  ///< of the burst that ended last
  };

  void begin_copy(Incoming& incoming) {
    Message& message = *incoming.message;
    Copy copy{};
    copy.message = &message;
    copy.slot = incoming.slot;
    copy.before = message_bytes(message);
    if (auto* write = std::get_if<MemoryWriteMessage>(&message.body)) {
      copy.write = true;
      copy.address = write->to;
      copy.bytes = write->data.size();
    } else {
      auto& read = std::get<MemoryReadMessage>(message.body);
      copy.write = false;
      copy.address = read.from;
      copy.bytes = read.bytes;
    }
    copy.memory = map.resolve(copy.address);
    PhysicalAddress last = copy.address;
    last.offset += copy.bytes == 0 ? 0 : copy.bytes - 1;
    if (copy.memory == kNoNode || copy.memory == self || map.resolve(last) != copy.memory) {
      message.faults.push_back(
          fault(message, fmt::format("{} and {} bytes from there are not in one memory of this machine",
                                     copy.address.str(), copy.bytes)));
      return complete(message);
    }
    if (!copy.write) std::get<MemoryReadMessage>(message.body).data.assign(copy.bytes, 0);
    if (copy.bytes == 0) return complete(message);
    copies.push_back(copy);
    pump();
  }

  Fault fault(const Message& message, std::string reason) const {
    Fault fault;
    fault.kind = Fault::Kind::bus;
    fault.component = names::pcie_ep(sip);
    fault.op = message_kind(message);
    fault.reason = std::move(reason);
    fault.time = queue.now();
    return fault;
  }

  /// Issues bursts, oldest copy first, as far as the limit allows and the host's data have arrived.
  void pump() {
    Ps wake = kNever;
    for (Copy& copy : copies) {
      while (copy.next < copy.bytes && in_flight < config.outstanding) {
        const std::uint64_t offset = copy.address.offset + copy.next;
        const std::uint64_t n =
            std::min<std::uint64_t>(copy.bytes - copy.next, kMaxPacketBytes - offset % kMaxPacketBytes);
        const Ps there = copy.write ? down.sent(copy.slot, copy.before + copy.next + n) + down.latency() : 0;
        if (there > queue.now()) {
          wake = std::min(wake, there);
          break;
        }
        issue(copy, offset, static_cast<std::uint32_t>(n));
        copy.next += n;
      }
    }
    if (wake != kNever && (wake < next_wake || next_wake <= queue.now())) {
      next_wake = wake;
      if (const CauseLog* log = queue.causes()) pumped = log->current;
      queue.at(wake, [this] {
        if (CauseLog* log = queue.causes()) log->current = log->step(Spent::pcie, link_at(*log), queue.now(), pumped);
        pump();
      });
    }
  }

  void issue(Copy& copy, std::uint64_t offset, std::uint32_t n) {
    PhysicalAddress address = copy.address;
    address.offset = offset;
    tlm::tlm_generic_payload& payload = pool.acquire();
    payload.set_command(copy.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address.encode());
    payload.set_data_length(n);
    payload.set_streaming_width(n);
    if (copy.write && options.data) {
      const auto& data = std::get<MemoryWriteMessage>(copy.message->body).data;
      std::memcpy(payload.get_data_ptr(), data.data() + (offset - copy.address.offset), n);
    }
    Packet& packet = Packet::of(payload);
    packet.destination = copy.memory;
    packet.message_class = MessageClass::request;
    packet.kind = copy.write ? PacketKind::write : PacketKind::read;
    packet.bytes = copy.write ? n : 0;
    packet.op = copy.message->id;
    packet.user = &copy;
    ++in_flight;
    inject(payload);
  }

  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    if (phase != tlm::BEGIN_RESP) return tlm::TLM_ACCEPTED;
    burst_done(payload);
    payload.release();  // after it has issued others: this one is not theirs before its transaction has ended
    return tlm::TLM_COMPLETED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  void burst_done(tlm::tlm_generic_payload& payload) {
    const Packet& packet = Packet::of(payload);
    Copy& copy = *static_cast<Copy*>(packet.user);
    const std::uint32_t n = payload.get_data_length();
    const std::uint64_t offset = PhysicalAddress::decode(payload.get_address()).offset - copy.address.offset;
    --in_flight;
    copy.finished += n;
    queue.completed();
    copy.spent = packet.spent;
    if (payload.get_response_status() != tlm::TLM_OK_RESPONSE) {
      copy.message->faults.push_back(
          fault(*copy.message, fmt::format("{} answered {} to {} bytes at offset {:#x}", map.name(copy.memory),
                                           payload.get_response_string(), n, copy.address.offset + offset)));
    } else if (!copy.write) {
      if (options.data) {
        auto& data = std::get<MemoryReadMessage>(copy.message->body).data;
        std::memcpy(data.data() + offset, payload.get_data_ptr(), n);
      }
      copy.host_end = take(up, up_track, n).arrival;
    }
    if (copy.finished == copy.bytes) end_copy(copy);
    pump();
  }

  void end_copy(Copy& copy) {
    Message& message = *copy.message;
    const bool read = !copy.write && message.faults.empty();
    Stream& stream = streams.at(message.stream);
    stream.copying = false;
    const Ps end = read ? copy.host_end : take(up, up_track, 0).arrival;
    const Ps wire = down.occupancy(message_bytes(message) + (copy.write ? copy.bytes : 0)) +
                    up.occupancy(copy.write ? 0 : copy.bytes);
    account_copy(message, copy.spent, {config.doorbell, 2 * config.latency, wire}, end);
    copies.remove_if([&](const Copy& other) { return &other == &copy; });
    notify(message, end);
    dispatch(stream);
  }

  // Network side: answers of IO_CPU, and requests to host memory.

  struct NetworkSide : public tlm::tlm_fw_transport_if<> {
    explicit NetworkSide(Impl& ep) : ep(ep) {}
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
      if (phase != tlm::BEGIN_REQ) return tlm::TLM_COMPLETED;
      const Packet* packet = Packet::find(payload);
      if (packet != nullptr && packet->kind == PacketKind::command) {
        payload.set_response_status(tlm::TLM_OK_RESPONSE);
        ep.complete(*packet->command->message);
        return tlm::TLM_COMPLETED;
      }
      payload.acquire();
      ep.host_access(payload);
      phase = tlm::END_REQ;
      return tlm::TLM_UPDATED;
    }
    void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) override {
      const std::uint32_t n = payload.get_data_length();
      const bool write = payload.is_write();
      delay += sc_core::sc_time::from_value(2 * ep.config.latency + ep.up.occupancy(write ? n : 0) +
                                            ep.down.occupancy(write ? 0 : n));
      ep.memory.access(payload);
    }
    bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload& payload) override { return ep.memory.access(payload); }
    Impl& ep;
  };

  /// A device's request to host memory: up the link, and the data or the acknowledgement back down.
  void host_access(tlm::tlm_generic_payload& payload) {
    const std::uint32_t n = payload.get_data_length();
    const PcieDirection::Slot request = take(up, up_track, payload.is_write() ? n : 0);
    tlm::tlm_generic_payload* pointer = &payload;
    if (Packet* packet = Packet::find(payload)) {
      packet->charge(Delay::contention, request.begin - queue.now());
      packet->charge(Delay::wire, request.end - request.begin);
      packet->charge(Delay::fabric, up.latency());
    }
    queue.at(request.arrival, [this, pointer] {
      const std::uint32_t bytes = pointer->get_data_length();
      const PcieDirection::Slot response = take(down, down_track, pointer->is_write() ? 0 : bytes);
      if (Packet* packet = Packet::find(*pointer)) {
        packet->charge(Delay::contention, response.begin - queue.now());
        packet->charge(Delay::wire, response.end - response.begin);
        packet->charge(Delay::fabric, down.latency());
      }
      queue.at(response.arrival, [this, pointer] { respond(*pointer); });
    });
  }

  void respond(tlm::tlm_generic_payload& payload) {
    memory.access(payload);
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = annotation(queue.now());
    module.in->nb_transport_bw(payload, phase, delay);
    payload.release();
  }

  unsigned debug(tlm::tlm_generic_payload& payload) {
    return map.resolve(payload.get_address()) == self ? memory.access(payload) : module.out->transport_dbg(payload);
  }

  PcieEp& module;
  const PcieConfig config;
  const std::uint16_t sip;
  const MachineMap& map;
  const NodeId self;
  PayloadPool& pool;
  const RunOptions options;
  EventQueue& queue;
  Observer* observer;
  TrackId down_track = kNoTrack, up_track = kNoTrack;
  Usage *down_usage = nullptr, *up_usage = nullptr;
  CausePlace host_place, link_place;
  Cause pumped;
  PcieDirection down, up;  ///< from the host, to the host
  SerialServer server;
  HostSide host_side;
  NetworkSide network_side;
  HostMemory memory;

  std::uint32_t next_tag = 0;
  std::map<std::uint64_t, Incoming> incomings;  ///< by message id, until answered
  std::map<std::uint16_t, Stream> streams;
  std::list<Copy> copies;
  std::uint32_t in_flight = 0;  ///< bursts
  Ps next_wake = 0;
};

PcieEp::PcieEp(const sc_core::sc_module_name& name, const PcieConfig& config, std::uint16_t sip, const MachineMap& map,
               PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer)
    : sc_module(name), impl_(std::make_unique<Impl>(*this, config, sip, map, pool, options, queue, observer)) {}

PcieEp::~PcieEp() = default;

void PcieEp::observe_usage(Usage* down, Usage* up) {
  impl_->down_usage = down;
  impl_->up_usage = up;
}
const PcieStats& PcieEp::down_stats() const { return impl_->down.stats(); }
const PcieStats& PcieEp::up_stats() const { return impl_->up.stats(); }

}  // namespace kernbench
