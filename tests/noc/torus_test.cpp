#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/noc/test_mesh.h"
#include "tests/topology/machines.h"
#include "topology/machine/modules.h"
#include "topology/plan/plan.h"

#ifndef KERNBENCH_TRANSFERS
#define KERNBENCH_TRANSFERS 40'000
#endif

// The networks of a 2 x 2 torus of SIPs, with endpoints of the test's own at every node, under as much traffic as they
// take: every PE has transfers to random PEs of the machine under way, of every class.
namespace kernbench::topology {
namespace {

using kernbench::test::Random;

/// What all endpoints share.
struct Traffic {
  std::vector<NodeId> nodes;  ///< that take part
  std::uint64_t left = 0;     ///< transfers to start
  std::uint64_t completed = 0;
  std::uint64_t wrong = 0;                ///< out of order, lost or seen twice
  std::vector<std::uint32_t> sent, seen;  ///< by (source, destination, class): packets, which are tagged in order

  void make(std::uint32_t all_nodes) {
    count = all_nodes;
    sent.resize(std::size_t{count} * count * kMessageClasses);
    seen.resize(sent.size());
  }
  std::size_t flow(const Packet& packet) const {
    return (std::size_t{index(packet.source)} * count + index(packet.destination)) * kMessageClasses +
           static_cast<std::size_t>(packet.message_class);
  }
  std::uint32_t count = 0;
};

/// Data of class ipcq_data are answered with a credit, reads and writes by the network interface's response.
class TorusNode : public sc_core::sc_module, tlm::tlm_fw_transport_if<>, tlm::tlm_bw_transport_if<> {
 public:
  TorusNode(const sc_core::sc_module_name& name, NodeId self, NetworkInterface& ni, EventQueue& queue,
            PayloadPool& pool, Traffic& traffic)
      : sc_module(name), self_(self), queue_(queue), pool_(pool), traffic_(traffic), random_(index(self) + 1) {
    if (ni.from_endpoint) {
      to_ni_ = std::make_unique<tlm::tlm_initiator_socket<>>("to_ni");
      to_ni_->bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
      to_ni_->bind(*ni.from_endpoint);
    }
    if (ni.to_endpoint) {
      from_ni_ = std::make_unique<tlm::tlm_target_socket<>>("from_ni");
      from_ni_->bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
      ni.to_endpoint->bind(*from_ni_);
    }
  }
  /// Has `transfers` under way until all are done.
  void start(unsigned transfers) {
    queue_.at(1, [this, transfers] {
      for (unsigned i = 0; i < transfers; ++i) begin();
    });
  }

 private:
  void begin() {
    if (traffic_.left == 0) return;
    --traffic_.left;
    const NodeId to = traffic_.nodes[random_.below(static_cast<unsigned>(traffic_.nodes.size()))];
    const std::uint32_t bytes = random_.below(4) == 0 ? random_.below(257) : 256;
    switch (random_.below(4)) {
      case 0:
        return inject(to, MessageClass::request, PacketKind::read, 0, bytes);
      case 1:
        return inject(to, MessageClass::request, PacketKind::write, bytes, bytes);
      default:
        return inject(to, MessageClass::ipcq_data, PacketKind::ipcq_data, bytes, bytes);
    }
  }
  void inject(NodeId to, MessageClass of, PacketKind kind, std::uint32_t bytes, std::uint32_t length) {
    tlm::tlm_generic_payload& payload = pool_.acquire();
    payload.set_command(kind == PacketKind::read ? tlm::TLM_READ_COMMAND : tlm::TLM_WRITE_COMMAND);
    payload.set_data_length(length);
    Packet& packet = Packet::of(payload);
    packet.source = self_;
    packet.destination = to;
    packet.message_class = of;
    packet.kind = kind;
    packet.bytes = bytes;
    packet.tag = traffic_.sent[traffic_.flow(packet)]++;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = annotation(queue_.now());
    if ((*to_ni_)->nb_transport_fw(payload, phase, delay) == tlm::TLM_COMPLETED) payload.release();
  }
  void check(const Packet& packet) {
    if (packet.destination != self_ || packet.tag != traffic_.seen[traffic_.flow(packet)]++) ++traffic_.wrong;
  }
  void complete() {
    ++traffic_.completed;
    begin();
  }

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& payload, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    Packet& packet = Packet::of(payload);
    check(packet);
    if (packet.message_class == MessageClass::request) {
      payload.acquire();
      // The response is a packet of its own flow; whoever waits for it knows it by the request's tag no more.
      tlm::tlm_generic_payload* request = &payload;
      queue_.at(queue_.now() + 10'000, [this, request] { respond(*request); });
      phase = tlm::END_REQ;
      return tlm::TLM_UPDATED;
    }
    if (packet.message_class == MessageClass::ipcq_data) {
      inject(packet.source, MessageClass::credit, PacketKind::ipcq_credit, 0, 0);
    } else {
      complete();
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    return tlm::TLM_COMPLETED;
  }
  void respond(tlm::tlm_generic_payload& payload) {
    Packet& packet = Packet::of(payload);
    Packet response = packet;
    make_response(response, PacketKind::write_ack, 0);
    packet.tag = traffic_.sent[traffic_.flow(response)]++;
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = annotation(queue_.now());
    (*from_ni_)->nb_transport_bw(payload, phase, delay);
    payload.release();
  }
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload& payload, tlm::tlm_phase&, sc_core::sc_time&) override {
    check(Packet::of(payload));
    complete();
    payload.release();
    return tlm::TLM_COMPLETED;
  }
  void b_transport(tlm::tlm_generic_payload&, sc_core::sc_time&) override { sc_assert(false); }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

