#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/noc/mesh_engine.h"
#include "tlm/sim/random.h"

namespace kernbench::test {

/// Traffic of the reference tables on an engine alone: k x k mesh, one node per router, no modules.
struct Traffic {
  unsigned k = 8, flits = 8, vcs = 4, depth = 8;
  bool hold = false;
  std::string pattern = "uniform";  ///< uniform, transpose, neighbor, tornado
  std::vector<unsigned> hot;        ///< hotspot nodes, equally likely, if not empty
  double load = 0.1;                ///< flits per node and cycle
  std::uint64_t seed = 1;
  Cycle warm_up = 10'000, window = 30'000;
};

struct TrafficResult {
  double latency = 0;   ///< cycles, of packets created in the window
  double accepted = 0;  ///< flits per node and cycle delivered in the window
  std::uint64_t packets = 0, all = 0;
};

class BareRoutes final : public NetworkRoutes {
 public:
  explicit BareRoutes(unsigned k) : k_(k), ports_(k * k * k * k) {
    for (unsigned at = 0; at < k * k; ++at) {
      for (unsigned to = 0; to < k * k; ++to) ports_[at * k * k + to] = find(at, to);
    }
  }
  RouteDecision enter(NodeId destination, std::uint16_t, bool, std::uint8_t) const override {
    return {{static_cast<std::uint16_t>(destination), kFirstLocalPort}, 1, 0};
  }
  std::uint8_t next_port(std::uint16_t at, Exit exit) const override { return ports_[at * k_ * k_ + exit.router]; }

 private:
  std::uint8_t find(unsigned at, unsigned to) const {
    if (at % k_ != to % k_) return to % k_ > at % k_ ? kEastPort : kWestPort;
    if (at / k_ != to / k_) return to / k_ > at / k_ ? kSouthPort : kNorthPort;
    return kFirstLocalPort;
  }
  unsigned k_;
  std::vector<std::uint8_t> ports_;
};

using EngineFactory =
    std::function<std::unique_ptr<MeshEngine>(const NocConfig&, const NetworkRoutes&, MeshEngine::Actions&)>;

inline NocConfig bare_config(const Traffic& traffic) {
  NocConfig config;
  config.rows = config.cols = static_cast<std::uint16_t>(traffic.k);
  config.flit_bytes = 1;
  config.clock_hz = 1'000'000'000;
  config.vcs_per_set = traffic.vcs;
  config.vc_depth_flits = traffic.depth;
  config.vc_choice = VcChoice::any;
  config.packet_chaining = false;
  config.switch_policy = traffic.hold ? SwitchPolicy::hold : SwitchPolicy::interleave;
  return config;
}

class BareMesh final : MeshEngine::Actions {
 public:
  BareMesh(const Traffic& traffic, const EngineFactory& factory)
      : traffic_(traffic), routes_(traffic.k), engine_(factory(bare_config(traffic), routes_, *this)) {
    const unsigned k = traffic.k, nodes = k * k;
    for (unsigned r = 0; r < nodes; ++r) engine_->add_router(kFirstLocalPort + 1);
    to_.resize(nodes * kFirstLocalPort, 0);
    for (unsigned r = 0; r < nodes; ++r) {
      const unsigned x = r % k, y = r / k;
      if (x + 1 < k) join(r, kEastPort, r + 1, kWestPort);
      if (x > 0) join(r, kWestPort, r - 1, kEastPort);
      if (y + 1 < k) join(r, kSouthPort, r + k, kNorthPort);
      if (y > 0) join(r, kNorthPort, r - k, kSouthPort);
      engine_->announce(r, kFirstLocalPort, MeshEngine::kUnlimited);
    }
  }

  TrafficResult run() {
    const double probability = traffic_.load / traffic_.flits;
    end_ = traffic_.warm_up + traffic_.window;
    log_ = std::log1p(-probability);
    for (unsigned n = 0; n < traffic_.k * traffic_.k; ++n) {
      random_.push_back(traffic_.seed * 1'000'003 + n);
      create(n, static_cast<Cycle>(-1));
    }
    while (true) {
      const Cycle creation = creations_.empty() ? kNoCycle : creations_.top().first;
      const Cycle now = std::min(creation, wake_);
      // Packets created in the window are waited for, unless the network is saturated.
      if (now == kNoCycle || now > end_ + 4 * traffic_.window || (now >= end_ && open_ == 0)) break;
      if (creation == now) {
        const unsigned node = creations_.top().second;
        creations_.pop();
        offer(node, now);
        create(node, now);
      } else {
        wake_ = kNoCycle;
        engine_->step(now);
      }
    }
    const double nodes = traffic_.k * traffic_.k;
    result_.accepted = static_cast<double>(accepted_) / nodes / static_cast<double>(traffic_.window);
    result_.latency = static_cast<double>(sum_) / static_cast<double>(result_.packets);
    return result_;
  }

