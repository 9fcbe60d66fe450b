#include "models/m_cpu/m_cpu.h"

#include <algorithm>
#include <map>
#include <variant>

#include "tlm/ext/command_port.h"
#include "tlm/machine/names.h"

namespace kernbench {

/// Fans each command of IO_CPU out to PEs, in PE order, and answers when their answers are in. Every command that is
/// received or sent holds the CPU for `command`; those of a start go before all others.
struct MCpu::Impl {
  Impl(MCpu& module, const MCpuConfig& config, CubeCoord cube, const MachineMap& map, PayloadPool& pool,
       EventQueue& queue, Observer* observer)
      : config(config),
        cube(cube),
        map(map),
        server(queue, names::m_cpu(cube)),
        port(pool, queue, module.out, module.in, [this](const Command& c, std::uint32_t) { receive(c); }) {
    for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) {
      if (map.has({cube.sip, cube.cube, pe})) pes.push_back({cube.sip, cube.cube, pe});
    }
    server.observe(observer);
  }

  /// A message that this cube works on.
  struct Work {
    std::vector<PeCoord> running;   ///< launch: targets that accepted it, then those that have not ended
    std::uint32_t pending = 0;      ///< answers of PEs that are outstanding
    std::uint32_t owed = 0;         ///< table commands received and not yet answered
    std::uint32_t arm_packets = 0;  ///< received, of the command's
    bool armed = false, failure_sent = false;
  };

  void receive(const Command& command) {
    server.add(
        config.command, [this, command] { handle(command); }, command.kind == CommandKind::start);
  }

  void handle(const Command& command) {
    switch (command.kind) {
      case CommandKind::arm:
        return arm(command);
      case CommandKind::start:
      case CommandKind::abort:
        return to_running(command);
      case CommandKind::sfr_write:
      case CommandKind::program:
      case CommandKind::mmu_map:
      case CommandKind::mmu_unmap:
        return distribute(command);
      case CommandKind::armed:
        return armed(command, true);
      case CommandKind::done:
        return ended(command, false);
      case CommandKind::failed:
        if (works.at(command.message->id).armed) return ended(command, true);
        return armed(command, false);
      case CommandKind::finished:
        return acknowledged(command);
    }
  }

  void arm(const Command& command) {
    const auto& launch = std::get<LaunchMessage>(command.message->body);
    Work& work = works[command.message->id];
    if (++work.arm_packets < command.count) return;
    for (const PeCoord pe : launch.targets) {
      if (pe.in_cube() != cube) continue;
      ++work.pending;
      Command down = command;
      down.pe = pe;
      each_packet(down, message_bytes(*command.message), [&](const Command& packet) { send_down(packet); });
    }
    sc_assert(work.pending > 0);
  }

  /// The PE has taken the launch, or failed while it recorded the kernel.
  void armed(const Command& command, bool ok) {
    Work& work = works.at(command.message->id);
    if (ok) work.running.push_back(command.pe);
    if (--work.pending > 0) return;
    std::sort(work.running.begin(), work.running.end());
    work.armed = true;
    work.pending = static_cast<std::uint32_t>(work.running.size());
    answer(CommandKind::armed, command.message, static_cast<std::uint32_t>(work.running.size()));
    if (work.running.empty()) works.erase(command.message->id);
  }

  /// start; or abort: one PE has failed, and those that still run would wait for it, maybe for ever. PEs that have
  /// ended get neither.
  void to_running(const Command& command) {
    const auto found = works.find(command.message->id);
    if (found == works.end()) return;
    for (const PeCoord pe : found->second.running) {
      Command down = command;
      down.pe = pe;
      send_down(down);
    }
  }

  void ended(const Command& command, bool failed) {
    Work& work = works.at(command.message->id);
    work.running.erase(std::find(work.running.begin(), work.running.end(), command.pe));
    if (--work.pending == 0) {
      works.erase(command.message->id);
      answer(CommandKind::finished, command.message, 1);
    } else if (failed && !work.failure_sent) {
      work.failure_sent = true;
      answer(CommandKind::failed, command.message, 0);
    }
  }

