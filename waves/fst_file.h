#pragma once
#include <string>

namespace kernbench {

/// Its name ends in .fst: the compressed format of GTKWave.
bool is_fst(const std::string& path);
/// Throws OutputError, which names `path`, if vcd2fst is not installed.
void check_vcd2fst(const std::string& path);
/// Makes the FST `to` of the VCD `from`, by GTKWave's own program. Throws OutputError, which names `path`.
void run_vcd2fst(const std::string& from, const std::string& to, const std::string& path);

}  // namespace kernbench
