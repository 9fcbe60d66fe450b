#pragma once
#include <cstdint>
#include <string>

#include "topology/plan/graph.h"

namespace kernbench {
enum class Delay : std::uint8_t;
}

namespace kernbench::topology {

struct Network;

/// All in which kinds of ends of links differ once they are joined. The kinds that there are stand in connect.cpp,
/// which also says where there is one.
struct LinkKind {
  const char* people;      ///< the class that it is counted with: "links between SIPs"
  const char* statistics;  ///< kind of resource of its wires
  const char* energy_key;  ///< of topology.yaml: energy per raw bit
  PartKind part;           ///< its port in the graph
  EdgeKind edge;           ///< its wires in the graph, and their row of the energy table
  Delay delay;             ///< what a DMA's time on it is counted as
  bool between_sips;       ///< SIPs, or a SIP and the fabric switch
  bool from_io;            ///< what arrives here comes from an IO chiplet or the fabric switch
  using Name = std::string (*)(const Network& of, std::uint16_t number);
  Name name;
};

}  // namespace kernbench::topology
