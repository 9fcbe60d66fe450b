#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tlm/machine/ids.h"

namespace kernbench {

/// Port numbers of a mesh router: the four neighbours first, then whatever is attached, in order of attachment.
/// An IO chiplet's crossbar is a router without neighbours.
inline constexpr std::uint8_t kNorthPort = 0, kSouthPort = 1, kEastPort = 2, kWestPort = 3, kFirstLocalPort = 4;
inline constexpr std::uint8_t kNoPort = 0xFF;

/// Where a packet leaves a router network.
struct Exit {
  std::uint16_t router = 0;
  std::uint8_t port = kNoPort;
};

/// What a network decides for a packet at the moment it enters: by which router and port it leaves, and on which set
/// of virtual channels it travels until then. `dateline` replaces the packet's own.
struct RouteDecision {
  Exit exit;
  std::uint8_t vc_set = 0;
  std::uint8_t dateline = 0;
};

/// Where a node sits. `cube` is kIoChiplet for nodes of an IO chiplet, whose only router is 0.
inline constexpr std::uint16_t kIoChiplet = 0xFFFF;
/// A router and one of its local ports.
struct Attachment {
  std::uint16_t sip = 0, cube = 0, router = 0;
  std::uint8_t port = kNoPort;
};

/// Routing inside one layout of a cube, shared by all cubes that have it: for every router and exit router the port
/// to take. Filled by topology's routing stage (XY, YX or table around holes); models only read it.
class MeshRoutes {
 public:
  explicit MeshRoutes(std::uint16_t routers) : routers_(routers), port_(std::size_t{routers} * routers, kNoPort) {}
  std::uint16_t routers() const { return routers_; }
  std::uint8_t port(std::uint16_t at, std::uint16_t exit) const { return port_[std::size_t{at} * routers_ + exit]; }
  void set(std::uint16_t at, std::uint16_t exit, std::uint8_t port) { port_[std::size_t{at} * routers_ + exit] = port; }

 private:
  std::uint16_t routers_;
  std::vector<std::uint8_t> port_;
};

/// How packets are led through one network (a cube's mesh or an IO chiplet's crossbar). Pure and immutable. The models
/// ask it once per packet and network; topology's path router and its deadlock check walk the very same object.
class NetworkRoutes {
 public:
  virtual ~NetworkRoutes() = default;
  /// The packet enters at router `at`. `from_io`: through a port that comes from an IO chiplet.
  virtual RouteDecision enter(NodeId destination, std::uint16_t at, bool from_io, std::uint8_t dateline) const = 0;
  /// The next port on the way from `at` to `exit`; the exit's own port once it is there.
  virtual std::uint8_t next_port(std::uint16_t at, Exit exit) const = 0;
  /// Whether the way from `source` to `destination` crosses more links of this network's kind (between SIPs, or between
  /// the cubes of this one) than it would if no link were broken.
  virtual bool detour(NodeId /*source*/, NodeId /*destination*/) const { return false; }
};

}  // namespace kernbench
