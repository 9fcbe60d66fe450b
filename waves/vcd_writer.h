#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tlm/observe/observer.h"
#include "tlm/observe/stretch.h"
#include "waves/change_sorter.h"
#include "waves/output_file.h"
#include "waves/track_table.h"

namespace kernbench {

/// What of a run goes into the wave file.
struct WaveSelection {
  std::vector<std::string> globs;  ///< names::matches over track names; empty: everything
  Ps from = 0, to = kNever;        ///< time window; the first instant shows the state that held there
};

/// Writes a VCD with the machine's hierarchy as scopes, and a GTKWave save file beside it (see gtkw_file.h). A name
/// that ends in .fst gets what GTKWave's vcd2fst makes of it.
///
/// A state track becomes two variables: a vector `name`, which the save file decodes, and a text variable `name_text`
/// for viewers without it. Level and number tracks become 32-bit vectors (64 where a value needs it), text tracks text
/// variables. Records may come in any order; they are sorted in bounded memory and written by finish(). Where intervals
/// of one state track overlap, the one that began last shows, and the track is idle once all have ended.
class VcdWriter final : public Observer {
 public:
  /// Opens `path` at once, so that a run does not fail at its end. Throws OutputError, also if there is no vcd2fst.
  VcdWriter(const std::string& path, WaveSelection selection, std::size_t sort_buffer = ChangeSorter::kDefaultBuffer);

  TrackId add_track(const std::string& name, TrackKind kind, const std::vector<std::string>& labels) override;
  void interval(TrackId track, Ps begin, Ps end, std::uint64_t value) override;
  void interval(TrackId track, Ps begin, Ps end, const std::string& text) override;
  void change(TrackId track, Ps time, std::uint64_t value) override;
  void op(const OpRecord&) override {}
  bool wants_ops() const override { return false; }

  /// Writes both files; `end` is the end of the run. Also right after an interrupt: what was recorded is whole.
  /// `stretches`: of the program, in order of time; the save file opens on the last one that counts.
  void finish(Ps end, const std::vector<Stretch>& stretches = {});
  const std::vector<Track>& tracks() const { return tracks_; }
  /// Globs of the selection that no track has matched so far.
  std::vector<std::string> unmatched_globs() const;
  std::vector<std::string> temporaries() const;

 private:
  /// Where a track stands while the changes are replayed.
  struct Replay {
    std::uint64_t value = 0, written = 0;
    std::uint32_t open = 0;  ///< intervals begun and not ended
    Ps since = 0;            ///< when the value was written
    bool dirty = false;
  };
  std::uint64_t intern(const std::string& text);
  void note(std::uint32_t track, std::uint64_t value);
  void write_header(Ps start);
  void write_value(std::uint32_t track, std::uint64_t value);
  void replay(Ps end, const Stretch& focus);
  void count_busy(std::uint32_t track, const Replay& state, Ps end, const Stretch& focus);

  OutputFile file_;                ///< the VCD
  std::optional<OutputFile> fst_;  ///< if that is what is wanted: `file_` then has no name of its own
  std::string path_;
  WaveSelection selection_;
  std::vector<bool> glob_matched_;  ///< by glob of the selection
  std::vector<Track> tracks_;
  std::vector<Change> before_window_;  ///< by track: the last change() before the window
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::vector<std::string> texts_{std::string()};
  std::unordered_map<std::string, std::uint64_t> text_ids_{{std::string(), 0}};
  ChangeSorter sorter_;
  std::string line_;
};

}  // namespace kernbench
