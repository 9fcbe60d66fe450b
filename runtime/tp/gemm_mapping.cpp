#include "runtime/tp/gemm_mapping.h"

#include <fmt/format.h>

#include <regex>
#include <stdexcept>

namespace kernbench::tp {

const char* to_string(GemmMapping::Kind kind) {
  switch (kind) {
    case GemmMapping::Kind::stream:
      return "stream";
    case GemmMapping::Kind::passed:
      return "passed";
    case GemmMapping::Kind::split:
      return "split";
    case GemmMapping::Kind::vector:
      return "vector";
  }
  return "?";
}

const std::vector<GemmMapping::Kind>& gemm_mapping_kinds() {
  static const std::vector<GemmMapping::Kind> kKinds = {GemmMapping::Kind::stream, GemmMapping::Kind::passed,
                                                        GemmMapping::Kind::split, GemmMapping::Kind::vector};
  return kKinds;
}

std::string GemmMapping::str() const {
  if (!whole()) return to_string(kind);
  return fmt::format("{}:{}x{}x{},rows={},chains={}", to_string(kind), tile_m, tile_n, tile_k, row_blocks, chains);
}

std::string GemmMapping::loops() const {
  const std::string space = "spatial: m and n as c lies, k whole";
  switch (kind) {
    case Kind::vector:
      return fmt::format("{}; temporal: n by {}, k by {} (b read once), each row of a on the math engine", space,
                         tile_n, tile_k);
    case Kind::split:
      return fmt::format(
          "spatial: n over cubes and k over the PEs of each, as b lies; temporal: n by {} (b stays in TCM), m by {} x "
          "{} "
          "(sums stay in TCM, {} a block), k by {}; partial sums exchanged and added between PEs",
          tile_n, row_blocks, tile_m, chains, tile_k);
    case Kind::stream:
    case Kind::passed:
      break;
  }
  return fmt::format(
      "{}; temporal: n by {} (b stays in TCM), m by {} x {} (sums stay in TCM, {} a block), k by {}; a {}", space,
      tile_n, row_blocks, tile_m, chains, tile_k,
      kind == Kind::stream ? "read where it lies" : "fetched once a cube and passed on between PEs");
}

GemmMapping parse_gemm_mapping(const std::string& text) {
  static const std::regex kForm(R"(([a-z]+)(?::(\d{1,7})x(\d{1,7})x(\d{1,7}),rows=(\d{1,4}),chains=(\d{1,2}))?)");
  std::smatch match;
  if (std::regex_match(text, match, kForm)) {
    for (const GemmMapping::Kind kind : gemm_mapping_kinds()) {
      if (match[1] != to_string(kind)) continue;
      GemmMapping mapping;
      mapping.kind = kind;
      if (!match[2].matched) return mapping;
      mapping.tile_m = std::stoll(match[2]);
      mapping.tile_n = std::stoll(match[3]);
      mapping.tile_k = std::stoll(match[4]);
      mapping.row_blocks = std::stoi(match[5]);
      mapping.chains = std::stoi(match[6]);
      if (mapping.whole()) return mapping;
    }
  }
  throw std::invalid_argument(fmt::format(
      "mapping '{}': give stream, passed, split or vector, alone or followed by :MxNxK,rows=R,chains=C with "
      "numbers from 1",
      text));
}

}  // namespace kernbench::tp
