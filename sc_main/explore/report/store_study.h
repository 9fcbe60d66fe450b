#pragma once
#include <SQLiteCpp/Database.h>

#include <string>
#include <vector>

#include "sc_main/explore/report/study.h"

namespace kernbench::report {

/// A sweep or a search that a store holds.
struct StoredSweep {
  std::string name, kind;  ///< kind: "sweep" or "search"
};
/// By name.
std::vector<StoredSweep> stored_sweeps(SQLite::Database& database);

/// The study called `name` of a store (docs/sweep.md has its tables), with every search of the store over the same axes
/// and objectives. Rates come as GB/s, times as ns and frequencies as GHz. Of the figures beside the objectives, those
/// that differ between points. REQUIRES: `name` is stored. Throws SQLite::Exception.
Study read_study(SQLite::Database& database, const std::string& name);

}  // namespace kernbench::report
