#include "models/pe/tcm/tcm_port.h"

#include <stdexcept>

#include "tlm/machine/names.h"

namespace kernbench::pe {

bool TcmPort::take(unsigned, tlm::tlm_generic_payload& payload, Ps arrival) {
  const std::optional<std::uint64_t> offset = locate(payload);
  const Ps now = services_.now();
  if (!offset) {
    port_.respond(payload, now);
    return true;
  }
  if (in_service_ == services_.config.tcm.queue_depth) {
    blocked_ = true;
    return false;
  }
  const Ps end = book(payload, *offset, now);
  if (Packet* packet = Packet::find(payload)) {
    const Ps own =
        Rate(services_.config.tcm.bytes_per_second).time_for(payload.get_data_length()) + services_.config.tcm.latency;
    const Ps total = end - arrival;
    packet->charge(Delay::memory, std::min(own, total));
    packet->charge(Delay::contention, total - std::min(own, total));
  }
  ++in_service_;
  port_.respond(payload, answer_time(payload.is_read() ? Packet::find(payload) : nullptr,
                                     end - services_.streamed(payload.get_data_length()), end, now));
  services_.queue.at(end, [this] {
    --in_service_;
    if (!blocked_) return;
    blocked_ = false;
    port_.retry();
  });
  return true;
}

Ps TcmPort::serve(unsigned, tlm::tlm_generic_payload& payload, Ps start) {
  const std::optional<std::uint64_t> offset = locate(payload);
  return offset ? book(payload, *offset, start) : start;
}

unsigned TcmPort::debug(unsigned, tlm::tlm_generic_payload& payload) {
  const std::optional<std::uint64_t> offset = locate(payload);
  if (!offset || !services_.options.data) return 0;
  memory_access::apply(payload, *offset, services_.tcm.contents());
  return payload.get_data_length();
}

/// Moves the data; when the access is complete.
Ps TcmPort::book(tlm::tlm_generic_payload& payload, std::uint64_t offset, Ps start) {
  if (services_.options.data && !memory_access::apply(payload, offset, services_.tcm.contents()) &&
      services_.unwritten_reports++ < 10)
    memory_access::warn_unwritten(names::pe_part(services_.coord, "tcm"), payload);
  const std::uint32_t bytes = payload.get_data_length(), packets = packets_of(bytes);
  return payload.is_read() ? services_.tcm.reserve_read(start, offset, bytes, packets)
                           : services_.tcm.reserve_write(start, offset, bytes, packets);
}

std::optional<std::uint64_t> TcmPort::locate(tlm::tlm_generic_payload& payload) const {
  try {
    const PhysicalAddress address = PhysicalAddress::decode(payload.get_address());
    if (address.kind == MemoryKind::tcm && PeCoord{address.sip, address.cube, address.unit} == services_.coord) {
      return memory_access::check(payload, address.offset, services_.tcm.bytes());
    }
  } catch (const std::invalid_argument&) {  // the bits name no memory
  }
  payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  return std::nullopt;
}

}  // namespace kernbench::pe
