#include "tests/pe/harness.h"

#include <fmt/format.h>

#include <utility>

#include "tests/support/test_body.h"
#include "tlm/sim/annotation.h"

namespace kernbench::test {

/// The network's side of one PE's sockets.
struct Bench::Port final : sc_core::sc_module, tlm::tlm_fw_transport_if<>, tlm::tlm_bw_transport_if<> {
  Port(const sc_core::sc_module_name& name, Bench& bench, NodeId node) : sc_module(name), bench(bench), node(node) {
    from_pe.bind(*this);
    to_pe.bind(*this);
  }
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    const bool request = Packet::of(payload).message_class == MessageClass::request;
    Packet::of(payload).source = node;
    bench.route(payload);
    if (!request) {
      payload.acquire();  // until it is delivered
      payload.set_response_status(tlm::TLM_OK_RESPONSE);
      return tlm::TLM_COMPLETED;
    }
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    EXPECT_EQ(phase, tlm::BEGIN_RESP);
    bench.respond(payload);
    return tlm::TLM_COMPLETED;
  }
  void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) override {}
  unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  Bench& bench;
  const NodeId node;
  tlm::tlm_target_socket<> from_pe{"from_pe"};
  tlm::tlm_initiator_socket<> to_pe{"to_pe"};
};

std::vector<OpRecord> RecordingObserver::named(const std::string& op_name) const {
  std::vector<OpRecord> list;
  for (const OpRecord& op : ops) {
    if (op.name == op_name) list.push_back(op);
  }
  return list;
}

std::vector<std::string> RecordingObserver::lines() const {
  std::vector<std::string> list;
  for (const OpRecord& op : ops) {
    std::string line = fmt::format("{} {} {} {} {} {}", op.start, op.end, op.component, op.name, op.stage, op.op);
    for (const OpRecord::Param& p : op.params) {
      line += p.text.empty() ? fmt::format(" {}={}", p.name, p.number) : fmt::format(" {}={}", p.name, p.text);
    }
    list.push_back(line);
  }
  return list;
}

NodeId Bench::add_node(NodeKind kind, std::uint16_t unit) {
  map.nodes.push_back({kind, unit, {}});
  return static_cast<NodeId>(map.nodes.size() - 1);
}

Bench::Bench(const Options& given) : options(given) {
  map.sips = map.cube_w = map.cube_h = 1;
  map.pes_per_cube = options.pes;
  map.hbm_slice = {std::uint64_t{1} << 32, Rate(1)};
  map.tcm = {options.config.tcm.bytes, Rate(1)};
  map.engines.kernel_contexts = options.config.cpu.kernel_contexts;
  map.sram = {std::uint64_t{32} << 20, Rate(1)};
  map.worst_command_latency = options.latency;
  for (std::uint16_t i = 0; i < options.pes; ++i) map.pe_nodes.push_back(add_node(NodeKind::pe, i));
  for (std::uint16_t i = 0; i < options.pes; ++i) map.hbm_nodes.push_back(add_node(NodeKind::hbm_port, i));
  map.sram_nodes.push_back(add_node(NodeKind::sram, 0));
  map.m_cpu_nodes.push_back(add_node(NodeKind::m_cpu, 0));
  map.io_cpu_nodes.push_back(add_node(NodeKind::io_cpu, 0));
  map.pcie_nodes.push_back(add_node(NodeKind::pcie_ep, 0));
  for (std::uint16_t i = 0; i < options.pes; ++i) {
    ports_.push_back(std::make_unique<Port>(sc_core::sc_gen_unique_name("port"), *this, map.pe_nodes[i]));
    pes_.push_back(std::make_unique<Pe>(sc_core::sc_gen_unique_name("pe"), options.config, coord(i), map, pages, pool,
                                        options.run, queue, options.observe ? &observer : nullptr, &stacks,
                                        options.run.debug ? &races : nullptr));
    pes_.back()->out.bind(ports_.back()->from_pe);
    ports_.back()->to_pe.bind(pes_.back()->in);
  }
}

Bench::~Bench() = default;

void Bench::elaborate() {
  if (sc_core::sc_get_status() == sc_core::SC_ELABORATION) sc_core::sc_start(sc_core::SC_ZERO_TIME);
}

Pe& Bench::pe(std::uint16_t pe) { return *pes_[pe]; }

void Bench::map_hbm(Va va, std::uint64_t bytes, std::uint16_t owner) {
  pages.map({va, bytes, PhysicalAddress::hbm(coord(owner), va), {}});
}

