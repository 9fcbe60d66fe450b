#pragma once
#include <string>

#include "sc_main/explore/report/study.h"

namespace kernbench::report {

/// The report of a study: one HTML file that needs nothing else, not even a network. The same study gives the same
/// bytes.
std::string render(const Study& study);

}  // namespace kernbench::report
