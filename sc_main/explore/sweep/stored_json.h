#pragma once
#include <fmt/format.h>

#include <string>

#include "tlm/config/json_text.h"
#include "waves/output_file.h"

namespace kernbench::sweep {

/// `read` of what a store holds as JSON. Throws OutputError that names the store and whose it is where that is no JSON
/// or has not the shape that is written: a store is a file that anybody may have changed.
template <class F>
auto stored(const std::string& store, const std::string& whose, const F& read) {
  try {
    return read();
  } catch (const JsonError& error) {
    throw OutputError(fmt::format("cannot read '{}': what it has of {} {}", store, whose, error.what()));
  } catch (const nlohmann::ordered_json::exception&) {
    throw OutputError(fmt::format("cannot read '{}': what it has of {} is not what kernbench writes", store, whose));
  }
}

}  // namespace kernbench::sweep