void Bench::put(std::uint64_t offset, DType dtype, const std::vector<double>& values, std::uint16_t owner) {
  std::vector<unsigned char> bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) store_element(bytes.data(), dtype, i, values[i]);
  hbm(owner).write(offset, bytes.data(), bytes.size());
}

std::vector<double> Bench::get(std::uint64_t offset, DType dtype, std::size_t count, std::uint16_t owner) {
  std::vector<unsigned char> bytes(count * size_of(dtype));
  hbm(owner).read(offset, bytes.data(), bytes.size());
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(load_element(bytes.data(), dtype, i));
  return values;
}

// ---- The network and the memories ----

void Bench::route(tlm::tlm_generic_payload& payload) {
  const Packet& packet = Packet::of(payload);
  sent.push_back({packet.kind, packet.destination, payload.get_address(), packet.bytes, queue.now()});
  tlm::tlm_generic_payload* moving = &payload;
  queue.at(queue.now() + options.latency, [this, moving] { deliver(*moving); });
}

void Bench::deliver(tlm::tlm_generic_payload& payload) {
  Packet& packet = Packet::of(payload);
  const Node& node = map.node(packet.destination);
  tlm::tlm_generic_payload* moving = &payload;
  switch (node.kind) {
    case NodeKind::m_cpu:
      answers_.push_back(*packet.command);
      payload.release();
      break;
    case NodeKind::pe: {
      const bool one_way = packet.message_class != MessageClass::request;
      tlm::tlm_phase phase = tlm::BEGIN_REQ;
      sc_core::sc_time delay = annotation(queue.now());
      const auto answer = ports_[node.unit]->to_pe->nb_transport_fw(payload, phase, delay);
      EXPECT_EQ(answer, one_way ? tlm::TLM_COMPLETED : tlm::TLM_UPDATED);
      if (one_way) payload.release();
      break;
    }
    default:
      queue.at(queue.now() + options.memory_latency, [this, moving] { serve(*moving); });
  }
}

void Bench::serve(tlm::tlm_generic_payload& payload) {
  SparseMemory& memory = memories_[Packet::of(payload).destination];
  const std::uint64_t address = payload.get_address();
  if (failing_address >= address && failing_address < address + payload.get_data_length()) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return respond(payload);
  }
  const std::uint64_t offset = PhysicalAddress::decode(address).offset;
  if (payload.is_read()) {
    memory.read(offset, payload.get_data_ptr(), payload.get_data_length());
  } else {
    memory.write(offset, payload.get_data_ptr(), payload.get_data_length());
  }
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
  respond(payload);
}

void Bench::respond(tlm::tlm_generic_payload& payload) {
  Packet& packet = Packet::of(payload);
  make_response(packet, payload.is_read() ? PacketKind::read_data : PacketKind::write_ack,
                payload.is_read() ? payload.get_data_length() : 0);
  tlm::tlm_generic_payload* moving = &payload;
  queue.at(queue.now() + options.latency, [this, moving] {
    const std::uint16_t pe = map.node(Packet::of(*moving).destination).unit;
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = annotation(queue.now());
    EXPECT_EQ(ports_[pe]->from_pe->nb_transport_bw(*moving, phase, delay), tlm::TLM_COMPLETED);
  });
}

// ---- Commands ----

void Bench::send(std::uint16_t pe, CommandKind kind, Message& message, Ps start) {
  elaborate();
  Command command;
  command.kind = kind;
  command.message = &message;
  command.pe = coord(pe);
  command.start = start;
  if (const auto* sfr = std::get_if<SfrWriteMessage>(&message.body)) {
    command.count = static_cast<std::uint32_t>(sfr->entries.size());
  }
  const auto send_packet = [&](const Command& sent_command) {
    tlm::tlm_generic_payload& payload = pool.acquire();
    put_command(payload, sent_command);
    Packet& packet = Packet::of(payload);
    packet.message_class = MessageClass::command;
    packet.destination = map.pe(coord(pe));
    tlm::tlm_generic_payload* moving = &payload;
    queue.at(queue.now() + options.latency, [this, moving] { deliver(*moving); });
  };
  if (kind != CommandKind::arm) return send_packet(command);
  each_packet(command, message_bytes(message), send_packet);
}

std::size_t Bench::answers(const Message& message, CommandKind kind) const {
  std::size_t count = 0;
  for (const Command& answer : answers_) count += answer.message == &message && answer.kind == kind ? 1 : 0;
  return count;
}