  std::unique_ptr<tlm::tlm_initiator_socket<>> to_ni_;
  std::unique_ptr<tlm::tlm_target_socket<>> from_ni_;
  const NodeId self_;
  EventQueue& queue_;
  PayloadPool& pool_;
  Traffic& traffic_;
  Random random_;
};

/// One network of the plan with its endpoints.
class TestNetwork : public sc_core::sc_module {
 public:
  TestNetwork(const sc_core::sc_module_name& name, const BuildContext& context, std::uint32_t id, Traffic& traffic)
      : sc_module(name), modules(context, id) {
    for (std::uint32_t n = 0; n < context.plan.map.nodes.size(); ++n) {
      const NodeId node{n};
      if (context.plan.network_of(node) != id) continue;
      nodes.push_back(std::make_unique<TorusNode>(("node" + std::to_string(n)).c_str(), node, modules.interface(node),
                                                  context.queue_of(id), context.pool, traffic));
      if (context.plan.map.node(node).kind == NodeKind::pe) {
        traffic.nodes.push_back(node);
        nodes.back()->start(8);
      }
    }
  }
  NetworkModules modules;
  std::vector<std::unique_ptr<TorusNode>> nodes;
};

void run(std::uint32_t vc_depth, std::uint32_t vcs) {
  SystemSpec spec = grid_machine(SipTopology::torus_2d, 2, 2, 2, 1);
  spec.cube.noc.vc_depth_flits = vc_depth;
  spec.cube.noc.vcs_per_set = vcs;
  const Plan plan(spec);
  Dispatcher dispatcher("dispatcher", plan.spec.sips);
  PayloadPool pool;
  StackPool stacks;
  const RunOptions options;
  const ForeignParts foreign;
  const BuildContext context{plan, options, nullptr, dispatcher, pool, stacks, foreign};
  Traffic traffic;
  traffic.left = KERNBENCH_TRANSFERS;
  traffic.make(static_cast<std::uint32_t>(plan.map.nodes.size()));
  std::vector<std::unique_ptr<TestNetwork>> networks;
  for (std::uint32_t id = 0; id < plan.networks.size(); ++id) {
    networks.push_back(std::make_unique<TestNetwork>(("network" + std::to_string(id)).c_str(), context, id, traffic));
  }
  const auto link_port = [&](std::uint32_t end) -> LinkPort& {
    const auto& ends = plan.networks[plan.ends[end].network].ends;
    const auto slot = std::find(ends.begin(), ends.end(), end) - ends.begin();
    return *networks[plan.ends[end].network]->modules.link_port(static_cast<std::size_t>(slot));
  };
  for (std::uint32_t end = 0; end < plan.ends.size(); ++end) {
    if (end < plan.ends[end].peer) join(context, link_port(end), link_port(plan.ends[end].peer));
  }
  ASSERT_GE(traffic.nodes.size(), 64U);
  sc_core::sc_start();
  EXPECT_EQ(traffic.completed, KERNBENCH_TRANSFERS);
  EXPECT_EQ(traffic.wrong, 0U);
  EXPECT_EQ(traffic.sent, traffic.seen);
  EXPECT_EQ(pool.outstanding(), 0U);
}

TEST(Torus, DeliversEveryTransferOnceAndInOrder) { run(8, 4); }

TEST(Torus, DoesSoWithBuffersShallowerThanAPacket) { run(2, 1); }

}  // namespace
}  // namespace kernbench::topology
