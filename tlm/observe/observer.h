#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench {

/// One op that an engine completed: a row of the op log. `params` are the fixed fields of its op name, see
/// docs/oplog.md.
struct OpRecord {
  /// A field of its op name.
  struct Param {
    const char* name;
    std::string text;  ///< empty: `number` is meant
    std::int64_t number = 0;
  };
  Ps start = 0, end = 0;
  std::string component;  ///< structural name, e.g. sip0.cube3.pe5.dma_r
  std::string kind;       ///< dma, gemm, math, ipcq, host
  std::string name;       ///< dma_read, gemm, ipcq_copy, ...
  std::string kernel;
  std::string stage;     ///< of a composite's tile; empty otherwise
  std::uint64_t op = 0;  ///< id, unique in the run
  std::vector<Param> params;
  /// dma_read, dma_write: where the time went, by Delay (tlm/ext/packet.h), of the burst that ended last; adds up to
  /// end - start. Empty for other ops. Not part of the op log's files.
  std::vector<Ps> spent;
  // For arrows between records; not part of the op log's files either.
  std::uint64_t launch = 0;   ///< id of the host's message: of a kernel, and of the host's record of its launch
  std::uint64_t queue = 0;    ///< ipcq_copy: the ring, unique in the run
  std::uint64_t message = 0;  ///< ipcq_copy: number of the last slot message that it took, counted from 1
};

/// Handle of a signal that a model publishes.
enum class TrackId : std::uint32_t {};
inline constexpr TrackId kNoTrack{0xFFFF'FFFF};

/// How a track is to be shown.
enum class TrackKind : std::uint8_t {
  state,   ///< one of `labels`; label 0 is the idle state
  level,   ///< an integer, such as a fill level
  number,  ///< an integer that identifies something, such as a packet or op id
  text     ///< free text, such as a kernel's name
};

/// Receives final records with explicit times, in any order; sorting is the listener's work. Models hold a pointer that
/// is null when nobody listens, and publish nothing then. An observer never enqueues events.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Declares a track at construction of its model. Returns kNoTrack if the listener does not want it: the model then
  /// publishes nothing on it.
  virtual TrackId add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels = {}) = 0;
  /// State `label` (or number) holds from `begin` to `end`; outside all intervals the track is idle.
  virtual void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) = 0;
  virtual void interval(TrackId track, Ps begin, Ps end, const std::string& text) = 0;
  /// A level or number changes to `value` at `time`.
  virtual void change(TrackId track, Ps time, std::uint64_t value) = 0;
  virtual void op(const OpRecord& record) = 0;
  virtual bool wants_ops() const = 0;
  /// Whether it wants what is told of a component or track of that name, if it is of a kind that it wants.
  virtual bool wants(const std::string&) const { return true; }
  /// Intervals of one state that are at most so far apart may come as one, shorter texts not at all, and of levels the
  /// last one in ten times that.
  virtual Ps resolution() const { return 0; }
  /// Whether what comes from now on is of work that is not simulated (docs/replay.md): it may lie ahead.
  virtual void repeats(bool) {}
  /// Whether records have to come in the order of the instants that made them, over all SIPs. If not, a SIP may be
  /// ahead of another one (decision 0440), which takes half of the time; what it makes comes in its own order, and
  /// behind what that came from.
  virtual bool wants_order() const { return true; }
  /// A kernel has ended on a PE: `component` is the PE, `kernel`, `launch` and the times are its own. Only if
  /// wants_ops().
  virtual void kernel(const OpRecord&) {}
};

/// One that hears of ops only: it wants no tracks.
class OpObserver : public Observer {
 public:
  TrackId add_track(const std::string&, TrackKind, const std::vector<std::string>&) final { return kNoTrack; }
  void interval(TrackId, Ps, Ps, std::uint64_t) final {}
  void interval(TrackId, Ps, Ps, const std::string&) final {}
  void change(TrackId, Ps, std::uint64_t) final {}
  bool wants_ops() const final { return true; }
  Ps resolution() const final { return kNever; }
};

}  // namespace kernbench
