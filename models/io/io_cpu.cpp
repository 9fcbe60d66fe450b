#include "models/io/io_cpu.h"

#include <algorithm>
#include <deque>
#include <map>
#include <variant>

#include "tlm/ext/command_port.h"
#include "tlm/ext/page_table.h"
#include "tlm/machine/names.h"

namespace kernbench {

/// Messages of one stream run one after the other, in the order of PCIE_EP's tags; a launch behind a launch arms while
/// that one runs. Streams run side by side, except that one launch arms at a time (so that two launches never hold each
/// other's kernel contexts) and one start is under way at a time (so that its delay is bounded). Every command received
/// or sent holds the CPU for `command`, starts first.
struct IoCpu::Impl {
  Impl(IoCpu& module, const IoCpuConfig& config, std::uint16_t sip, const MachineMap& map, PageTable& pages,
       PayloadPool& pool, EventQueue& queue, Observer* observer)
      : config(config),
        sip(sip),
        map(map),
        pages(pages),
        queue(queue),
        server(queue, names::io_cpu(sip)),
        port(pool, queue, module.out, module.in,
             [this](const Command& command, std::uint32_t tag) { receive(command, tag); }) {
    for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
      bool populated = false;
      for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) populated = populated || map.has({sip, cube, pe});
      if (populated) cubes.push_back({sip, cube});
    }
    server.observe(observer);
  }

  /// A message under way.
  struct Work {
    Message* message = nullptr;
    std::vector<CubeCoord> cubes;  ///< launch: cubes with targets; after arming: those where some PE accepted it
    std::uint32_t pending = 0;     ///< cubes (launch) or table commands that have not answered
    std::vector<CubeCoord> accepted;
    bool armed = false, started = false, aborted = false;
  };

  // From PCIE_EP. A message may arrive as several packets; the network may reorder packets, the tags put them right.

  void receive(const Command& command, std::uint32_t tag) {
    if (command.kind == CommandKind::armed || command.kind == CommandKind::failed ||
        command.kind == CommandKind::finished) {
      server.add(config.command, [this, command] { answered(command); });
      return;
    }
    Arrival& arrival = arrivals[tag];
    arrival.message = command.message;
    if (++arrival.packets < command.count) return;
    arrival.whole = true;
    for (auto next = arrivals.find(next_tag); next != arrivals.end() && next->second.whole;
         next = arrivals.find(next_tag)) {
      Message* message = next->second.message;
      arrivals.erase(next);
      ++next_tag;
      server.add(config.command, [this, message] { enqueue(message); });
    }
  }

  void enqueue(Message* message) {
    std::deque<Message*>& stream = streams[message->stream];
    stream.push_back(message);
    if (stream.size() == 1) {
      begin(message);
    } else {
      arm_ahead(stream);
    }
  }

  /// The launch behind the one that runs arms meanwhile.
  void arm_ahead(const std::deque<Message*>& stream) {
    if (stream.size() < 2 || !std::holds_alternative<LaunchMessage>(stream[1]->body)) return;
    const auto front = works.find(stream[0]->id);
    if (front == works.end() || !front->second.started || works.count(stream[1]->id) > 0) return;
    begin(stream[1]);
  }

  void begin(Message* message) {
    Work& work = works[message->id];
    work.message = message;
    if (std::holds_alternative<LaunchMessage>(message->body)) {
      to_arm.push_back(message);
      arm_next();
    } else {
      send_tables(work);
      if (work.pending == 0) tables_done(message);
    }
  }

  // Launches.

  void arm_next() {
    if (arming || to_arm.empty()) return;
    arming = true;
    Message* message = to_arm.front();
    to_arm.pop_front();
    Work& work = works.at(message->id);
    const auto& launch = std::get<LaunchMessage>(message->body);
    for (const PeCoord pe : launch.targets) {
      sc_assert(pe.sip == sip);
      work.cubes.push_back(pe.in_cube());
    }
    std::sort(work.cubes.begin(), work.cubes.end());
    work.cubes.erase(std::unique(work.cubes.begin(), work.cubes.end()), work.cubes.end());
    work.pending = static_cast<std::uint32_t>(work.cubes.size());
    if (work.cubes.empty()) return all_armed(work);
    sc_assert(launch.arguments.size() <= kMaxArgumentBytes);
    const Command command = command_for(CommandKind::arm, message);
    for (const CubeCoord cube : work.cubes) {
      each_packet(command, message_bytes(*message), [&](const Command& packet) { send(packet, cube, false); });
    }
  }

  void armed(Work& work, const Command& command) {
    if (command.count > 0) work.accepted.push_back(command.pe.in_cube());
    if (--work.pending == 0) all_armed(work);
  }

  void all_armed(Work& work) {
    std::sort(work.accepted.begin(), work.accepted.end());
    work.pending = static_cast<std::uint32_t>(work.accepted.size());
    work.armed = true;
    arming = false;
    if (streams.at(work.message->stream).front() == work.message) run(work);
    arm_next();
  }

  /// An armed launch whose turn it is.
  void run(Work& work) {
    Message* message = work.message;
    if (work.accepted.empty()) {
      complete(message);
    } else if (!message->faults.empty()) {
      abort(work);
    } else {
      to_start.push_back(message);
      start_next();
    }
  }

  /// The start time leaves room for the fan-out here, one command in service included, and for the slowest way to a PE.
  void start_next() {
    if (starting) return;
    while (!to_start.empty() && !startable(to_start.front())) to_start.pop_front();
    if (to_start.empty()) return;
    starting = true;
    Message* message = to_start.front();
    to_start.pop_front();
    Work& work = works.at(message->id);
    Command command = command_for(CommandKind::start, message);
    command.start = queue.now() + (work.accepted.size() + 1) * config.command + map.worst_command_latency;
    auto& launch = std::get<LaunchMessage>(message->body);
    launch.first_start = command.start;
    for (const CubeCoord cube : work.accepted) send(command, cube, true);
    work.started = true;
    arm_ahead(streams.at(message->stream));
    if (const CauseLog* log = queue.causes()) started = log->current;
    queue.at(command.start, [this] {
      if (CauseLog* log = queue.causes()) log->current = started;
      starting = false;
      start_next();
    });
  }

  /// Neither ended nor aborted while it waited for its turn.
  bool startable(const Message* message) const {
    const auto found = works.find(message->id);
    return found != works.end() && !found->second.aborted;
  }

  void abort(Work& work) {
    if (work.aborted) return;
    work.aborted = true;
    const Command command = command_for(CommandKind::abort, work.message);
    for (const CubeCoord cube : work.accepted) send(command, cube, false);
  }

  // Tables.

  void send_tables(Work& work) {
    Message* message = work.message;
    if (auto* sfr = std::get_if<SfrWriteMessage>(&message->body)) {
      std::stable_sort(sfr->entries.begin(), sfr->entries.end(),
                       [](const NeighbourEntry& a, const NeighbourEntry& b) { return a.self < b.self; });
      for (const CubeCoord cube : cubes) {
        const auto here = [&](std::uint32_t i) { return sfr->entries[i].self.in_cube() == cube; };
        send_runs(work, CommandKind::sfr_write, cube, sfr->entries.size(), here, kSfrEntryBytes, kSfrEntriesPerPacket);
      }
    } else if (const auto* mapping = std::get_if<MmuMapMessage>(&message->body)) {
      for (const CubeCoord cube : cubes) {
        const auto seen_from = [&](std::uint32_t i) {
          const std::vector<PeCoord>& viewers = mapping->entries[i].viewers;
          return viewers.empty() || std::any_of(viewers.begin(), viewers.end(),
                                                [&](const PeCoord& viewer) { return viewer.in_cube() == cube; });
        };
        send_runs(work, CommandKind::mmu_map, cube, mapping->entries.size(), seen_from, kMapEntryBytes,
                  kMapEntriesPerPacket);
      }
    } else if (const auto* program = std::get_if<ProgramMessage>(&message->body)) {
      Command command = command_for(CommandKind::program, message);
      command.count = 1;
      for (const ProgramMessage::Part& part : program->parts) {
        command.bytes = kCommandBytes + part.bytes;
        ++work.pending;
        send(command, part.pe.in_cube(), false);
        ++command.first;
      }
    } else {
      for (const CubeCoord cube : cubes) {
        ++work.pending;
        send(command_for(CommandKind::mmu_unmap, message), cube, false);
      }
    }
  }

  /// One command for every run of consecutive entries that concern the cube, as long as they fit a packet.
  template <class Concerns>
  void send_runs(Work& work, CommandKind kind, CubeCoord cube, std::size_t entries, const Concerns& concerns,
                 std::uint32_t entry_bytes, std::uint32_t per_packet) {
    for (std::uint32_t first = 0; first < entries;) {
      if (!concerns(first)) {
        ++first;
        continue;
      }
      std::uint32_t next = first + 1;
      while (next < entries && next - first < per_packet && concerns(next)) ++next;
      Command command = command_for(kind, work.message);
      command.first = first;
      command.count = next - first;
      command.bytes = kCommandBytes + command.count * entry_bytes;
      ++work.pending;
      send(command, cube, false);
      first = next;
    }
  }

  void tables_done(Message* message) {
    if (const auto* mapping = std::get_if<MmuMapMessage>(&message->body)) {
      for (const MapEntry& entry : mapping->entries) pages.map(entry);
    } else if (const auto* range = std::get_if<MmuUnmapMessage>(&message->body)) {
      pages.unmap(range->va, range->bytes);  // when every PE has dropped its TLB entries
    }
    complete(message);
  }

  // Answers of M_CPUs.

  void answered(const Command& command) {
    const auto found = works.find(command.message->id);
    if (found == works.end()) return;
    Work& work = found->second;
    switch (command.kind) {
      case CommandKind::armed:
        return armed(work, command);
      case CommandKind::failed:
        return abort(work);
      default:
        break;
    }
    sc_assert(command.kind == CommandKind::finished && work.pending >= command.count);
    work.pending -= command.count;
    if (work.pending > 0) return;
    if (std::holds_alternative<LaunchMessage>(work.message->body)) {
      complete(work.message);
    } else {
      tables_done(work.message);
    }
  }

  void complete(Message* message) {
    works.erase(message->id);
    Command command = command_for(message->faults.empty() ? CommandKind::finished : CommandKind::failed, message);
    server.add(config.command, [this, command] { port.send(command, map.pcie_ep(sip), MessageClass::response); });
    std::deque<Message*>& stream = streams.at(message->stream);
    stream.pop_front();
    if (stream.empty()) return;
    const auto ahead = works.find(stream.front()->id);
    if (ahead == works.end()) {
      begin(stream.front());
    } else if (ahead->second.armed) {
      run(ahead->second);
    }
  }

  Command command_for(CommandKind kind, Message* message) const {
    Command command;
    command.kind = kind;
    command.message = message;
    command.bytes = kCommandBytes;
    return command;
  }

  void send(Command command, CubeCoord cube, bool urgent) {
    command.pe = {cube.sip, cube.cube, 0};
    server.add(
        config.command, [this, command] { port.send(command, map.m_cpu(command.pe.in_cube()), MessageClass::command); },
        urgent);
  }

  struct Arrival {
    Message* message = nullptr;
    std::uint32_t packets = 0;
    bool whole = false;
  };

  const IoCpuConfig config;
  const std::uint16_t sip;
  const MachineMap& map;
  PageTable& pages;
  EventQueue& queue;
  std::vector<CubeCoord> cubes;  ///< with at least one PE
  SerialServer server;
  std::map<std::uint32_t, Arrival> arrivals;  ///< by tag
  std::uint32_t next_tag = 0;
  std::map<std::uint16_t, std::deque<Message*>> streams;  ///< front: under way
  std::map<std::uint64_t, Work> works;                    ///< by message id
  std::deque<Message*> to_arm, to_start;
  bool arming = false, starting = false;
  Cause started;
  CommandPort port;
};

IoCpu::IoCpu(const sc_core::sc_module_name& name, const IoCpuConfig& config, std::uint16_t sip, const MachineMap& map,
             PageTable& pages, PayloadPool& pool, EventQueue& queue, Observer* observer)
    : sc_module(name), impl_(std::make_unique<Impl>(*this, config, sip, map, pages, pool, queue, observer)) {}

IoCpu::~IoCpu() = default;
SerialServer::Served& IoCpu::served() { return impl_->server.served(); }

}  // namespace kernbench
