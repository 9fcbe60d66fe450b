#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "models/noc/mesh_engine.h"
#include "models/noc/slot_map.h"
#include "models/noc/virtual_channel.h"

// What HopCommitEngine keeps: private to models/noc. A hop's cost is the cache lines that it touches; what every hop
// needs of a structure is in its first one.
namespace kernbench::hop {

struct Network;
struct Port;
inline constexpr std::uint8_t kNoVc = 0xFF;
inline constexpr unsigned kMaxVcs = 25;  ///< of one network: vcs() <= 255

/// Flits that left a buffer together, from `first` to first + span, with the gaps spread evenly.
struct Run {
  Cycle first = 0;
  std::uint32_t flits = 0, span = 0;
};

/// Packets in one virtual channel of an input buffer, or those that wait in a source to enter one.
struct alignas(64) Queue {
  Packet* first = nullptr;
  Packet* last = nullptr;
  Cycle gone = 0;         ///< after the tail of the packet that left last
  Cycle wake = kNoCycle;  ///< the pending evaluation
  Port* port = nullptr;
  Network** onward = nullptr;                ///< what its packets go to, by output; of a source: its only way
  std::uint32_t assigned = 0, departed = 0;  ///< as buffer: running numbers of flits
  std::uint8_t number = 0;                   ///< virtual channel; its first one for a source with one line for all
  std::uint8_t owned = kNoVc;                ///< channel of the next buffer that it holds while it waits or trails
  std::uint8_t output = 0;                   ///< of the packet that is going
  std::uint8_t channel = 0;                  ///< of the packet that left last
  std::uint16_t arriving = 0;                ///< packets on the way here
  std::uint8_t newest = 0;                   ///< of runs
  std::uint8_t level : 2;                    ///< priority_level
  bool source : 1;
  bool watched : 1;  ///< one of sender, trailing, trailing_packet is set

  // As buffer: when its places may be used again, and who waits to know.
  std::array<Run, 4> runs;    ///< older ones are long past: a packet is handled when the one before it has left
  Queue* sender = nullptr;    ///< waits for a decision here to have credit
  Queue* trailing = nullptr;  ///< its packet is longer than this buffer, its tail follows this one's head
  // As sender.
  Queue* next_waiting = nullptr;
  Cycle va = 0;                       ///< of the channel that it owns
  Packet* trailing_packet = nullptr;  ///< has left but for its tail
  Passage passage;                    ///< of the trailing packet
  Cycle delivered = 0;                ///< outside the network: after the tail that arrived last

  Queue() : level(kOrdinary), source(false), watched(false) {}
  void watch() { watched = sender != nullptr || trailing != nullptr || trailing_packet != nullptr; }
};

// One line for what every hop reads, one for the runs.
static_assert(offsetof(Queue, runs) == 64 && offsetof(Queue, sender) == 128);

/// Which cycles of a port are taken, by priority_level: what packets of that level and of those before it have taken.
struct Maps {
  SlotMap ordinary;
  std::array<SlotMap, kOrdinary> urgent;

  SlotMap& operator[](unsigned level) { return level == kOrdinary ? ordinary : urgent[level]; }
  const SlotMap& operator[](unsigned level) const { return level == kOrdinary ? ordinary : urgent[level]; }
};

/// From an output, or a source, to the buffers behind it; one flit per cycle.
struct alignas(64) Link {
  std::uint32_t depth = 0;
  std::uint32_t router = 0, number = 0;  ///< of the port
  Port* port = nullptr;                  ///< null: outside the network
  Maps slots;
  std::array<Network*, kVirtualNetworks> networks{};
};

/// The virtual channels of one virtual network behind a link.
struct alignas(64) Network {
  Link* link = nullptr;
  Queue* vcs = nullptr;
  Queue* waiting = nullptr;  ///< queues that wait for a channel, first come first served
  std::uint8_t next = 0;     ///< round robin
  std::uint8_t output = 0;   ///< that leads here, of `router`
  std::uint32_t router = 0;
  std::array<Cycle, kMaxVcs> free{};  ///< from when on a packet may be given the channel; kNoCycle: not decided
  Queue* last_waiting = nullptr;
  std::unique_ptr<Queue[]> queues;
};

struct alignas(64) Port {
  std::uint32_t router = 0, number = 0;
  Maps slots;
  std::unique_ptr<Link> border;                                    ///< its output, if that leaves the network
  std::array<std::unique_ptr<Queue[]>, kVirtualNetworks> sources;  ///< of an input that nothing is connected to
  Link in;                                                         ///< to its buffers
};

}  // namespace kernbench::hop
