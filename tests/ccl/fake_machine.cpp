#include "tests/ccl/fake_machine.h"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "tlm/machine/names.h"

namespace kernbench::test {
namespace {

/// Records the ops of one PE. Whatever collectives do not use throws.
class Recorder final : public Tl {
 public:
  Recorder(const MachineMap& map, PeCoord pe, const ccl::Collective::Launch& launch, std::vector<Op>& ops)
      : map_(map), pe_(pe), call_(*launch.message.call), program_(*launch.program), ops_(ops) {}

  std::int64_t program_id(int axis) const override { return axis == 0 ? pe_.pe : axis == 1 ? pe_.cube : pe_.sip; }
  std::int64_t num_programs(int axis) const override {
    return axis == 0 ? map_.pes_per_cube : axis == 1 ? map_.cubes_per_sip() : map_.sips;
  }
  unsigned cube_place(Va) const override { throw std::logic_error("the backend gives collectives their part"); }
  ShardView shard(Va) const override { throw std::logic_error("the backend gives collectives their part"); }
  std::uint64_t tcm() const override { return map_.tcm.bytes / map_.engines.kernel_contexts; }
  const CollectiveCall& call() const override { return call_; }
  const Program& program(ProgramId) const override { return program_; }

  Tile load(Va va, Shape shape, DType dtype, std::int64_t) override {
    return add(Op{Op::Kind::load, 0, {}, va, shape, dtype, {}, {}, 0});
  }
  void store(Va va, const Tile& tile, std::int64_t) override {
    add(Op{Op::Kind::store, 0, {id(tile)}, va, tile.shape(), tile.dtype(), {}, {}, 0});
  }
  Tile math(MathOp op, const std::vector<Tile>& operands) override {
    Op record{Op::Kind::math, 0, {}, 0, operands.front().shape(), operands.front().dtype(), {}, op, 0};
    for (const Tile& tile : operands) {
      if (tile.dtype() != record.dtype) throw KernelError("dtypes differ");
      if (tile.shape() != record.shape && tile.shape() != Shape{1, 1}) throw KernelError("shapes differ");
      record.operands.push_back(id(tile));
    }
    return add(std::move(record));
  }
  Tile fill(Shape shape, DType dtype, double value) override {
    return add(Op{Op::Kind::fill, 0, {}, 0, shape, dtype, {}, {}, value});
  }
  void send(Direction direction, const Tile& tile) override {
    add(Op{Op::Kind::send, 0, {id(tile)}, 0, tile.shape(), tile.dtype(), direction, {}, 0});
  }
  Tile recv(Direction direction, Shape shape, DType dtype) override {
    return add(Op{Op::Kind::recv, 0, {}, 0, shape, dtype, direction, {}, 0});
  }

  Tile gather(Va, const std::vector<std::int64_t>&, std::int64_t, DType, std::int64_t) override { return none(); }
  Tile alloc(Shape, DType) override { return none(); }
  Tile slice(const Tile& tile, std::int64_t begin, std::int64_t count) override {
    return add(Op{Op::Kind::slice, 0, {id(tile)}, 0, {1, count}, tile.dtype(), {}, {}, 0, begin});
  }
  void hold(const Tile&, std::size_t, unsigned) override {}
  Tile dot(const Tile&, const Tile&, const Tile&) override { return none(); }
  Tile cast(const Tile&, DType) override { return none(); }
  Tile arange(std::int64_t, DType, std::int64_t) override { return none(); }
  Tile broadcast(const Tile&, Shape) override { return none(); }
  Tile reduce(ReduceKind, const Tile&, int) override { return none(); }
  Tile softmax(const Tile&) override { return none(); }
  void composite_gemm(const CompositeGemm&) override { none(); }
  Tile recv_async(Direction, Shape, DType) override { return none(); }
  void wait(const Tile&) override {}
  void fence() override {}
  void mark(const std::string&) override {}

 private:
  static std::uint64_t id(const Tile& tile) {
    if (!tile) throw KernelError("an empty tile is used");
    return tile.state().id;
  }
  Tile none() { throw std::logic_error("not used by collectives"); }
  Tile add(Op op) {
    if (op.shape.count() <= 0) throw KernelError("an op on no elements");
    op.result = ops_.size();
    auto state = std::make_shared<Tile::State>();
    state->tl = this;
    state->id = op.result;
    state->shape = op.shape;
    state->dtype = op.dtype;
    ops_.push_back(std::move(op));
    return Tile(state);
  }

