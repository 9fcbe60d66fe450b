#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tlm>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "tlm/base/time.h"
#include "tlm/ext/packet.h"
#include "tlm/kernel/call.h"
#include "tlm/kernel/direction.h"
#include "tlm/kernel/launch.h"
#include "tlm/machine/address.h"

namespace kernbench {

/// One shard as the machine needs to know it; the runtime's ShardSpec maps onto it.
struct TensorShard {
  PeCoord owner;
  std::uint64_t offset_bytes = 0;  ///< in the tensor's shard-packed virtual range
  std::uint64_t nbytes = 0;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row = 0, col = 0;  ///< of its first element in the tensor
};

/// What one PE's kernel did with a ring: messages (of a slot at most) that it put in, or took out (less than 0).
struct RingCount {
  PeCoord owner;           ///< whose ring it is
  std::uint16_t ring = 0;  ///< its number there
  PeCoord sender;          ///< who fills it
  Direction direction;     ///< of the PE that counts
  std::int64_t messages = 0;
};

/// Who puts messages into a queue, as those know who take them out: a kernel that is no collective's, or `collective`,
/// whichever it is. The machine keeps each as long as itself.
struct QueueSender {
  std::string kernel;       ///< its name
  Direction direction;      ///< of the PE that sends
  bool collective = false;  ///< the other fields are empty then

  /// By name and direction.
  friend bool operator<(const QueueSender& a, const QueueSender& b) {
    return std::tie(a.kernel, a.direction) < std::tie(b.kernel, b.direction);
  }
};

/// Launches a kernel on `targets`, once on each. All targets start in one instant. `tensors` gives tl.shard() its
/// answers.
struct LaunchMessage {
  std::string kernel;                   ///< its name
  KernelEntry entry;                    ///< in the descriptor, with `call` but for what is alike for all of a group
  std::vector<std::uint8_t> arguments;  ///< behind the descriptor, at most kMaxArgumentBytes
  std::vector<PeCoord> targets;         ///< all on the SIP that the message is submitted to
  std::uint16_t group = 0;              ///< process group whose queues send and recv use
  std::uint16_t stream = 0;
  std::optional<CollectiveCall> call;
  /// A tensor among the arguments.
  struct TensorArg {
    Va base = 0;
    std::vector<TensorShard> shards;
    Shape shape{0, 0};  ///< of the tensor
  };
  std::vector<TensorArg> tensors;
  /// Its kernels run at least so long after it was submitted, unless one of them fails; 0: nothing is known.
  Ps least = 0;
  // Results.
  Ps first_start = kNever, last_end = 0;
  std::vector<RingCount> rings;  ///< of kernels that did not fail
};

/// Maps a byte-exact range of virtual addresses of the SIP. `viewers` empty: for every PE of the SIP; otherwise for
/// those PEs only (a replicated tensor maps the same VA to each PE's own copy).
struct MapEntry {
  Va va = 0;
  std::uint64_t bytes = 0;
  PhysicalAddress target;
  std::vector<PeCoord> viewers;
};
/// Adds ranges to page tables.
struct MmuMapMessage {
  std::vector<MapEntry> entries;
};
/// Takes a range away from the page tables that have it.
struct MmuUnmapMessage {
  Va va = 0;
  std::uint64_t bytes = 0;
};

/// One queue pair of a PE, as written into its special function registers.
struct NeighbourEntry {
  PeCoord self;
  std::uint16_t group = 0;
  Direction direction;
  std::uint16_t ring = 0;          ///< own receive ring, numbered per PE over all groups
  std::uint16_t queue = 0;         ///< own send queue, likewise; by convention equal to `ring`
  PeCoord peer;                    ///< whom `send(direction)` reaches
  std::uint16_t peer_ring = 0;     ///< its ring that our data go to
  PeCoord source;                  ///< whose data `recv(direction)` takes
  std::uint16_t source_queue = 0;  ///< its send queue: our credits go there
  std::uint16_t slots = 4;
  std::uint32_t slot_bytes = 4096;
  PhysicalAddress ring_base;       ///< of the own ring: TCM (of self), SRAM or HBM
  PhysicalAddress peer_ring_base;  ///< of the peer's
};
/// Writes the queue pairs of PEs: their special function registers.
struct SfrWriteMessage {
  std::vector<NeighbourEntry> entries;
};

/// A program for PEs, in parts that fit a command packet each. It takes the place of what a PE had under its number.
struct ProgramMessage {
  ProgramId id{};
  std::shared_ptr<const Program> program;
  /// What one PE gets.
  struct Part {
    PeCoord pe;
    std::uint32_t bytes = 0;
  };
  std::vector<Part> parts;  ///< by PE
};
ProgramMessage program_message(ProgramId id, std::shared_ptr<const Program> program, const std::vector<PeCoord>& pes);

/// Host copies over the timed path (PCIE_EP as the initiator); `data` is read or filled.
struct MemoryWriteMessage {
  PhysicalAddress to;
  std::vector<std::uint8_t> data;
};
/// The other way.
struct MemoryReadMessage {
  PhysicalAddress from;
  std::vector<std::uint8_t> data;
  std::uint64_t bytes = 0;
};

/// Why a message failed: the component, kernel, op and reason, at a simulated time.
struct Fault {
  /// Where it was found.
  enum class Kind : std::uint8_t { kernel, mmu, bus, ipcq, out_of_memory };
  Kind kind = Kind::kernel;
  std::string component, kernel, op, reason;
  Ps time = 0;
  /// "sip0.cube3.pe5: MMU fault in kernel 'gemm', op load(...), at 12.345 ns: <reason>"
  std::string str() const;
};
const char* to_string(Fault::Kind kind);

/// One message from the host to a SIP. Owned by the host until its completion comes back; results and faults are
/// written into it. Travels as a generic payload with a MessageExtension, over sip<k>.io0.pcie_ep's host socket.
struct Message {
  std::uint64_t id = 0;  ///< unique in the run, in order of submission
  std::uint16_t sip = 0;
  std::uint16_t stream = 0;
  std::variant<LaunchMessage, MmuMapMessage, MmuUnmapMessage, SfrWriteMessage, ProgramMessage, MemoryWriteMessage,
               MemoryReadMessage>
      body;
  std::vector<Fault> faults;
  Ps submitted = 0, completed = 0;
  /// Host copies: where the time of the burst that ended last went; adds up to completed - submitted.
  std::array<Ps, kDelays> spent{};
};

/// Sizes of what a message carries, over PCIe and in command packets, in bytes. assumed: a 64 B descriptor (of a
/// launch: the kernel's address, stream, group and number of argument bytes, and of a collective its operation, types,
/// root, peers and tensors, some 60 B); 24 B per mapping (VA, length, PA), one 64 B register block per queue pair. A
/// launch's arguments are as long as they are.
inline constexpr std::uint32_t kCommandBytes = 64, kMapEntryBytes = 24, kSfrEntryBytes = 64;
/// Entries that fit one command packet beside its descriptor.
inline constexpr std::uint32_t kMapEntriesPerPacket = (kMaxPacketBytes - kCommandBytes) / kMapEntryBytes;
inline constexpr std::uint32_t kSfrEntriesPerPacket = (kMaxPacketBytes - kCommandBytes) / kSfrEntryBytes;
/// Of a program, in one packet.
inline constexpr std::uint32_t kProgramBytesPerPacket = kMaxPacketBytes - kCommandBytes;
/// Packets that so many bytes of descriptor and arguments take on their way; every one is a command to handle.
inline constexpr std::uint32_t command_packets(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + kMaxPacketBytes - 1) / kMaxPacketBytes);
}
/// Descriptor and entries; the data of a host copy travel beside it.
std::uint64_t message_bytes(const Message& message);
/// "launch", "mmu_map", "mmu_unmap", "sfr_write", "program", "memory_write", "memory_read".
const char* message_kind(const Message& message);

