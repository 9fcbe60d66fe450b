#pragma once
#include <array>
#include <tlm>

#include "models/pe/cpu/race_detector.h"
#include "models/pe/dma/mmu.h"
#include "models/pe/op.h"
#include "models/pe/pe_config.h"
#include "models/pe/pe_statistics.h"
#include "models/pe/tcm/tcm.h"
#include "tlm/ext/message.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/machine/machine_map.h"
#include "tlm/machine/run_options.h"
#include "tlm/observe/observer.h"
#include "tlm/observe/usage.h"
#include "tlm/sim/event_queue.h"

namespace kernbench::pe {

/// Who injected a read or write: Packet::user of the request, told of the response.
class ResponseHandler {
 public:
  virtual ~ResponseHandler() = default;
  /// A train: its first packet is here, on_response() follows when the last one is.
  virtual void on_first_packet(tlm::tlm_generic_payload& payload) = 0;
  /// The payload is released by the caller.
  virtual void on_response(tlm::tlm_generic_payload& payload, Packet& packet) = 0;
};

/// What all parts of one PE share.
struct Services {
  Services(const PeConfig& config, PeCoord coord, const MachineMap& map, PageTable& pages, RaceDetector* races,
           PayloadPool& pool, const RunOptions& options, EventQueue& queue, Observer* observer,
           tlm::tlm_initiator_socket<>& out)
      : config(config),
        coord(coord),
        self(map.pe(coord)),
        map(map),
        pages(pages),
        races(races),
        pool(pool),
        options(options),
        queue(queue),
        observer(observer),
        out(out),
        tcm(config.tcm, options.debug),
        mmu(config.mmu, pages, coord) {}

  Ps now() const { return queue.now(); }

  // Why what happens now happens now; nothing without a CauseLog.
  enum class Part : std::uint8_t { cpu, dma_r, dma_w, gemm, math, tcm };
  Cause cause() const { return queue.causes() == nullptr ? Cause() : queue.causes()->current; }
  /// An event goes on with what its maker had.
  void follow(const Cause& cause) const {
    if (CauseLog* log = queue.causes()) log->current = cause;
  }
  /// The time since then went for `spent`.
  void spend(Spent spent, Part part) { spend(spent, part, now()); }
  /// The time until `end`. REQUIRES: that is not before what has been spent.
  void spend(Spent spent, Part part, Ps end) {
    if (CauseLog* log = queue.causes()) log->step(spent, place(*log, part), end);
  }
  std::uint32_t place(CauseLog& log, Part part);

  /// A payload of ours, addressed and ready to be filled and injected.
  tlm::tlm_generic_payload& payload(PacketKind kind, NodeId destination, std::uint64_t address, std::uint32_t bytes);
  /// Hands it to the network, now. A one-way message is complete by that; of a request the response comes back.
  void inject(tlm::tlm_generic_payload& payload);
  /// What one payload may carry: a multiple of it is not crossed. Trains are made of packets of kMaxPacketBytes.
  std::uint32_t longest() const { return options.longest; }
  /// Trains: time in which TCM's port passes all but the last packet of `bytes`. Their data stream on meanwhile.
  Ps streamed(std::uint32_t bytes) const {
    if (bytes <= kMaxPacketBytes) return 0;
    const Rate port(config.tcm.bytes_per_second);
    return port.time_for(bytes) - port.time_for(kMaxPacketBytes);
  }
  /// From when on TCM's port takes the data of `packet`, of which the owner is told now: a train's have come all the
  /// while, in the time that they took on the wire.
  Ps streaming_since(const Packet& packet, std::uint32_t bytes) const {
    const Ps wire = std::max(packet.complete, now()) - std::min(packet.head, now());
    return now() - std::min({now(), wire, streamed(bytes)});
  }
  /// Tells the race detector, and reports what it finds. REQUIRES: there is one.
  void check_races(const Message& launch, const std::string& kernel, const RaceDetector::Text& op,
                   const PhysicalAddress& at, std::uint64_t bytes, bool write);

  const PeConfig& config;
  const PeCoord coord;
  const NodeId self;
  const MachineMap& map;
  PageTable& pages;
  RaceDetector* const races;  ///< null: nobody looks for races
  PayloadPool& pool;
  const RunOptions options;
  EventQueue& queue;
  Observer* const observer;
  tlm::tlm_initiator_socket<>& out;
  Tcm tcm;
  Mmu mmu;
  PeStatistics statistics;
  UsageBook* usage_book = nullptr;  ///< null: nobody wants what happens over time
  PeUsages usages;
  unsigned unwritten_reports = 0;    ///< --debug: so many were made
  std::array<CausePlace, 6> places;  // by Part
};

/// What an op that starts now has waited for.
inline void book_waits(Usage& usage, const Op& op) {
  const Ps ready = std::max(op.issued, op.ready);
  if (ready > op.issued) usage.wait(op.issued, ready, static_cast<unsigned>(EngineWait::operands));
  if (op.started > ready) usage.wait(ready, op.started, static_cast<unsigned>(EngineWait::engine));
}

/// What engines tell PE_CPU. Calls come from events of the queue and from within
/// enqueue(); an engine's state is consistent when it calls.
class OpSink {
 public:
  virtual ~OpSink() = default;
  virtual void completed(Op& op) = 0;   ///< deletes `op`
  virtual void reads_done(Op& op) = 0;  ///< its sources may be overwritten
  virtual void room() = 0;              ///< an op left a queue
  /// `op`, still to be completed, went wrong: its kernel fails.
  virtual void fault(Op& op, Fault::Kind kind, const char* component, const std::string& reason) = 0;
};

}  // namespace kernbench::pe
