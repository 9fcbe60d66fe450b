#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "models/memory/sparse_memory.h"
#include "models/pe/cpu/race_detector.h"
#include "models/pe/cpu/stack_pool.h"
#include "models/pe/pe.h"
#include "tlm/ext/message.h"
#include "tlm/ext/page_table.h"
#include "tlm/ext/payload_pool.h"
#include "tlm/kernel/tl.h"
#include "tlm/machine/machine_map.h"
#include "tlm/observe/observer.h"
#include "tlm/sim/event_queue.h"

namespace kernbench::test {

/// Keeps what the PEs publish.
struct RecordingObserver final : Observer {
  struct Interval {
    std::string track, text;
    Ps begin, end;
    std::uint64_t value;
  };
  TrackId add_track(const std::string& name, TrackKind, const std::vector<std::string>& labels) override {
    tracks.push_back(name);
    track_labels.push_back(labels);
    return static_cast<TrackId>(tracks.size() - 1);
  }
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override {
    intervals.push_back({name(track), "", begin, end, value});
  }
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override {
    intervals.push_back({name(track), text, begin, end, 0});
  }
  void change(TrackId track, Ps time, std::uint64_t value) override {
    intervals.push_back({name(track), "", time, time, value});
  }
  void op(const OpRecord& record) override { ops.push_back(record); }
  bool wants_ops() const override { return true; }

  std::string name(TrackId id) const { return tracks[static_cast<std::size_t>(id)]; }
  std::vector<OpRecord> named(const std::string& op_name) const;
  /// One line per record, for comparisons of whole runs.
  std::vector<std::string> lines() const;

  std::vector<std::string> tracks;
  std::vector<std::vector<std::string>> track_labels;
  std::vector<Interval> intervals;
  std::vector<OpRecord> ops;
};

/// PEs of one cube, joined by a network that takes `latency` for any packet, with memories behind it that answer after
/// `memory_latency`. Nothing contends, so that times are those of the PE. Its events are run by hand. Elaboration ends
/// with the first command: a test that compares two benches makes both before it sends one.
class Bench {
 public:
  struct Options {
    PeConfig config;
    RunOptions run;
    std::uint16_t pes = 1;
    Ps latency = 10'000;
    Ps memory_latency = 50'000;
    bool observe = true;
  };
  explicit Bench(const Options& options);
  Bench() : Bench(Options{}) {}
  ~Bench();

  // The machine.
  PeCoord coord(std::uint16_t pe) const { return {0, 0, pe}; }
  Pe& pe(std::uint16_t pe);
  SparseMemory& hbm(std::uint16_t pe) { return memories_[map.hbm_port(coord(pe))]; }
  SparseMemory& sram() { return memories_[map.sram_of({0, 0})]; }
  Ps now() const { return queue.now(); }

  /// Maps [va, va + bytes) to the HBM slice of a PE, at the same offset.
  void map_hbm(Va va, std::uint64_t bytes, std::uint16_t owner = 0);
  /// Writes elements to, or reads them from, HBM.
  void put(std::uint64_t offset, DType dtype, const std::vector<double>& values, std::uint16_t owner = 0);
  std::vector<double> get(std::uint64_t offset, DType dtype, std::size_t count, std::uint16_t owner = 0);

  // Commands, as the M_CPU sends them.
  void send(std::uint16_t pe, CommandKind kind, Message& message, Ps start = 0);
  std::size_t answers(const Message& message, CommandKind kind) const;
  /// A ring per direction and PE; `ring_base` given by the caller.
  void install(const std::vector<NeighbourEntry>& entries);
  /// Two queue pairs, E on `left` and W on `right`, in TCM (`where` tcm), SRAM or HBM.
  void join(std::uint16_t left, std::uint16_t right, IpcqBuffer where = IpcqBuffer::tcm, std::uint16_t group = 0);

  /// How the next launch has to end; each one after it has to be done again.
  enum class Ending {
    done,     ///< on all targets, without a fault
    failed,   ///< on at least one
    waiting,  ///< for what does not come
  };
  Ending ending = Ending::done;
  /// Arms all targets, starts them at one instant and runs until nothing is left. An end that is not `ending` is a
  /// failure of the test: the kernel stopped before the ops that the test is about.
  using Bodies = std::map<std::uint16_t, std::function<void(Tl&)>>;
  Message& launch(const Bodies& bodies, const std::string& name = "k", std::uint16_t group = 0);
  Message& launch(std::function<void(Tl&)> body) { return launch(Bodies{{std::uint16_t{0}, std::move(body)}}); }
  /// The same, without running further than the start command.
  Message& prepare(const Bodies& bodies, const std::string& name = "k", std::uint16_t group = 0);
  /// A launch of a stream of its own, of which no command has been sent.
  Message& message(const Bodies& bodies, const std::string& name = "k", std::uint16_t group = 0);
  bool completed(const Message& message) const;
  static LaunchMessage& body(Message& message) { return std::get<LaunchMessage>(message.body); }
  Ps duration(Message& message) { return body(message).last_end - body(message).first_start; }

  Options options;
  MachineMap map;
  PageTable pages;
  RaceDetector races;
  PayloadPool pool;
  EventQueue queue;
  RecordingObserver observer;
  StackPool stacks;

  struct Sent {
    PacketKind kind;
    NodeId destination;
    std::uint64_t address;
    std::uint32_t bytes;
    Ps time;
  };
  std::vector<Sent> sent;                 ///< every packet that a PE injected
  std::uint64_t failing_address = ~0ull;  ///< a request that touches it is answered with an address error

  static void elaborate();

 private:
  struct Port;
  void route(tlm::tlm_generic_payload& payload);
  void deliver(tlm::tlm_generic_payload& payload);
  void serve(tlm::tlm_generic_payload& payload);
  void respond(tlm::tlm_generic_payload& payload);
  NodeId add_node(NodeKind kind, std::uint16_t unit);

  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::unique_ptr<Pe>> pes_;
  std::map<NodeId, SparseMemory> memories_;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<Command> answers_;
};

inline Bench::Options two_pes() {
  Bench::Options options;
  options.pes = 2;
  return options;
}

}  // namespace kernbench::test
