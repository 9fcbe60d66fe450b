#include "tests/io/fake_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tlm/ext/command_port.h"
#include "tlm/sim/annotation.h"

namespace kernbench::testing {

/// One fixed latency from every node to every other, in order.
class FakeMachine::Fabric {
 public:
  Fabric(const MachineMap& map, Dispatcher& dispatcher) : map_(map), dispatcher_(dispatcher) {}

  void attach(NodeId node, tlm::tlm_initiator_socket<>* out, tlm::tlm_target_socket<>& in) {
    auto& port = ports_[node];
    port = std::make_unique<Port>(fmt::format("fabric{}", index(node)).c_str(), *this, node, out != nullptr);
    port->to.bind(in);
    if (out != nullptr) out->bind(*port->from);
  }

 private:
  struct Port : public sc_core::sc_module, public tlm::tlm_fw_transport_if<>, public tlm::tlm_bw_transport_if<> {
    Port(const sc_core::sc_module_name& name, Fabric& fabric, NodeId node, bool injects)
        : sc_module(name), fabric(fabric), node(node) {
      to.bind(*this);
      if (!injects) return;
      from = std::make_unique<tlm::tlm_target_socket<>>("from");
      from->bind(*this);
    }
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
      sc_assert(phase == tlm::BEGIN_REQ);
      Packet& packet = Packet::of(payload);
      sc_assert(packet.bytes <= kMaxPacketBytes);
      packet.source = node;
      fabric.carry(payload, packet.destination, true);
      if (packet.kind == PacketKind::command) {
        payload.acquire();  // until it is delivered
        payload.set_response_status(tlm::TLM_OK_RESPONSE);
        return tlm::TLM_COMPLETED;
      }
      phase = tlm::END_REQ;
      return tlm::TLM_UPDATED;
    }
    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                       sc_core::sc_time&) override {
      sc_assert(phase == tlm::BEGIN_RESP);
      make_response(Packet::of(payload), payload.is_read() ? PacketKind::read_data : PacketKind::write_ack, 0);
      fabric.carry(payload, Packet::of(payload).destination, false);
      return tlm::TLM_COMPLETED;
    }
    void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) override { sc_assert(false); }
    bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload& payload) override {
      const NodeId memory = fabric.map_.resolve(payload.get_address());
      return memory == kNoNode ? 0 : fabric.ports_.at(memory)->to->transport_dbg(payload);
    }
    void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
    Fabric& fabric;
    NodeId node;
    std::unique_ptr<tlm::tlm_target_socket<>> from;  ///< of nodes that inject
    tlm::tlm_initiator_socket<> to{"to"};
  };

  void carry(tlm::tlm_generic_payload& payload, NodeId destination, bool request) {
    EventQueue& queue = dispatcher_.queue(map_.node(destination).at.sip);
    Port* port = ports_.at(destination).get();
    tlm::tlm_generic_payload* pointer = &payload;
    queue.at(dispatcher_.now() + kHop, [port, pointer, request, &queue] {
      sc_core::sc_time delay = annotation(queue.now());
      if (request) {
        tlm::tlm_phase phase = tlm::BEGIN_REQ;
        if (port->to->nb_transport_fw(*pointer, phase, delay) == tlm::TLM_COMPLETED) pointer->release();
      } else {
        tlm::tlm_phase phase = tlm::BEGIN_RESP;
        (*port->from)->nb_transport_bw(*pointer, phase, delay);
      }
    });
  }

  const MachineMap& map_;
  Dispatcher& dispatcher_;
  std::map<NodeId, std::unique_ptr<Port>> ports_;
};

/// Follows the launch protocol of a PE.
class FakeMachine::Pe : public sc_core::sc_module {
 public:
  Pe(const sc_core::sc_module_name& name, FakeMachine& machine, PeCoord coord)
      : sc_module(name),
        machine_(machine),
        coord_(coord),
        queue_(machine.dispatcher_->queue(coord.sip)),
        port_(machine.pool_, queue_, out, in, [this](const Command& c, std::uint32_t) { take(c); }) {}
  tlm::tlm_initiator_socket<> out{"out"};
  tlm::tlm_target_socket<> in{"in"};

 private:
  struct Run {
    Message* message;
    Record record;
    bool started = false;
  };

