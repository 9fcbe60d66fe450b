#include "models/pe/services.h"

#include <algorithm>

#include "tlm/machine/names.h"
#include "tlm/sim/annotation.h"

namespace kernbench::pe {

namespace {
MessageClass class_of(PacketKind kind) {
  switch (kind) {
    case PacketKind::ipcq_data:
      return MessageClass::ipcq_data;
    case PacketKind::ipcq_credit:
      return MessageClass::credit;
    case PacketKind::command:
      return MessageClass::response;  // a PE only sends answers
    default:
      return MessageClass::request;
  }
}
}  // namespace

tlm::tlm_generic_payload& Services::payload(PacketKind kind, NodeId destination, std::uint64_t address,
                                            std::uint32_t bytes) {
  tlm::tlm_generic_payload& payload = pool.acquire(options.data ? bytes : 0);
  // The base protocol knows no access of no data; a message of a queue may have none.
  payload.set_command(bytes == 0                 ? tlm::TLM_IGNORE_COMMAND
                      : kind == PacketKind::read ? tlm::TLM_READ_COMMAND
                                                 : tlm::TLM_WRITE_COMMAND);
  payload.set_address(address);
  payload.set_data_length(bytes);
  payload.set_streaming_width(std::max(bytes, 1U));
  Packet& packet = Packet::of(payload);
  packet.destination = destination;
  packet.kind = kind;
  packet.message_class = class_of(kind);
  packet.bytes = kind == PacketKind::read ? 0 : bytes;
  return payload;
}

void Services::check_races(const Message& launch, const std::string& kernel, const RaceDetector::Text& op,
                           const PhysicalAddress& at, std::uint64_t bytes, bool write) {
  std::vector<RaceDetector::Race> found;
  races->access(launch, coord, op, at, bytes, write, found);
  for (const RaceDetector::Race& race : found) {
    if (races->count(kernel, race))
      SC_REPORT_WARNING("kernbench/race", ("kernel '" + kernel + "': " + race.str()).c_str());
  }
}

std::uint32_t Services::place(CauseLog& log, Part part) {
  static constexpr const char* kParts[] = {"cpu", "dma_r", "dma_w", "gemm", "math", "tcm"};
  const auto number = static_cast<std::size_t>(part);
  return log.place(places[number], [&] { return names::pe_part(coord, kParts[number]); });
}

void Services::inject(tlm::tlm_generic_payload& payload) {
  tlm::tlm_phase phase = tlm::BEGIN_REQ;
  sc_core::sc_time delay = annotation(now());
  const bool one_way = is_one_way(Packet::of(payload).kind);
  const tlm::tlm_sync_enum answer = out->nb_transport_fw(payload, phase, delay);
  sc_assert(answer == (one_way ? tlm::TLM_COMPLETED : tlm::TLM_UPDATED));
  (void)answer;
  if (one_way) payload.release();
}

}  // namespace kernbench::pe
