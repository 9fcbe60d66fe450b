#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/noc/mesh_engine.h"
#include "models/noc/virtual_channel.h"

// What FlitEngine keeps: private to models/noc.
namespace kernbench::flit {

/// When flits of a row took or will take effect: the number of all of them, and the cycles of the latest. At most one
/// per cycle, in order; those more than kWindow cycles older than the last are known to be long past.
class FlitTimes {
 public:
  static constexpr unsigned kWindow = 64;

  std::uint32_t total() const { return total_; }
  void add(Cycle when) {
    const Cycle step = when - last_;
    recent_ = step < kWindow ? recent_ << step | 1 : 1;
    last_ = when;
    ++total_;
  }
  /// `flits` that have taken effect by now.
  void add_past(unsigned flits) { total_ += flits; }
  Cycle last() const { return last_; }
  /// Cycle of the `n`-th last flit (1: the last), or `now` if that is past. REQUIRES: n >= 1.
  Cycle nth_last(std::uint32_t n, Cycle now) const {
    if (last_ <= now || n > last_ - now) return now;
    std::uint64_t rest = recent_;
    while (--n != 0) rest &= rest - 1;
    if (rest == 0) return now;
    const Cycle when = last_ - static_cast<unsigned>(__builtin_ctzll(rest));
    return when > now ? when : now;
  }

 private:
  std::uint64_t recent_ = 0;  // bit j: one at last_ - j
  Cycle last_ = 0;
  std::uint32_t total_ = 0;
};

struct Router;
struct Source;
struct Input;
struct Output;

/// The buffer of one virtual channel at an input, and the packet at its front on the way through the router. Behind an
/// output that leaves the network stands one, too: of it only the two times and the depth are used.
struct Buffer {
  enum class State : std::uint8_t { idle, waiting, active };  ///< waiting: for an output virtual channel

  // What every flit needs comes first.
  FlitTimes arrived;       ///< flits are in the buffer
  FlitTimes freed;         ///< flits have left it and the sender may use their place
  Buffer* down = nullptr;  ///< where the front packet goes
  Router* router = nullptr;
  Input* from = nullptr;  ///< the port it belongs to
  Output* to = nullptr;   ///< of the front packet
  std::uint32_t depth = 0;
  std::uint32_t ready_at = 0;  ///< position in Router::ready
  std::uint16_t flits = 0;     ///< of the front packet
  std::uint16_t sent = 0;
  std::uint16_t input = 0, output = 0;
  std::uint8_t reuse = 0;                        ///< cycles from a flit's departure to the use of its place
  std::uint8_t vc = 0, out_vc = 0, network = 0;  ///< out_vc: within the virtual network
  State state = State::idle;
  bool starved = false;            ///< the next flit has not been sent by the hop before
  bool sender_blocked = false;     ///< the sender waits for a place
  std::uint8_t level = kOrdinary;  ///< priority_level

  Packet* current = nullptr;
  Packet* first = nullptr;  ///< packets behind it
  Packet* last = nullptr;
  Buffer* sender = nullptr;       ///< the buffer whose front packet comes here
  Buffer* next = nullptr;         ///< in the list of those that wait for a virtual channel to become free
  Cycle head = 0;                 ///< arrival of the front packet's head at its next hop
  std::uint32_t accept_next = 0;  ///< virtual channel allocation: output channel that this one accepts first

  std::uint32_t missing() const { return arrived.total() - freed.total(); }  ///< flits in it or on the way to it
  /// Cycle, `at` or later, in which a flit may be sent to it; kNoCycle: not known yet.
  Cycle place(Cycle at) const {
    if (depth == MeshEngine::kUnlimited) return at;
    const std::uint32_t free = depth - missing();
    return free == 0 ? kNoCycle : freed.nth_last(free, at);
  }
};

struct OutputVc {
  Buffer* down = nullptr;
  std::uint32_t grant_next = 0;  ///< input virtual channel that goes first
  std::uint8_t streak = 0;
};
/// Output virtual channels of one virtual network.
struct OutputNetwork {
  std::uint32_t free = 0;    ///< bit k: channel k belongs to nobody
  Buffer* parked = nullptr;  ///< heads that found no free channel
  std::unique_ptr<OutputVc[]> vcs;
};

struct Input {
  std::array<std::unique_ptr<Buffer[]>, kVirtualNetworks> networks;
  std::unique_ptr<Source> source;
  Buffer* best = nullptr;  ///< during an allocation
  Cycle busy = kNoCycle;   ///< cycle in which the port is taken (policy hold)
  std::uint32_t best_rank = 0;
  std::uint16_t accept_next = 0, vc_next = 0;
};
struct Output {
  std::array<std::unique_ptr<OutputNetwork>, kVirtualNetworks> networks;
  Buffer* best = nullptr;
  std::uint32_t best_rank = 0;
  Cycle busy = kNoCycle;
  std::uint16_t grant_next = 0;
  std::uint8_t streak = 0;
};

/// State of a router that has seen a packet.
struct Router {
  Router(unsigned index, unsigned ports) : index(index), ports(ports), inputs(ports), outputs(ports) {}
  bool has_work() const { return !ready.empty() || !waiting.empty(); }

  unsigned index, ports;
  bool listed = false;           ///< in the engine's list of the coming cycle
  std::vector<Buffer*> ready;    ///< whose next flit may go in the coming cycle
  std::vector<Buffer*> waiting;  ///< heads that ask for an output virtual channel in the coming cycle
  std::vector<Buffer*> holds;    ///< those that own their ports in cycle hold_at
  Cycle hold_at = kNoCycle;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
};

/// What is known of a router from elaboration on.
struct Port {
  std::uint32_t to = kNowhere;  ///< router behind the output
  std::uint16_t to_input = 0;
  bool connected_input = false;  ///< comes from a router of this network
  std::uint32_t capacity = 0;    ///< behind an output that leaves the network
  static constexpr std::uint32_t kNowhere = ~0U;
};

/// A packet that waits for injection; its flits can go from `first` to `last`.
struct Offer {
  Packet* packet;
  Cycle first, last;
};

/// Packets of one virtual channel, or of a whole source if it picks any channel.
struct Lane {
  Buffer* target = nullptr;
  std::vector<Offer> queue;  ///< a ring
  std::uint32_t front = 0, size = 0;
  std::uint16_t flits = 0, sent = 0;  ///< of the front packet
  Cycle head = 0;
  std::uint8_t network = 0, channel = 0;

  const Offer& offer() const { return queue[front]; }
  void push(const Offer& offer);
  void pop() {
    front = front + 1 == queue.size() ? 0 : front + 1;
    --size;
  }
};

struct Source {
  Router* router = nullptr;
  std::uint16_t input = 0;
  Cycle free = 0;              ///< first cycle in which the port may pass another flit
  Cycle wake = kNoCycle;       ///< pending
  std::vector<Lane*> waiting;  ///< lanes with packets
  Lane* middle = nullptr;      ///< the lane that is in the middle of a packet, if it was the last
  std::uint8_t next_network = 0;
  std::array<std::uint8_t, kVirtualNetworks> next_channel{};
  std::array<std::unique_ptr<Lane[]>, kVirtualNetworks> lanes;
};

}  // namespace kernbench::flit