  /// Table entries go to the PEs that they concern, as many as fit a packet.
  void distribute(const Command& command) {
    Work& work = works[command.message->id];
    ++work.owed;
    const std::uint32_t before = work.pending;
    if (command.kind == CommandKind::sfr_write) {
      distribute_sfr(command, work);
    } else if (command.kind == CommandKind::program) {
      const ProgramMessage::Part& part = std::get<ProgramMessage>(command.message->body).parts[command.first];
      send_table(command, part.pe, command.first, 1, part.bytes, work);
    } else if (command.kind == CommandKind::mmu_map) {
      distribute_map(command, work);
    } else {
      for (const PeCoord pe : pes) send_table(command, pe, 0, 0, 0, work);
    }
    if (work.pending == before && before == 0) settle(command.message, work);
  }

  void distribute_sfr(const Command& command, Work& work) {
    const auto& entries = std::get<SfrWriteMessage>(command.message->body).entries;
    const std::uint32_t end = command.first + command.count;
    for (std::uint32_t first = command.first; first < end;) {
      std::uint32_t next = first + 1;
      while (next < end && next - first < kSfrEntriesPerPacket && entries[next].self == entries[first].self) ++next;
      send_table(command, entries[first].self, first, next - first, kSfrEntryBytes, work);
      first = next;
    }
  }

  void distribute_map(const Command& command, Work& work) {
    const auto& entries = std::get<MmuMapMessage>(command.message->body).entries;
    const std::uint32_t end = command.first + command.count;
    for (const PeCoord pe : pes) {
      const auto concerns = [&](std::uint32_t i) {
        const std::vector<PeCoord>& viewers = entries[i].viewers;
        return viewers.empty() || std::find(viewers.begin(), viewers.end(), pe) != viewers.end();
      };
      for (std::uint32_t first = command.first; first < end;) {
        if (!concerns(first)) {
          ++first;
          continue;
        }
        std::uint32_t next = first + 1;
        while (next < end && next - first < kMapEntriesPerPacket && concerns(next)) ++next;
        send_table(command, pe, first, next - first, kMapEntryBytes, work);
        first = next;
      }
    }
  }

  void send_table(const Command& command, PeCoord pe, std::uint32_t first, std::uint32_t count,
                  std::uint32_t entry_bytes, Work& work) {
    Command down = command;
    down.pe = pe;
    down.first = first;
    down.count = count;
    down.bytes = kCommandBytes + count * entry_bytes;
    ++work.pending;
    send_down(down);
  }

  void acknowledged(const Command& command) {
    Work& work = works.at(command.message->id);
    if (--work.pending == 0) settle(command.message, work);
  }

  /// One answer for all table commands of the message that have been carried out.
  void settle(Message* message, Work& work) {
    const std::uint32_t owed = work.owed;
    works.erase(message->id);
    answer(CommandKind::finished, message, owed);
  }

  void send_down(const Command& command) {
    server.add(
        config.command, [this, command] { port.send(command, map.pe(command.pe), MessageClass::command); },
        command.kind == CommandKind::start);
  }

  void answer(CommandKind kind, Message* message, std::uint32_t count) {
    Command up;
    up.kind = kind;
    up.message = message;
    up.pe = {cube.sip, cube.cube, 0};
    up.count = count;
    server.add(config.command, [this, up] { port.send(up, map.io_cpu(cube.sip), MessageClass::response); });
  }

  const MCpuConfig config;
  const CubeCoord cube;
  const MachineMap& map;
  std::vector<PeCoord> pes;
  SerialServer server;
  std::map<std::uint64_t, Work> works;  // by message id
  CommandPort port;
};

MCpu::MCpu(const sc_core::sc_module_name& name, const MCpuConfig& config, CubeCoord cube, const MachineMap& map,
           PayloadPool& pool, EventQueue& queue, Observer* observer)
    : sc_module(name), impl_(std::make_unique<Impl>(*this, config, cube, map, pool, queue, observer)) {}

MCpu::~MCpu() = default;
SerialServer::Served& MCpu::served() { return impl_->server.served(); }

}  // namespace kernbench
