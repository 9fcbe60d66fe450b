#include "tlm/ext/message.h"

#include <fmt/format.h>

#include <utility>

namespace kernbench {

const char* to_string(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kernel:
      return "kernel error";
    case Fault::Kind::mmu:
      return "MMU fault";
    case Fault::Kind::bus:
      return "bus error";
    case Fault::Kind::ipcq:
      return "IPCQ error";
    case Fault::Kind::out_of_memory:
      return "out of memory";
  }
  return "?";
}

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;
}  // namespace

std::uint64_t message_bytes(const Message& message) {
  const Overloaded size{
      [](const LaunchMessage& launch) { return launch.arguments.size(); },
      [](const MmuMapMessage& map) { return kMapEntryBytes * map.entries.size(); },
      [](const SfrWriteMessage& sfr) { return kSfrEntryBytes * sfr.entries.size(); },
      [](const ProgramMessage& program) {
        std::size_t bytes = 0;
        for (const ProgramMessage::Part& part : program.parts) bytes += part.bytes;
        return bytes;
      },
      [](const auto&) { return std::size_t{0}; },
  };
  return kCommandBytes + std::visit(size, message.body);
}

ProgramMessage program_message(ProgramId id, std::shared_ptr<const Program> program, const std::vector<PeCoord>& pes) {
  ProgramMessage message{id, std::move(program), {}};
  for (const PeCoord pe : pes) {
    for (std::uint64_t left = message.program->bytes(pe); left > 0;) {
      const auto bytes = static_cast<std::uint32_t>(left < kProgramBytesPerPacket ? left : kProgramBytesPerPacket);
      message.parts.push_back({pe, bytes});
      left -= bytes;
    }
  }
  return message;
}

const char* message_kind(const Message& message) {
  const Overloaded kind{
      [](const LaunchMessage&) { return "launch"; },          [](const MmuMapMessage&) { return "mmu_map"; },
      [](const MmuUnmapMessage&) { return "mmu_unmap"; },     [](const SfrWriteMessage&) { return "sfr_write"; },
      [](const ProgramMessage&) { return "program"; },        [](const MemoryWriteMessage&) { return "memory_write"; },
      [](const MemoryReadMessage&) { return "memory_read"; },
  };
  return std::visit(kind, message.body);
}

std::string Fault::str() const {
  std::string text = fmt::format("{}: {}", component, to_string(kind));
  if (!kernel.empty()) text += fmt::format(" in kernel '{}'", kernel);
  if (!op.empty()) text += fmt::format(", op {}", op);
  return text + fmt::format(", at {}.{:03} ns: {}", time / kPsPerNs, time % kPsPerNs, reason);
}

}  // namespace kernbench
