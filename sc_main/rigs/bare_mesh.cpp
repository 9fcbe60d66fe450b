#include "sc_main/rigs/bare_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "models/noc/router.h"
#include "models/noc/router_network.h"
#include "sc_main/process/cpu_time.h"
#include "sc_main/rigs/traffic_pattern.h"
#include "sc_main/rigs/traffic_source.h"
#include "tlm/config/refusals.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/sim/dispatcher.h"
#include "tlm/sim/main_stack.h"

namespace kernbench {
namespace {
constexpr Ps kCycle = 1000;  ///< of a clock of 1 GHz: times in ps are cycles x 1000
constexpr std::uint32_t kFlitBytes = 4;
constexpr MessageClass kClass = MessageClass::ipcq_data;

NocConfig noc_config(const BareMeshConfig& config) {
  NocConfig noc;
  noc.rows = static_cast<std::uint16_t>(config.rows);
  noc.cols = static_cast<std::uint16_t>(config.cols);
  noc.flit_bytes = kFlitBytes;
  noc.clock_hz = kPsPerSecond / kCycle;
  noc.vc_choice = VcChoice::any;
  noc.packet_chaining = false;
  noc.switch_policy = config.hold ? SwitchPolicy::hold : SwitchPolicy::interleave;
  noc.vcs_per_set = config.vcs;
  noc.vc_depth_flits = config.vc_depth;
  noc.routing_delay = config.routing_delay;
  noc.vc_alloc_delay = config.vc_alloc_delay;
  noc.sw_alloc_delay = config.sw_alloc_delay;
  noc.switch_delay = config.switch_delay;
  noc.link_delay = config.link_delay;
  noc.credit_delay = config.credit_delay;
  return noc;
}

/// X first, then Y; node n sits at router n.
class BareRoutes final : public NetworkRoutes {
 public:
  BareRoutes(unsigned cols, unsigned rows) {
    for (unsigned node = 0; node < cols * rows; ++node)
      places_.push_back({static_cast<std::uint16_t>(node % cols), static_cast<std::uint16_t>(node / cols)});
  }
  RouteDecision enter(NodeId destination, std::uint16_t, bool, std::uint8_t dateline) const override {
    return {{static_cast<std::uint16_t>(index(destination)), kFirstLocalPort}, 0, dateline};
  }
  std::uint8_t next_port(std::uint16_t at, Exit exit) const override {
    const Place from = places_[at], to = places_[exit.router];
    if (from.x != to.x) return to.x > from.x ? kEastPort : kWestPort;
    if (from.y != to.y) return to.y > from.y ? kSouthPort : kNorthPort;
    return exit.port;
  }
  /// Links between two nodes.
  unsigned links(unsigned a, unsigned b) const {
    return distance(places_[a].x, places_[b].x) + distance(places_[a].y, places_[b].y);
  }

 private:
  struct Place {
    std::uint16_t x, y;
  };
  static unsigned distance(unsigned a, unsigned b) { return a > b ? a - b : b - a; }
  std::vector<Place> places_;
};

/// A packet that waits in its source queue.
struct Waiting {
  std::uint64_t created;
  unsigned destination;
};

/// What the nodes of a mesh share.
struct Shared {
  EventQueue& queue;
  PayloadPool& pool;
  const BareRoutes& routes;
  TrafficMeter& meter;
  unsigned flits;
  Ps injection;  ///< from the source to the router's buffer
};

/// Source and sink at one router. Packets wait here until their turn is near, so that a saturated run keeps a record of
/// 16 bytes of each and not the packet.
class MeshNode : public sc_core::sc_module, PacketForwardIf, PacketBackwardIf {
 public:
  MeshNode(const sc_core::sc_module_name& name, unsigned self, Shared& shared)
      : sc_module(name), self_(self), shared_(shared) {
    to_router.bind(static_cast<PacketBackwardIf&>(*this));
    from_router.bind(static_cast<PacketForwardIf&>(*this));
  }
  PacketInitiatorSocket to_router{"to_router"};
  PacketTargetSocket from_router{"from_router"};

  /// Drops what waits; what has been offered still travels.
  void stop() { waiting_.clear(); }
  /// A packet comes into being at `cycle`, not before the present one.
  void create(unsigned destination, std::uint64_t cycle) {
    shared_.meter.created(cycle);
    if (offered_ < kOffered)
      send({cycle, destination});
    else
      waiting_.push_back({cycle, destination});
  }

 private:
  /// The packet that is being sent and the next one, so that no cycle is lost between them.
  static constexpr unsigned kOffered = 2;

  void end_of_elaboration() override { from_router.give_credit(0, kNoCredits, 0); }