  const MachineMap& map_;
  const PeCoord pe_;
  const CollectiveCall& call_;
  const Program& program_;
  std::vector<Op>& ops_;
};

std::vector<std::uint8_t> compute(const Op& op, const std::vector<const std::vector<std::uint8_t>*>& in) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(op.shape.count()) * size_of(op.dtype));
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.shape.count()); ++i) {
    const std::size_t j = in[1]->size() == size_of(op.dtype) ? 0 : i;
    if (is_float(op.dtype)) {
      const double a = load_element(in[0]->data(), op.dtype, i), b = load_element(in[1]->data(), op.dtype, j);
      const double c = op.math == MathOp::add       ? a + b
                       : op.math == MathOp::mul     ? a * b
                       : op.math == MathOp::div     ? a / b
                       : op.math == MathOp::maximum ? std::max(a, b)
                                                    : std::min(a, b);
      store_element(out.data(), op.dtype, i, c);
    } else {
      const std::int64_t a = load_integer(in[0]->data(), op.dtype, i), b = load_integer(in[1]->data(), op.dtype, j);
      const std::int64_t c = op.math == MathOp::add       ? a + b
                             : op.math == MathOp::mul     ? a * b
                             : op.math == MathOp::div     ? a / b
                             : op.math == MathOp::maximum ? std::max(a, b)
                                                          : std::min(a, b);
      store_integer(out.data(), op.dtype, i, c);
    }
  }
  return out;
}

}  // namespace

