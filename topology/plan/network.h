#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/machine/ids.h"
#include "tlm/machine/routing.h"
#include "topology/plan/graph.h"
#include "topology/plan/layout.h"
#include "topology/spec/spec.h"

namespace kernbench {
enum class Delay : std::uint8_t;
}

namespace kernbench::topology {

inline constexpr std::uint32_t kNoEnd = 0xFFFF'FFFF;

/// What hangs on a port of an IO chiplet's crossbar or of the fabric switch.
struct CrossbarPort {
  enum class Kind : std::uint8_t { pcie_ep, io_cpu, ucie, link } kind = Kind::ucie;
  std::uint16_t end = 0;         ///< ucie: column; link: number of the link port
  std::uint16_t connection = 0;  ///< of that UCIe or link port
};

/// A crossbar's ports, numbered from kFirstLocalPort: PCIE_EP, IO_CPU, UCIe ports by column, link ports. The fabric
/// switch has one link port per SIP and nothing else.
struct CrossbarLayout {
  std::vector<CrossbarPort> ports;
  Spot pcie_ep, io_cpu;
  std::vector<std::vector<Spot>> ucie;    ///< by column, by connection
  std::vector<std::vector<Spot>> links;   ///< by link port, by connection
  std::vector<std::uint16_t> neighbours;  ///< by link port: the SIP at the other end; kFabric: the fabric switch
};

/// Throws ConfigError if a crossbar would need more ports than a port number holds.
CrossbarLayout layout_io(const SystemSpec& spec, std::uint16_t sip);
CrossbarLayout layout_fabric(const SystemSpec& spec);

enum class NetworkKind : std::uint8_t { cube, io, fabric };

/// One router network of the machine: a cube's mesh, an IO chiplet's crossbar, or the fabric switch.
struct Network {
  NetworkKind kind = NetworkKind::cube;
  std::uint16_t sip = 0, cube = 0;
  const CubeLayout* layout = nullptr;        ///< kind cube
  const CrossbarLayout* crossbar = nullptr;  ///< kinds io and fabric
  const NocConfig* noc = nullptr;
  const NetworkRoutes* routes = nullptr;
  std::vector<std::uint32_t> ends;  ///< link ends: by side (kNoEnd: nothing there); by column, then link port; by SIP

  std::uint16_t routers() const {
    return kind == NetworkKind::cube ? static_cast<std::uint16_t>(layout->routers.size()) : 1;
  }
  unsigned ports(std::uint16_t router) const {
    return kind == NetworkKind::cube ? layout->ports(router)
                                     : kFirstLocalPort + static_cast<unsigned>(crossbar->ports.size());
  }
};

/// Cycles until a flit's place in a buffer is free for the next one of its flow, which keeps to one virtual channel: by
/// docs/noc.md (Rules), from router to router, and from a source, which allocates nothing.
std::uint32_t credit_cycles(const Network& network);
/// A flow may take every cycle of a port: the buffers hold as many flits as come in that time.
bool buffers_cover_credits(const Network& network);

/// All in which kinds of ends of links differ once they are joined. The kinds that there are stand in connect.cpp,
/// which also says where there is one.
struct LinkKind {
  const char* people;      ///< the class that it is counted with: "links between SIPs"
  const char* statistics;  ///< kind of resource of its wires
  const char* section;     ///< of topology.yaml, where its keys stand
  PartKind part;           ///< its port in the graph
  EdgeKind edge;           ///< its wires in the graph, and their row of the energy table
  Delay delay;             ///< what a DMA's time on it is counted as
  bool between_sips;       ///< SIPs, or a SIP and the fabric switch
  bool from_io;            ///< what arrives here comes from an IO chiplet or the fabric switch
  using Name = std::string (*)(const Network& of, std::uint16_t number);
  Name name;

  std::string key(const char* name) const { return std::string(section) + "." + name; }
};

/// One end of a bundle of connections between two networks: a LinkPort of the machine.
struct LinkEnd {
  const LinkKind* kind = nullptr;
  std::uint32_t network = 0;
  std::uint32_t peer = kNoEnd;               ///< the other end
  std::uint16_t number = 0;                  ///< side, column, link port or SIP
  const std::vector<Spot>* spots = nullptr;  ///< by connection
  LinkConfig link;                           ///< of what leaves here
};

/// Bytes per second that a port of a router passes in packets of 256 B.
std::uint64_t port_payload_rate(const NocConfig& noc);
/// Of a packet of 256 B that leaves `from`, from its start until its place at the far end is known to be free again: at
/// the least.
Ps round_trip(const LinkEnd& from, const LinkEnd& peer);
/// Places that `peer` needs to have (its buffer_packets), so that a virtual network fills the wire from `from`:
/// LinkConfig::packets_to_cover, where the two directions differ in latency.
std::uint32_t packets_to_cover(const LinkEnd& from, const LinkEnd& peer);

/// What lies beyond a port of a router.
struct Beyond {
  enum class Kind : std::uint8_t { nothing, router, node, end } kind = Kind::nothing;
  std::uint16_t router = 0;  ///< neighbour
  std::uint8_t in_port = 0;  ///< its input
  NodeId node = kNoNode;
  std::uint32_t end = kNoEnd;
  std::uint16_t connection = 0;  ///< of that end
};

}  // namespace kernbench::topology