  void send(const Waiting& next) {
    ++offered_;
    tlm::tlm_generic_payload& payload = shared_.pool.acquire();
    Packet& packet = Packet::of(payload);
    packet.source = NodeId{self_};
    packet.destination = NodeId{next.destination};
    packet.message_class = kClass;
    packet.kind = PacketKind::ipcq_data;
    packet.bytes = shared_.flits * kFlitBytes;
    packet.op = next.created;
    const RouteDecision route = shared_.routes.enter(packet.destination, static_cast<std::uint16_t>(self_), false, 0);
    packet.exit_router = route.exit.router;
    packet.exit_port = route.exit.port;
    packet.vc_set = route.vc_set;
    const Ps first = std::max(shared_.queue.now(), next.created * kCycle);
    packet.head = first;
    to_router->offer(packet, first, first);
  }

  void injected(Packet& packet, Ps head, Ps tail) override {
    packet.injected = head - shared_.injection;
    shared_.meter.injected((tail - shared_.injection) / kCycle);
    --offered_;
    if (waiting_.empty()) return;
    send(waiting_.front());
    waiting_.pop_front();
  }
  void credit(unsigned, unsigned, Ps) override {}  // the source is the router's

  void head(Packet&, Ps) override {}
  void pass(Packet& packet, Ps head, Ps tail) override { MeshNode::tail(packet, head, tail); }
  void tail(Packet& packet, Ps, Ps tail) override {
    shared_.meter.arrived(packet.op, packet.injected / kCycle, tail / kCycle,
                          shared_.routes.links(index(packet.source), self_));
    shared_.queue.completed();
    packet.payload->release();
  }

  const unsigned self_;
  Shared& shared_;
  unsigned offered_ = 0;
  std::deque<Waiting> waiting_;
};

}  // namespace

struct BareMesh::Impl {
  Impl(const BareMeshConfig& config, EventQueue& queue)
      : config(config),
        queue(queue),
        pattern(config.pattern, config.cols, config.rows),
        routes(config.cols, config.rows),
        meter(config.warmup, config.warmup + config.window),
        network(noc_config(config), routes, queue, config.fast ? Grade::fast : Grade::accurate),
        shared{queue, pool, routes, meter, config.packet_flits, (1 + config.link_delay) * kCycle},
        arrivals(config.cols * config.rows, config.load / config.packet_flits, config.seed),
        destinations(config.seed, 0),
        next(arrivals.next()) {
    for (unsigned r = 0; r < config.rows * config.cols; ++r) add(r);
    for (unsigned r = 0; r < config.rows * config.cols; ++r) {
      if (r % config.cols + 1 < config.cols) join(r, kEastPort, r + 1, kWestPort);
      if (r + config.cols < config.rows * config.cols) join(r, kSouthPort, r + config.cols, kNorthPort);
    }
  }

  void add(unsigned r) {
    const unsigned x = r % config.cols, y = r / config.cols;
    const std::vector<bool> connected = {y > 0, y + 1 < config.rows, x + 1 < config.cols, x > 0, true};
    routers.push_back(std::make_unique<Router>(fmt::format("r{}", r).c_str(), network, connected, nullptr));
    nodes.push_back(std::make_unique<MeshNode>(fmt::format("node{}", r).c_str(), r, shared));
    nodes[r]->to_router.bind(*routers[r]->in[kFirstLocalPort]);
    routers[r]->out[kFirstLocalPort]->bind(nodes[r]->from_router);
  }
  void join(unsigned a, unsigned a_port, unsigned b, unsigned b_port) {
    routers[a]->out[a_port]->bind(*routers[b]->in[b_port]);
    routers[b]->out[b_port]->bind(*routers[a]->in[a_port]);
  }

  void start() {
    begin_s = process::user_cpu_s();
    queue.at(next.cycle * kCycle, [this] { create(); });
    queue.at((config.warmup + config.window) * kCycle, [this] { end_if_done(); });
  }

  /// Every packet of one cycle, then the event of the next cycle that has any. A cycle ahead of their creation, so that
  /// it does not matter which event of a cycle comes first.
  void create() {
    if (ended_at != 0) return;
    const std::uint64_t cycle = next.cycle;
    do {
      nodes[next.node]->create(pattern.destination(next.node, destinations), cycle + 1);
      next = arrivals.next();
    } while (next.cycle == cycle);
    queue.at(next.cycle * kCycle, [this] { create(); });
  }

  /// Traffic goes on until the measured packets are there; looked at now and then.
  void end_if_done() {
    constexpr std::uint64_t kInterval = 64;
    const std::uint64_t cycle = queue.now() / kCycle, run = config.warmup + config.window;
    if (meter.arrived_count() == meter.measured() || cycle >= run * (1 + config.drain)) {
      ended_at = cycle;
      cpu_s = process::user_cpu_s() - begin_s;
      meter.freeze();
      for (const auto& node : nodes) node->stop();
      return;
    }
    queue.at((cycle + kInterval) * kCycle, [this] { end_if_done(); });
  }

