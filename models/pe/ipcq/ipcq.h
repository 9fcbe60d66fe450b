#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/pe/engine_queues.h"
#include "models/pe/ipcq/directions.h"
#include "models/pe/ipcq/ipcq_rules.h"
#include "models/pe/ipcq/queue_statistics.h"
#include "models/pe/services.h"
#include "models/pe/tracks.h"
#include "tlm/observe/wait_for.h"

namespace kernbench::pe {

class Ipcq;

/// Who has used an end of a queue last (--debug).
struct QueueUser {
  const Message* launch = nullptr;  ///< to be compared only: it may be gone
  std::string kernel;
  std::uint16_t stream = 0;
  Ps ended = kNever;  ///< its kernel here
};
/// Both ends of a queue pair that a PE has.
struct QueueUsers {
  QueueUser sender, receiver;
};
struct RingWriter;
struct RingReader;
/// What kernels of collectives send is from.
extern const QueueSender kCollectives;

/// One queue pair: a send queue into a peer's ring, and an own ring that is received from. See docs/pe.md.
struct QueuePair {
  QueuePair(Ipcq& unit, const NeighbourEntry& entry);
  ~QueuePair();

  Ipcq& unit;
  NeighbourEntry entry;
  QueueStatistics statistics;
  std::string error;  ///< a protocol error on the ring: the next recv fails with it

  // Sending: ops in order, each as a sequence of slot messages.
  SendCredits credits;
  OpQueue sends;
  Op* sending = nullptr;
  std::uint64_t sent = 0;           ///< bytes of `sending` handed over
  std::uint32_t message_bytes = 0;  ///< of the message under way
  std::uint32_t message_sent = 0;
  std::uint16_t slot = 0;
  bool in_message = false;
  bool reading = false;  ///< a packet's data pass TCM's port
  Ps no_credit_since = kNever;
  Cause send_cause;  ///< of what it sends, or of its being blocked
  CausePlace place;
  /// A packet whose data have passed TCM's port.
  struct Leaving {
    Op* op = nullptr;
    std::uint64_t of_send = 0;     ///< bytes of the send, and
    std::uint32_t of_message = 0;  ///< of the slot message before it
    std::uint32_t bytes = 0, message_bytes = 0;
    std::uint16_t slot = 0;
    bool last = false, ends = false;  ///< of its message, of its send
    Ps read = 0;                      ///< when all its data are here
    Cause cause;
  };
  std::vector<Leaving> leaving;  ///< in order; those whose data TCM's latency keeps

  // Receiving.
  ReceiveRing ring;
  OpQueue receives;
  Op* receiving = nullptr;
  std::uint64_t received = 0;
  bool copying = false;
  Ps no_data_since = kNever;
  Cause receive_cause;                 ///< of the copy under way
  std::vector<Cause> slot_causes;      ///< by slot: of what fills it
  std::unique_ptr<RingWriter> writer;  ///< rings in SRAM or HBM
  std::unique_ptr<RingReader> reader;
  std::unique_ptr<QueueUsers> users;  ///< --debug

  bool ring_in_tcm() const { return entry.ring_base.kind == MemoryKind::tcm; }
};

/// The IPCQ unit: one in-order queue per (queue pair, send or receive), all independent of each other.
///
/// send waits for a credit per slot message, reads its data from TCM and hands packets of at most 256 B, or trains, to
/// the network; it is complete when the last one is handed over. A message that arrives is written into its slot, in
/// TCM or, by write requests, in SRAM or HBM; it is visible when all of it is there. recv copies the slot to its tile;
/// when the slot has been read the credit leaves, as a packet. All copies pass TCM's ports.
class Ipcq {
 public:
  Ipcq(Services& services, OpSink& sink);
  ~Ipcq();

  const DirectionTable& directions() const { return directions_; }
  /// Installs an entry or resets the one with its group and direction. Returns why it cannot; empty if done.
  std::string install(const NeighbourEntry& entry);
  /// Ranges of TCM that rings occupy: (begin, end).
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reserved() const;

  bool full(const Op& op) const;
  void enqueue(Op& op);
  void advance(Op& op);  ///< `op` has become ready
  /// Takes out what waits of a failed kernel, whose ops are all marked aborted; a message or copy under way is
  /// finished.
  void abandon(const KernelContext& context, std::vector<Op*>& removed);

  void data_arrived(tlm::tlm_generic_payload& payload, const Packet& packet);
  void credit_arrived(const Packet& packet);

  void explain(std::vector<Blocked>& blocked) const;
  void ended(const KernelContext& context);  ///< --debug: its kernel has
  std::vector<QueueStatistics> statistics() const;

 private:
  friend struct RingWriter;
  friend struct RingReader;
  QueuePair& pair_of(const Op& op) const;
  void advance_send(QueuePair& pair);
  bool begin_message(QueuePair& pair);
  void passed_port(QueuePair& pair, std::uint32_t bytes, Ps read);
  void hand_over(QueuePair& pair, const QueuePair::Leaving& next);
  void end_send(QueuePair& pair, Op& op);
  const QueueSender& sender_of(const Op& op);
  void arrived(QueuePair& pair, std::uint16_t slot, std::uint32_t bytes, std::uint32_t message_bytes,
               std::uint32_t send_bytes);
  void write_to_memory(QueuePair& pair, tlm::tlm_generic_payload& payload, const Packet& packet);
  void advance_receive(QueuePair& pair);
  static bool strange(const QueuePair& pair, const Op& op);
  void refuse_stranger(const QueuePair& pair, Op& op);
  void copy_from_tcm(QueuePair& pair);
  void slot_read(QueuePair& pair, Ps written, Ps later);
  void end_receive(QueuePair& pair, Ps written);
  void return_credit(QueuePair& pair, std::uint16_t slot);
  void publish_level(Direction direction);
  void check_user(const QueuePair& pair, QueueUser& last, const Op& op, const char* does) const;
  static std::uint64_t ring_id(NodeId pe, std::uint16_t ring) { return (std::uint64_t{index(pe)} + 1) << 16 | ring; }
  static std::uint64_t slot_offset(const QueuePair& pair, std::uint16_t slot) {
    return std::uint64_t{slot} * pair.entry.slot_bytes;
  }

  Services& services_;
  OpSink& sink_;
  DirectionTable directions_;
  std::vector<std::unique_ptr<QueuePair>> pairs_;
  std::vector<QueuePair*> by_ring_, by_queue_;
  std::set<QueueSender> senders_;  ///< kernels here that are no collectives'; what they sent may outlive them
  std::vector<Track> levels_;      // of the eight named directions
};

}  // namespace kernbench::pe
