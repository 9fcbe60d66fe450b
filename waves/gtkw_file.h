#pragma once
#include <string>
#include <vector>

#include "waves/track_table.h"

namespace kernbench {

/// Path of the save file that belongs to a wave file: run.vcd -> run.gtkw.
std::string gtkw_path(const std::string& vcd_path);

/// Writes the GTKWave save file of `vcd_path`: tracks that were ever active, in groups as the machine nests (the first
/// unit of each kind open), coloured by unit, states decoded by filter files in the folder `<run>.states/`.
///
/// Paths in it are absolute, which GTKWave re-maps with the help of the [savefile] line when the files have moved
/// together. Throws OutputError.
void write_gtkw(const std::string& vcd_path, const std::vector<Track>& tracks, Ps end);

}  // namespace kernbench
