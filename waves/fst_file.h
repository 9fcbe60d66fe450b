#pragma once
#include <string>

namespace kernbench {

/// Its name ends in .fst: the compressed format of GTKWave.
bool is_fst(const std::string& path);
/// Throws OutputError, which names `path`, if vcd2fst is not installed.
void check_vcd2fst(const std::string& path);
/// Puts the FST of the VCD `from`, which GTKWave's own program makes, in the place of the file `to`, whose mode it
/// keeps. Throws OutputError, which names `path`.
void run_vcd2fst(const std::string& from, const std::string& to, const std::string& path);

}  // namespace kernbench
