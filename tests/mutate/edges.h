#pragma once
#include "tests/mutate/cases.h"

namespace kernbench::mutate {

/// Every key of topology.yaml at the ends of its range, as the tables of topology/spec have them: on every SIP, and,
/// where overrides may change it, on one of two. What `topology check` accepts is run in both grades, by a program that
/// uses the part, on a machine that has it. `mesh`: a layout for `cube_mesh`.
/// Throws std::runtime_error if a key has no value here.
std::unique_ptr<Kind> edges_kind(const std::string& mesh);

}  // namespace kernbench::mutate
