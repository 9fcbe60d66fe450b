#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tlm/observe/observer.h"
#include "tlm/observe/stretch.h"
#include "waves/output_file.h"
#include "waves/vcd_writer.h"

namespace kernbench {

/// `--trace`: Chrome trace events, as Perfetto and chrome://tracing read them; docs/trace.md.
///
/// A process per cube, IO chiplet and rank; a thread per engine, queue and link, and more where its ops overlap, since
/// slices of one thread may only nest. Ops, kernels and states are slices, levels and rates counters; arrows go from a
/// send to its receive and from a launch to its kernels. Events are written as they come: viewers sort them. Intervals
/// of one state that are at most `detail` apart become one slice, a level is told once in ten times that.
class TraceWriter final : public Observer {
 public:
  /// Opens `path` at once; compressed if it ends in .gz. Throws OutputError.
  TraceWriter(const std::string& path, WaveSelection selection, Ps detail);

  TrackId add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) override;
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override;
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override;
  void change(TrackId track, Ps time, std::uint64_t value) override;
  void op(const OpRecord& record) override;
  bool wants_ops() const override { return true; }
  bool wants(const std::string& component) const override;
  Ps resolution() const override { return detail_; }
  void repeats(bool does) override { repeats_ = does; }
  bool wants_order() const override { return false; }
  void kernel(const OpRecord& record) override;

  /// A rate over time: `bytes` in each stretch of `length`.
  void rate(const std::string& name, Ps length, const std::vector<std::uint64_t>& bytes);

  /// What the program did meanwhile, as a thread of its own.
  void add(const std::vector<Stretch>& stretches);

  void finish();
  /// Nothing has matched filters and window.
  bool empty() const { return !any_; }
  const std::string& temporary() const { return file_.temporary(); }

 private:
  /// Slices of one component. Of a lane each begins when the one before it has ended.
  struct Thread {
    std::uint32_t process = 0;
    std::string name;  ///< within the process
    std::vector<std::uint32_t> ids;
    std::vector<Ps> ends;  ///< by lane
  };
  struct State {
    std::string name;
    TrackKind kind = TrackKind::state;
    std::vector<std::string> labels;
    std::uint32_t thread = 0;  ///< in threads_
    // The slice, or the level, that is not written yet.
    bool pending = false;
    Ps begin = 0, end = 0;
    std::uint64_t value = 0, merged = 0;
    std::string text;
    bool repeat = false;
  };
  struct Place {
    std::uint32_t process = 0, thread = 0;
    Ps start = 0;
    std::uint64_t message = 0;
    bool written = true;
  };

  bool wanted(const std::string& name) const;
  std::string marked(std::string arguments, bool repeat) const;
  bool in_window(Ps begin, Ps end) const { return begin < selection_.to && end >= selection_.from; }
  std::uint32_t process_of(const std::string& name);
  std::uint32_t thread_of(const std::string& component);
  Place slice(std::uint32_t thread, Ps begin, Ps end, const std::string& name, const char* category,
              const std::string& arguments);
  void flush(State& state);
  void through_queue(const OpRecord& record, const Place& place);
  void arrow(const Place& from, const Place& to, const char* name);
  void event(const std::string& text);
  void begin_event();
  void end_event();

  OutputFile file_;
  const WaveSelection selection_;
  const Ps detail_;
  std::map<std::string, std::uint32_t> processes_;  ///< ids
  std::vector<Thread> threads_;
  std::unordered_map<std::string, std::uint32_t> by_component_;
  std::vector<State> states_;
  /// Whose other side has not come yet.
  struct Ring {
    std::deque<Place> sends, receives;
  };
  std::unordered_map<std::uint64_t, Ring> rings_;
  std::unordered_map<std::uint64_t, std::vector<Place>> kernels_;  ///< by launch, of each process the first
  std::uint32_t next_thread_ = 1;
  std::uint64_t next_arrow_ = 1;
  bool any_ = false, repeats_ = false;
  std::string buffer_;
};

}  // namespace kernbench