MachineMap make_map(SipTopology topology, int sips, int sip_w, int sip_h, int cube_w, int cube_h, int pes) {
  MachineMap map;
  map.sip_topology = topology;
  map.sips = static_cast<std::uint16_t>(sips);
  map.sip_w = static_cast<std::uint16_t>(sip_w);
  map.sip_h = static_cast<std::uint16_t>(sip_h);
  map.cube_w = static_cast<std::uint16_t>(cube_w);
  map.cube_h = static_cast<std::uint16_t>(cube_h);
  map.pes_per_cube = static_cast<std::uint16_t>(pes);
  map.tcm = {std::uint64_t{4} << 20, Rate{512'000'000'000}};
  map.hbm_slice = {std::uint64_t{1} << 30, Rate{256'000'000'000}};
  map.pe_port = Rate{256'000'000'000};
  for (std::uint16_t sip = 0; sip < map.sips; ++sip) {
    for (std::uint16_t cube = 0; cube < map.cubes_per_sip(); ++cube) {
      for (std::uint16_t pe = 0; pe < map.pes_per_cube; ++pe) {
        map.pe_nodes.push_back(NodeId{static_cast<std::uint32_t>(map.nodes.size())});
        map.nodes.push_back({NodeKind::pe, pe, {sip, cube, 0, 0}});
        map.hbm_nodes.push_back(NodeId{static_cast<std::uint32_t>(map.nodes.size())});
        map.nodes.push_back({NodeKind::hbm_port, pe, {sip, cube, 0, 0}});
      }
    }
  }
  return map;
}

FakeMachine::FakeMachine(const MachineMap& map, const ccl::Collective& collective) : map_(map) {
  for (std::size_t rank = 0; rank < collective.group().sips.size(); ++rank) {
    for (const NeighbourEntry& entry : collective.neighbours(static_cast<int>(rank))) {
      if (!entries_.emplace(std::pair(entry.self, entry.direction), entry).second)
        throw std::logic_error("two rows for one direction");
      Queue& ring = rings_[{entry.self, entry.ring}];
      if (ring.capacity != 0) throw std::logic_error("one ring for two directions");
      ring.capacity = entry.slots;
    }
  }
  for (const auto& [key, entry] : entries_) {  // both ends of every queue pair agree
    bool found = false;
    for (const auto& [other_key, other] : entries_) {
      if (other.self != entry.peer || other.ring != entry.peer_ring) continue;
      found = other.source == entry.self && other.source_queue == entry.queue &&
              other.ring_base == entry.peer_ring_base && other.peer == entry.self && other.peer_ring == entry.ring;
    }
    if (!found)
      throw std::logic_error("the peer of " + names::pe(entry.self) + " " + entry.direction.str() + " does not agree");
  }
}

std::uint8_t* FakeMachine::find(PeCoord pe, Va va, std::size_t bytes) {
  const auto of_pe = memory_.find(pe);
  if (of_pe == memory_.end()) return nullptr;
  auto found = of_pe->second.upper_bound(va);
  if (found == of_pe->second.begin()) return nullptr;
  --found;
  if (va + bytes > found->first + found->second.size()) return nullptr;
  return found->second.data() + (va - found->first);
}

std::uint8_t* FakeMachine::at(PeCoord pe, Va va, std::size_t bytes) {
  if (std::uint8_t* own = find(pe, va, bytes)) return own;
  const auto first = [&](std::uint16_t from, std::uint16_t to) -> std::uint8_t* {
    for (std::uint16_t cube = from; cube < to; ++cube) {
      for (std::uint16_t other = 0; other < map_.pes_per_cube; ++other) {
        if (std::uint8_t* found = find({pe.sip, cube, other}, va, bytes)) return found;
      }
    }
    return nullptr;
  };
  std::uint8_t* found = first(pe.cube, static_cast<std::uint16_t>(pe.cube + 1));
  if (found == nullptr) found = first(0, map_.cubes_per_sip());
  if (found == nullptr) throw std::out_of_range(names::pe(pe) + " touches memory that nobody has");
  return found;
}

bool FakeMachine::step(Process& process) {
  const Op& op = process.ops[process.next];
  const std::size_t bytes = static_cast<std::size_t>(op.shape.count()) * size_of(op.dtype);
  switch (op.kind) {
    case Op::Kind::load: {
      std::vector<std::uint8_t>& tile = process.tiles[op.result];
      const std::size_t item = size_of(op.dtype);
      tile.resize(bytes);
      for (std::size_t i = 0; i < bytes; i += item) {  // a load may go on in the next PE's part
        std::memcpy(&tile[i], at(process.pe, op.va + i, item), item);
      }
      break;
    }
    case Op::Kind::store:
      std::memcpy(at(process.pe, op.va, bytes), process.tiles.at(op.operands[0]).data(), bytes);
      break;
    case Op::Kind::slice: {
      const auto& whole = process.tiles.at(op.operands[0]);
      const auto begin =
          whole.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(op.first) * size_of(op.dtype));
      process.tiles[op.result].assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
      break;
    }
    case Op::Kind::fill: {
      auto& tile = process.tiles[op.result];
      tile.resize(bytes);
      for (std::size_t i = 0; i < static_cast<std::size_t>(op.shape.count()); ++i)
        store_element(tile.data(), op.dtype, i, op.value);
      break;
    }
    case Op::Kind::math: {
      std::vector<const std::vector<std::uint8_t>*> in;
      for (const std::uint64_t operand : op.operands) in.push_back(&process.tiles.at(operand));
      process.tiles[op.result] = compute(op, in);
      break;
    }
    case Op::Kind::send: {
      const NeighbourEntry& entry = entries_.at({process.pe, op.direction});
      Queue& ring = rings_.at({entry.peer, entry.peer_ring});
      if (ring.slots.size() == ring.capacity) return false;
      ring.slots.push_back(process.tiles.at(op.operands[0]));
      ++messages;
      most_message_bytes = std::max<std::uint64_t>(most_message_bytes, bytes);
      break;
    }
    case Op::Kind::recv: {
      const NeighbourEntry& entry = entries_.at({process.pe, op.direction});
      Queue& ring = rings_.at({process.pe, entry.ring});
      if (ring.slots.empty()) return false;
      if (ring.slots.front().size() != bytes)
        throw std::logic_error("a message has another length than its receiver expects");
      if (entry.source.sip != process.pe.sip) received[{process.pe, entry.ring}] += bytes;
      process.tiles[op.result] = std::move(ring.slots.front());
      ring.slots.pop_front();
      break;
    }
  }
  ++process.next;
  return true;
}

std::string FakeMachine::run(const std::vector<ccl::Collective::Launch>& launches) {
  std::vector<Process> processes;
  for (const auto& launch : launches) {
    for (const PeCoord pe : launch.message.targets) {
      Process process;
      process.pe = pe;
      Recorder recorder(map_, pe, launch, process.ops);
      launch.message.entry(launch.message.arguments.data(), recorder);
      processes.push_back(std::move(process));
    }
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (Process& process : processes) {
      while (process.next < process.ops.size() && step(process)) progress = true;
    }
  }
  for (const Process& process : processes) {
    if (process.next < process.ops.size()) {
      return fmt::format("{} is stuck at op {} of {}", names::pe(process.pe), process.next, process.ops.size());
    }
  }
  for (const auto& [key, ring] : rings_) {
    if (!ring.slots.empty())
      return fmt::format("{} ring {} keeps {} messages", names::pe(key.first), key.second, ring.slots.size());
  }
  return {};
}

}  // namespace kernbench::test
