#pragma once
#include <string>
#include <vector>

#include "tlm/observe/stretch.h"
#include "waves/track_table.h"

namespace kernbench {

/// Path of the save file that belongs to a wave file: run.vcd -> run.gtkw.
std::string gtkw_path(const std::string& vcd_path);
/// And of its folder of filter files.
std::string states_path(const std::string& vcd_path);

/// Writes the GTKWave save file of `vcd_path`: the program's stretches; the tracks that were busiest in `focus`; then
/// all that were ever active, in groups as the machine nests (the first unit of each kind open), coloured by unit,
/// states decoded by filter files in the folder `<run>.states/`. It opens on `focus`; markers A, B, ... stand where
/// stretches begin, the last ones if there are too many.
///
/// Paths in it are absolute, which GTKWave re-maps with the help of the [savefile] line when the files have moved
/// together. Throws OutputError.
void write_gtkw(const std::string& vcd_path, const std::vector<Track>& tracks, const Stretch& focus,
                const std::vector<Stretch>& stretches);

}  // namespace kernbench