  void take(const Command& command) {
    Message* message = command.message;
    switch (command.kind) {
      case CommandKind::arm: {
        if (++arm_packets_ < command.count) return;
        arm_packets_ = 0;
        const auto& launch = std::get<LaunchMessage>(message->body);
        const bool fails = machine_.fails_to_arm && machine_.fails_to_arm(coord_, launch);
        queue_.at(queue_.now() + kArm, [this, message, fails] { fails ? fail(message, "arm") : arm(message); });
        return;
      }
      case CommandKind::start:
        return start(command);
      case CommandKind::sfr_write:
        for (std::uint32_t i = 0; i < command.count; ++i) {
          const auto& entry = std::get<SfrWriteMessage>(message->body).entries[command.first + i];
          sc_assert(entry.self == coord_);
          machine_.sfr[coord_].push_back(entry);
        }
        return answer(CommandKind::finished, message);
      case CommandKind::program:
        machine_.program_bytes[coord_] += command.bytes - kCommandBytes;
        return answer(CommandKind::finished, message);
      case CommandKind::mmu_map:
        machine_.map_entries[coord_] += command.count;
        return answer(CommandKind::finished, message);
      case CommandKind::mmu_unmap:
        if (machine_.hears_unmap) machine_.hears_unmap(coord_);
        return answer(CommandKind::finished, message);
      case CommandKind::abort:
        if (runs_.erase(message->id) != 0) answer(CommandKind::failed, message);
        return;
      default:
        sc_assert(false);
    }
  }

  void arm(Message* message) {
    runs_[message->id] = {message, {coord_, std::get<LaunchMessage>(message->body).kernel, queue_.now(), 0, 0}, false};
    answer(CommandKind::armed, message);
  }

  void start(const Command& command) {
    sc_assert(command.start >= queue_.now());
    Run& run = runs_.at(command.message->id);
    const auto& launch = std::get<LaunchMessage>(run.message->body);
    run.record.start = command.start;
    if (machine_.hangs && machine_.hangs(coord_, launch)) return;
    const Ps takes = machine_.duration ? machine_.duration(coord_, launch) : 1'000'000;
    const std::uint64_t id = command.message->id;
    queue_.at(command.start + takes, [this, id] { end(id); });
  }

  void end(std::uint64_t id) {
    const auto found = runs_.find(id);
    if (found == runs_.end()) return;  // aborted
    Run run = found->second;
    runs_.erase(found);
    auto& launch = std::get<LaunchMessage>(run.message->body);
    if (machine_.fails && machine_.fails(coord_, launch)) return fail(run.message, "run");
    run.record.end = queue_.now();
    machine_.launches.push_back(run.record);
    if (machine_.effect) machine_.effect(coord_, launch);
    launch.last_end = std::max(launch.last_end, queue_.now());
    answer(CommandKind::done, run.message);
  }

  void fail(Message* message, const char* op) {
    Fault fault;
    fault.component = machine_.map_.name(machine_.map_.pe(coord_));
    fault.kernel = std::get<LaunchMessage>(message->body).kernel;
    fault.op = op;
    fault.reason = "made to fail";
    fault.time = queue_.now();
    message->faults.push_back(fault);
    answer(CommandKind::failed, message);
  }

  void answer(CommandKind kind, Message* message) {
    Command command;
    command.kind = kind;
    command.message = message;
    command.pe = coord_;
    port_.send(command, machine_.map_.m_cpu(coord_.in_cube()), MessageClass::response);
  }

  FakeMachine& machine_;
  const PeCoord coord_;
  EventQueue& queue_;
  std::map<std::uint64_t, Run> runs_;
  std::uint32_t arm_packets_ = 0;
  CommandPort port_;
};

class FakeMachine::Memory : public sc_core::sc_module, public tlm::tlm_fw_transport_if<> {
 public:
  Memory(const sc_core::sc_module_name& name, EventQueue& queue) : sc_module(name), queue_(queue) { in.bind(*this); }
  tlm::tlm_target_socket<> in{"in"};
  SparseMemory contents;
  std::size_t outstanding = 0, most = 0;
  bool failing = false;

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    payload.acquire();
    most = std::max(most, ++outstanding);
    tlm::tlm_generic_payload* pointer = &payload;
    queue_.at(queue_.now() + kMemory, [this, pointer] {
      --outstanding;
      pointer->set_response_status(failing ? tlm::TLM_ADDRESS_ERROR_RESPONSE : tlm::TLM_OK_RESPONSE);
      if (!failing) transport_dbg(*pointer);
      tlm::tlm_phase phase = tlm::BEGIN_RESP;
      sc_core::sc_time delay = annotation(queue_.now());
      in->nb_transport_bw(*pointer, phase, delay);
      pointer->release();
    });
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) override { sc_assert(false); }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  unsigned transport_dbg(tlm::tlm_generic_payload& payload) override {
    const std::uint64_t offset = PhysicalAddress::decode(payload.get_address()).offset;
    if (payload.is_write()) contents.write(offset, payload.get_data_ptr(), payload.get_data_length());
    if (payload.is_read()) contents.read(offset, payload.get_data_ptr(), payload.get_data_length());
    return payload.get_data_length();
  }

 private:
  EventQueue& queue_;
};