void Bench::install(const std::vector<NeighbourEntry>& entries) {
  messages_.push_back(std::make_unique<Message>());
  Message& message = *messages_.back();
  message.body = SfrWriteMessage{entries};
  for (std::uint16_t pe = 0; pe < options.pes; ++pe) send(pe, CommandKind::sfr_write, message);
  queue.run_all();
  ASSERT_EQ(answers(message, CommandKind::finished), options.pes);
  ASSERT_TRUE(message.faults.empty()) << message.faults.front().reason;
}

void Bench::join(std::uint16_t left, std::uint16_t right, IpcqBuffer where, std::uint16_t group) {
  const IpcqConfig& ipcq = options.config.ipcq;
  const std::uint64_t ring_bytes = std::uint64_t{ipcq.slots} * ipcq.slot_bytes;
  // Pair 2 g + (0: E, 1: W) of every PE; rings from the top of TCM downwards, or one after the other elsewhere.
  const auto base = [&](std::uint16_t pe, std::uint16_t ring) {
    const std::uint64_t offset = ring * ring_bytes;
    switch (where) {
      case IpcqBuffer::tcm:
        return PhysicalAddress::tcm(coord(pe), options.config.tcm.bytes - offset - ring_bytes);
      case IpcqBuffer::sram:
        return PhysicalAddress::sram({0, 0}, (std::uint64_t{pe} << 20) + offset);
      case IpcqBuffer::hbm:
        return PhysicalAddress::hbm(coord(pe), (std::uint64_t{1} << 30) + offset);
    }
    return PhysicalAddress();
  };
  const auto east = static_cast<std::uint16_t>(2 * group), west = static_cast<std::uint16_t>(2 * group + 1);
  const auto entry = [&](std::uint16_t self, Direction direction, std::uint16_t own, std::uint16_t peer,
                         std::uint16_t theirs) {
    NeighbourEntry e;
    e.self = coord(self);
    e.group = group;
    e.direction = direction;
    e.ring = e.queue = own;
    e.peer = e.source = coord(peer);
    e.peer_ring = e.source_queue = theirs;
    e.slots = static_cast<std::uint16_t>(ipcq.slots);
    e.slot_bytes = ipcq.slot_bytes;
    e.ring_base = base(self, own);
    e.peer_ring_base = base(peer, theirs);
    return e;
  };
  install({entry(left, Direction::east(), east, right, west), entry(right, Direction::west(), west, left, east)});
}

Message& Bench::message(const Bodies& bodies, const std::string& name, std::uint16_t group) {
  messages_.push_back(std::make_unique<Message>());
  Message& message = *messages_.back();
  message.stream = static_cast<std::uint16_t>(messages_.size());
  LaunchMessage launch;
  launch.kernel = name;
  launch.group = group;
  BoundKernel kernel = bind_kernel(
      run_test_body, test_body([bodies](Tl& tl) { bodies.at(static_cast<std::uint16_t>(tl.program_id(0)))(tl); }));
  launch.entry = kernel.entry;
  launch.arguments = std::move(kernel.arguments);
  for (const auto& [pe, body] : bodies) launch.targets.push_back(coord(pe));
  message.body = std::move(launch);
  return message;
}

Message& Bench::prepare(const Bodies& bodies, const std::string& name, std::uint16_t group) {
  Message& message = this->message(bodies, name, group);
  for (const auto& [pe, body] : bodies) send(pe, CommandKind::arm, message);
  queue.run_all();
  const Ps start = queue.now() + 2 * options.latency;
  for (const auto& [pe, body] : bodies) {
    EXPECT_EQ(answers(message, CommandKind::armed), bodies.size());
    send(pe, CommandKind::start, message, start);
  }
  return message;
}

Message& Bench::launch(const Bodies& bodies, const std::string& name, std::uint16_t group) {
  Message& message = prepare(bodies, name, group);
  queue.run_all();
  const Ending expected = std::exchange(ending, Ending::done);
  EXPECT_EQ(message.faults.empty(), expected != Ending::failed)
      << name << ": " << (message.faults.empty() ? "no fault" : message.faults.front().str());
  if (expected == Ending::done) {
    EXPECT_EQ(answers(message, CommandKind::done), bodies.size()) << name;
  } else if (expected == Ending::waiting) {
    EXPECT_FALSE(completed(message)) << name;
  }
  return message;
}

bool Bench::completed(const Message& message) const {
  const std::size_t targets = std::get<LaunchMessage>(message.body).targets.size();
  return answers(message, CommandKind::done) + answers(message, CommandKind::failed) == targets;
}

}  // namespace kernbench::test