  const BareMeshConfig config;
  EventQueue& queue;
  const TrafficPattern pattern;
  const BareRoutes routes;
  PayloadPool pool;
  TrafficMeter meter;
  RouterNetwork network;
  Shared shared;
  BernoulliArrivals arrivals;
  Random destinations;
  BernoulliArrivals::Arrival next;
  std::vector<std::unique_ptr<Router>> routers;
  std::vector<std::unique_ptr<MeshNode>> nodes;
  std::uint64_t ended_at = 0;     // cycle; 0: runs
  double begin_s = 0, cpu_s = 0;  // user CPU time of the process at the beginning, of the run
};

std::vector<BareMeshFault> faults(const BareMeshConfig& config) {
  constexpr unsigned kMostNodes = 4096, kMostVcs = 16, kMostFlits = 64;
  std::vector<BareMeshFault> found;
  const auto refuse = [&](const char* member, std::string text, std::string hint) {
    found.push_back({member, std::move(text), std::move(hint)});
  };
  const bool meshed = config.cols > 0 && config.rows > 0 && config.cols <= kMostNodes && config.rows <= kMostNodes &&
                      config.cols * config.rows <= kMostNodes;
  if (!meshed) {
    refuse("cols", fmt::format("a mesh of {} x {} routers", config.cols, config.rows),
           fmt::format("give 1 to {} in all", kMostNodes));
  }
  const bool packed = config.packet_flits > 0 && config.packet_flits <= kMostFlits;
  if (!packed)
    refuse("packet_flits", fmt::format("packets of {} flits", config.packet_flits),
           fmt::format("give 1 to {}", kMostFlits));
  if (config.vcs == 0 || config.vcs > kMostVcs)
    refuse("vcs", fmt::format("{} virtual channels", config.vcs), fmt::format("give 1 to {}", kMostVcs));
  if (packed && !(config.load > 0 && config.load <= config.packet_flits)) {
    refuse("load", fmt::format("a load of {} flits per node and cycle", config.load),
           fmt::format("give more than 0, and at most one packet per cycle, {}", config.packet_flits));
  }
  if (config.vc_depth == 0) refuse("vc_depth", "virtual channels without buffers", "give a depth of at least 1 flit");
  if (config.window == 0) refuse("window", "an empty window", "give at least 1 cycle");
  const auto try_to = [&](const char* member, const auto& build) {
    try {
      build();
    } catch (const std::invalid_argument& error) {
      refuse(member, error.what(), "");
    }
  };
  if (meshed) try_to("pattern", [&] { TrafficPattern(config.pattern, config.cols, config.rows); });
  if (found.empty()) try_to("delays", [&] { check(noc_config(config)); });
  return found;
}

void check(const BareMeshConfig& config) {
  Refusals refusals;
  for (const BareMeshFault& fault : faults(config)) refusals.add(fault.text, fault.hint);
  refusals.throw_if_any();
}

BareMesh::BareMesh(const sc_core::sc_module_name& name, const BareMeshConfig& config, EventQueue& queue)
    : sc_module(name) {
  check(config);
  impl_ = std::make_unique<Impl>(config, queue);
}

BareMesh::~BareMesh() = default;

void BareMesh::start_of_simulation() { impl_->start(); }

BareMeshResult BareMesh::result() const {
  const BareMeshConfig& config = impl_->config;
  const TrafficMeter& meter = impl_->meter;
  BareMeshResult result;
  const double per_node_and_cycle =
      static_cast<double>(config.packet_flits) / (static_cast<double>(config.window) * config.cols * config.rows);
  result.offered = static_cast<double>(meter.measured()) * per_node_and_cycle;
  result.injected = static_cast<double>(meter.injected_count()) * per_node_and_cycle;
  result.accepted = static_cast<double>(meter.accepted_count()) * per_node_and_cycle;
  result.latency = meter.mean_latency();
  result.network_latency = meter.mean_network_latency();
  result.p50 = meter.percentile(0.50);
  result.p95 = meter.percentile(0.95);
  result.p99 = meter.percentile(0.99);
  result.links = meter.mean_links();
  const unsigned hop =
      config.routing_delay + config.vc_alloc_delay + config.sw_alloc_delay + config.switch_delay + config.link_delay;
  result.zero_load = 1 + config.link_delay + hop * (impl_->pattern.mean_links() + 1) + config.packet_flits - 1;
  result.measured = meter.measured();
  result.arrived = meter.arrived_count();
  result.packets = meter.packets();
  result.cycles = impl_->ended_at;
  result.least_latency = meter.least_latency();
  result.cpu_s = impl_->cpu_s;
  return result;
}

BareMeshResult run_bare_mesh(const BareMeshConfig& config) {
  Dispatcher dispatcher("dispatcher", 1);
  const BareMesh mesh("mesh", config, dispatcher.queue(0));
  sc_core::sc_start();
  back_on_main_stack();
  return mesh.result();
}

}  // namespace kernbench