/// Carries a Message on a generic payload between host and PCIE_EP (BEGIN_REQ forward, BEGIN_RESP back when complete).
struct MessageExtension final : tlm::tlm_extension<MessageExtension> {
  Message* message = nullptr;
  tlm_extension_base* clone() const override { return new MessageExtension(*this); }
  void copy_from(const tlm_extension_base& other) override { *this = static_cast<const MessageExtension&>(other); }
};

/// What travels between IO_CPU, M_CPUs and PE_CPUs in packets of kind `command`. A command
/// lives in the buffer of the payload that carries it (put_command).
enum class CommandKind : std::uint8_t {
  arm,
  armed,
  start,
  done,
  sfr_write,
  program,
  mmu_map,
  mmu_unmap,
  finished,
  failed,
  abort
};
/// One command or answer of the control path.
struct Command {
  CommandKind kind = CommandKind::arm;
  Message* message = nullptr;
  PeCoord pe;                ///< target of a command to a PE; sender of an answer from one
  Ps start = 0;              ///< kind start: the common start time
  std::uint32_t bytes = 64;  ///< size on the wire; entries of a table count
  /// Kind sfr_write, program, mmu_map: the entries or parts of the message that it carries. arm: `count` packets make
  /// up the command; armed, finished: so many commands are answered.
  std::uint32_t first = 0, count = 0;
};

/// Calls send(command) for every packet of a command of `bytes`, which is longer than one packet may be.
template <class Send>
void each_packet(Command command, std::uint64_t bytes, Send&& send) {
  command.count = command_packets(bytes);
  for (std::uint64_t sent = 0; sent < bytes; sent += kMaxPacketBytes) {
    command.bytes = static_cast<std::uint32_t>(bytes - sent < kMaxPacketBytes ? bytes - sent : kMaxPacketBytes);
    send(command);
  }
}

/// Writes `command` into the payload's own buffer, where it lives as long as the payload does: a receiver copies what
/// it needs before it releases the payload. REQUIRES: `payload` came from a PayloadPool.
inline void put_command(tlm::tlm_generic_payload& payload, const Command& command) {
  static_assert(std::is_trivially_copyable_v<Command> && sizeof(Command) <= kMaxPacketBytes);
  Packet& packet = Packet::of(payload);
  packet.kind = PacketKind::command;
  packet.bytes = command.bytes;
  packet.command = new (payload.get_data_ptr()) Command(command);
}

}  // namespace kernbench