 private:
  struct Record {
    Packet packet;
    Cycle created = 0;
    bool measured = false;
  };

  void join(unsigned r, unsigned output, unsigned to, unsigned input) {
    engine_->connect(r, output, to, input);
    to_[r * kFirstLocalPort + output] = to << 8 | input;
  }
  std::uint64_t draw(unsigned node) { return next_splitmix64(random_[node]); }
  // A packet in each cycle with the same probability: geometric gaps.
  void create(unsigned node, Cycle last) {
    const double u = (static_cast<double>(draw(node) >> 11) + 0.5) / 9007199254740992.0;
    creations_.push({last + 1 + static_cast<Cycle>(std::log(u) / log_), node});
  }
  unsigned target(unsigned node) {
    const unsigned k = traffic_.k, x = node % k, y = node / k;
    if (!traffic_.hot.empty()) return traffic_.hot[draw(node) % traffic_.hot.size()];
    if (traffic_.pattern == "uniform") return static_cast<unsigned>(draw(node) % (k * k));
    if (traffic_.pattern == "transpose") return x * k + y;
    if (traffic_.pattern == "neighbor") return (x + 1) % k + k * ((y + 1) % k);
    if (traffic_.pattern == "tornado") return (x + (k + 1) / 2 - 1) % k + k * ((y + (k + 1) / 2 - 1) % k);
    throw std::invalid_argument("pattern " + traffic_.pattern);
  }
  void offer(unsigned node, Cycle now) {
    Record* record;
    if (free_.empty()) {
      record = records_.emplace_back(std::make_unique<Record>()).get();
    } else {
      record = free_.back();
      free_.pop_back();
    }
    const unsigned to = target(node);
    Packet& packet = record->packet;
    packet.user = record;
    packet.source = NodeId{node};
    packet.destination = NodeId{to};
    packet.message_class = MessageClass::ipcq_data;
    packet.bytes = traffic_.flits;
    packet.exit_router = static_cast<std::uint16_t>(to);
    packet.exit_port = kFirstLocalPort;
    packet.vc_set = 1;
    record->created = now;
    record->measured = now >= traffic_.warm_up && now < end_;
    if (record->measured) ++open_;
    engine_->offer(node, kFirstLocalPort, packet, now, now + traffic_.flits - 1, now);
  }

  void head(unsigned router, unsigned, unsigned output, Packet& packet, Cycle head) override {
    if (output == kFirstLocalPort) return;
    const unsigned to = to_[router * kFirstLocalPort + output];
    engine_->arrive(to >> 8, to & 0xFF, packet, head);
  }
  void tail(unsigned, unsigned, unsigned output, Packet& packet, Cycle, Cycle tail) override {
    if (output != kFirstLocalPort) return;
    auto* record = static_cast<Record*>(packet.user);
    ++result_.all;
    if (tail >= traffic_.warm_up && tail < end_) accepted_ += traffic_.flits;
    if (record->measured) {
      --open_;
      ++result_.packets;
      sum_ += tail - record->created;
    }
    free_.push_back(record);
  }
  void injected(unsigned, unsigned, Packet&, Cycle, Cycle) override {}
  void wake(Cycle at) override { wake_ = std::min(wake_, at); }

  const Traffic traffic_;
  const BareRoutes routes_;
  std::unique_ptr<MeshEngine> engine_;
  std::vector<unsigned> to_;
  std::vector<std::uint64_t> random_;
  using Creation = std::pair<Cycle, unsigned>;
  std::priority_queue<Creation, std::vector<Creation>, std::greater<>> creations_;
  std::vector<std::unique_ptr<Record>> records_;
  std::vector<Record*> free_;
  TrafficResult result_;
  double log_ = 0;
  Cycle end_ = 0, wake_ = kNoCycle;
  std::uint64_t sum_ = 0, accepted_ = 0, open_ = 0;
};

}  // namespace kernbench::test
