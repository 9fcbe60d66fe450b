#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace kernbench::topology {
struct Plan;
}

namespace kernbench::report {

/// The report of a run: one HTML file that needs nothing else, not even a network.
///
/// `result`: what `run --json` writes, with `statistics` and `what_if` where they are there. `plan`: its machine, which
/// is drawn. The same input gives the same bytes.
std::string render_run(const nlohmann::ordered_json& result, const topology::Plan& plan, const std::string& title);

/// The page of what compare::diff() found between the files `a` and `b`.
std::string render_diff(const nlohmann::ordered_json& diff, const std::string& a, const std::string& b);

/// A page with the tornado of a result's `what_if` alone.
std::string render_what_if(const nlohmann::ordered_json& result, const std::string& title);

/// Drawings of a machine as topology::show_view() makes them: {system, sips, cubes, pes}. Parts that are like another
/// one but for their name are left out: the page gives it theirs.
nlohmann::ordered_json views_of(const topology::Plan& plan);

/// Statistics as the page reads them: columns instead of objects, and the course of every resource as one byte per
/// slice, base 64; slices are put together until all courses have at most `most_bytes`. Beside them the largest courses
/// of waiting and of virtual channels.
nlohmann::ordered_json packed_statistics(const nlohmann::ordered_json& statistics, std::size_t most_bytes);

}  // namespace kernbench::report
