#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/observe/observer.h"

namespace kernbench {

/// Signal of the program's stretches.
inline constexpr const char* kStretchTrack = "program.iteration";

/// A declared signal, and how it stands in the VCD and its save file.
struct Track {
  std::string name;  ///< structural, e.g. sip0.cube3.pe5.dma_r
  TrackKind kind = TrackKind::state;
  std::vector<std::string> labels;  ///< of a state track
  unsigned bits = 1;                ///< width of its vector; unused by text tracks
  bool active = false;              ///< left its idle value at some time
  Ps busy = 0;                      ///< of a state track: neither idle nor waiting, in what the save file opens on
};

/// A state in which its owner stands still for something, by its name.
bool is_waiting(const std::string& label);

/// Name in a VCD: characters that viewers read as syntax become '_' (local(3) -> local_3).
std::string vcd_name(const std::string& component);

/// Digits compare as numbers, so that pe2 comes before pe10; dots before everything, so that scopes stay together.
bool natural_less(const std::string& a, const std::string& b);

/// The tracks in natural order of their names: indices into `tracks`.
std::vector<std::uint32_t> in_natural_order(const std::vector<Track>& tracks);

/// Splits a structural name at its dots.
std::vector<std::string> components(const std::string& name);

}  // namespace kernbench
