#pragma once
#include <memory>
#include <vector>

#include "models/noc/mesh_engine.h"
#include "models/noc/noc_config.h"
#include "models/noc/virtual_channel.h"
#include "tlm/machine/fidelity.h"
#include "tlm/machine/routing.h"
#include "tlm/sim/event_queue.h"

namespace kernbench {

class RouterPorts;
struct BackDoor;
struct RouterInput;
struct RouterOutput;

/// One router network: a cube's mesh, an IO chiplet's crossbar or the fabric switch. Owns the engine that times its
/// routers and lends it the event queue: one event per cycle in which something happens, whatever the number of
/// routers. The Router modules made on it carry the packets over their sockets.
class RouterNetwork final : MeshEngine::Actions {
 public:
  /// Throws std::invalid_argument if packets cannot travel in a network of this shape.
  RouterNetwork(const NocConfig& config, const NetworkRoutes& routes, EventQueue& queue, Grade grade = Grade::accurate);
  ~RouterNetwork();
  RouterNetwork(const RouterNetwork&) = delete;
  RouterNetwork& operator=(const RouterNetwork&) = delete;

  const NocConfig& config() const { return config_; }
  const Clock& clock() const { return clock_; }
  Grade grade() const { return grade_; }
  EventQueue& queue() { return queue_; }
  MeshEngine& engine() { return *engine_; }

  /// Routers are numbered in the order in which they are made, as in the network's routes.
  unsigned add(RouterPorts& router, RouterInput* inputs, RouterOutput* outputs, unsigned ports);
  /// Hands an access that is at `router` to what the way on is bound to.
  unsigned debug(unsigned router, BackDoor& access) const;
  /// For which a packet's flits take a port.
  Ps busy_of(const Packet& packet) const { return clock_.at(flits_of_(packet)); }
  /// First cycle at or after `time`.
  Cycle cycle(Ps time) const { return time == known_time_ ? known_cycle_ : near(time); }
  Cycle now() const { return near(queue_.now()); }
  /// From a source to the buffer behind it, for a flit that leaves the source at `cycle`.
  Ps injection(Cycle cycle) const { return clock_.at(cycle + 1 + config_.link_delay) - clock_.at(cycle); }
  /// Time of a cycle that is about to be handed over.
  Ps time(Cycle cycle) {
    known_cycle_ = cycle;
    return known_time_ = clock_.at(cycle);
  }

 private:
  void head(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head) override;
  void tail(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) override;
  void soon(unsigned router, unsigned output, unsigned channel) override;
  void pass(unsigned router, unsigned input, unsigned output, Packet& packet, Cycle head, Cycle tail) override;
  void freed(unsigned router, unsigned output, Packet& packet, const Packet* by) override;
  void injected(unsigned router, unsigned input, Packet& packet, Cycle head, Cycle tail) override;
  void wake(Cycle at) override;

  // Without a division shortly after a step.
  Cycle near(Ps time) const {
    const Ps ahead = time - step_time_;
    if (ahead == 0) return step_cycle_;
    if (ahead == period_) return step_cycle_ + 1;
    return ahead == 2 * period_ ? step_cycle_ + 2 : clock_.tick_at_or_after(time);
  }
  Ps reach(const RouterOutput& to, Packet& packet, Cycle head);
  void leave(RouterOutput& to, unsigned router, unsigned input, Packet& packet, Cycle head, Cycle tail);

  EventQueue& queue_;
  const Clock clock_;
  const FlitCounter flits_of_;
  const Cycle hop_;    // of a head that nothing hinders
  const Ps period_;    // 0: not a whole number of picoseconds
  const Ps hop_time_;  // of hop_, if the period is one
  Ps step_time_ = 0;   // of the last step
  Cycle step_cycle_ = 0;
  Ps known_time_ = 0;
  Cycle known_cycle_ = 0;
  std::unique_ptr<MeshEngine> engine_;
  std::vector<RouterInput*> inputs_;    // by router: those of its first port
  std::vector<RouterOutput*> outputs_;  // likewise
  std::vector<RouterPorts*> routers_;
  const NocConfig config_;
  const NetworkRoutes& routes_;
  const Grade grade_;
};

}  // namespace kernbench