NodeId FakeMachine::add_node(NodeKind kind, std::uint16_t sip, std::uint16_t cube, std::uint16_t unit) {
  Node node;
  node.kind = kind;
  node.unit = unit;
  node.at.sip = sip;
  node.at.cube = cube;
  map_.nodes.push_back(node);
  return NodeId{static_cast<std::uint32_t>(map_.nodes.size() - 1)};
}

void FakeMachine::build_map(const Shape& shape) {
  map_.sips = shape.sips;
  map_.cube_w = shape.cube_w;
  map_.cube_h = shape.cube_h;
  map_.pes_per_cube = shape.pes;
  map_.hbm_slice = {shape.hbm_slice_bytes, Rate(1'000'000'000)};
  map_.tcm = {1 << 20, Rate(1'000'000'000)};
  map_.sram = {1 << 20, Rate(1'000'000'000)};
  map_.worst_command_latency = 2 * kHop + (map_.pes_per_cube + 2u) * m_config_.command;
  for (std::uint16_t sip = 0; sip < shape.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < map_.cubes_per_sip(); ++cube) {
      for (std::uint16_t pe = 0; pe < shape.pes; ++pe) {
        map_.pe_nodes.push_back(add_node(NodeKind::pe, sip, cube, pe));
        map_.hbm_nodes.push_back(add_node(NodeKind::hbm_port, sip, cube, pe));
      }
      map_.sram_nodes.push_back(add_node(NodeKind::sram, sip, cube, 0));
      map_.m_cpu_nodes.push_back(add_node(NodeKind::m_cpu, sip, cube, 0));
    }
    map_.io_cpu_nodes.push_back(add_node(NodeKind::io_cpu, sip, kIoChiplet, 0));
    map_.pcie_nodes.push_back(add_node(NodeKind::pcie_ep, sip, kIoChiplet, 0));
  }
}

FakeMachine::FakeMachine(const Shape& shape, const RunOptions& options, Observer* observer) {
  build_map(shape);
  dispatcher_ = std::make_unique<Dispatcher>("dispatcher", shape.sips);
  fabric_ = std::make_unique<Fabric>(map_, *dispatcher_);
  for (std::uint16_t sip = 0; sip < shape.sips; ++sip) {
    EventQueue& queue = dispatcher_->queue(sip);
    pages_.emplace_back();
    endpoints_.push_back(std::make_unique<PcieEp>(fmt::format("pcie_ep{}", sip).c_str(), pcie_config_, sip, map_, pool_,
                                                  options, queue, observer));
    fabric_->attach(map_.pcie_ep(sip), &endpoints_.back()->out, endpoints_.back()->in);
    io_cpus_.push_back(std::make_unique<IoCpu>(fmt::format("io_cpu{}", sip).c_str(), io_config_, sip, map_,
                                               pages_.back(), pool_, queue, observer));
    fabric_->attach(map_.io_cpu(sip), &io_cpus_.back()->out, io_cpus_.back()->in);
    for (std::uint16_t cube = 0; cube < map_.cubes_per_sip(); ++cube) {
      m_cpus_.push_back(std::make_unique<MCpu>(fmt::format("m_cpu{}_{}", sip, cube).c_str(), m_config_,
                                               CubeCoord{sip, cube}, map_, pool_, queue, observer));
      fabric_->attach(map_.m_cpu({sip, cube}), &m_cpus_.back()->out, m_cpus_.back()->in);
    }
    for (const PeCoord pe : map_.pes(sip)) {
      pes_.push_back(std::make_unique<Pe>(fmt::format("pe{}_{}_{}", pe.sip, pe.cube, pe.pe).c_str(), *this, pe));
      fabric_->attach(map_.pe(pe), &pes_.back()->out, pes_.back()->in);
      const NodeId port = map_.hbm_port(pe);
      auto& memory = memories_[port];
      memory = std::make_unique<Memory>(fmt::format("hbm{}_{}_{}", pe.sip, pe.cube, pe.pe).c_str(), queue);
      fabric_->attach(port, nullptr, memory->in);
    }
  }
}

FakeMachine::~FakeMachine() = default;

void FakeMachine::read(const PhysicalAddress& from, void* data, std::size_t bytes) {
  memories_.at(map_.resolve(from))->contents.read(from.offset, data, bytes);
}
void FakeMachine::write(const PhysicalAddress& to, const void* data, std::size_t bytes) {
  memories_.at(map_.resolve(to))->contents.write(to.offset, data, bytes);
}
std::size_t FakeMachine::most_outstanding(NodeId memory) const { return memories_.at(memory)->most; }
void FakeMachine::fail_memory(NodeId memory) { memories_.at(memory)->failing = true; }

}  // namespace kernbench::testing
