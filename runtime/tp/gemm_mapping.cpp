#include "runtime/tp/gemm_mapping.h"

#include <fmt/format.h>

#include <regex>
#include <stdexcept>
#include <type_traits>

#include "tlm/config/nearest.h"
#include "tlm/config/read.h"

namespace kernbench::tp {

namespace {
constexpr std::uint64_t kMostOfATile = 9'999'999;  // seven digits, as in the text form

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const GemmMapping::Kind kind : gemm_mapping_kinds()) names.emplace_back(to_string(kind));
  return names;
}
}  // namespace

const char* to_string(GemmMapping::Kind kind) {
  switch (kind) {
    case GemmMapping::Kind::stream:
      return "stream";
    case GemmMapping::Kind::passed:
      return "passed";
    case GemmMapping::Kind::split:
      return "split";
    case GemmMapping::Kind::ring:
      return "ring";
    case GemmMapping::Kind::vector:
      return "vector";
    case GemmMapping::Kind::lanes:
      return "lanes";
  }
  return "?";
}

const std::vector<GemmMapping::Kind>& gemm_mapping_kinds() {
  static const std::vector<GemmMapping::Kind> kKinds = {GemmMapping::Kind::stream, GemmMapping::Kind::passed,
                                                        GemmMapping::Kind::split,  GemmMapping::Kind::ring,
                                                        GemmMapping::Kind::vector, GemmMapping::Kind::lanes};
  return kKinds;
}

std::string GemmMapping::str() const {
  if (!whole()) return to_string(kind);
  return fmt::format("{}:{}x{}x{},rows={},chains={}", to_string(kind), tile_m, tile_n, tile_k, row_blocks, chains);
}

std::string GemmMapping::yaml() const {
  std::string text = fmt::format("mapping: {}\n", to_string(kind));
  if (!whole()) return text;
  return text + fmt::format("tile_m: {}\ntile_n: {}\ntile_k: {}\nrow_blocks: {}\nchains: {}\n", tile_m, tile_n, tile_k,
                            row_blocks, chains);
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
          "{} (sums stay in TCM, {} a block), k by {}; partial sums exchanged and added between PEs",
          tile_n, row_blocks, tile_m, chains, tile_k);
    case Kind::ring:
      return fmt::format(
          "spatial: m over cubes as c lies, k over the PEs of each, as b lies; temporal: n by the blocks of b, which "
          "go round the cubes, and by {}, m by {} x {} (a stays in TCM, {} sums a block), k by {}; partial sums "
          "exchanged and added between PEs",
          tile_n, row_blocks, tile_m, chains, tile_k);
    case Kind::lanes:
      return fmt::format(
          "spatial: n over cubes and k over the PEs of each, as b lies; temporal: n by {}, k by {} (b read once), each "
          "of {} rows of a on the math engine; partial sums exchanged and added between PEs",
          tile_n, tile_k, row_blocks);
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
  const std::string name = text.substr(0, text.find(':')), near = nearest(name, kind_names());
  if (near != name && !near.empty()) {
    throw std::invalid_argument(fmt::format("mapping {}: did you mean '{}'?", quote(text), near));
  }
  throw std::invalid_argument(fmt::format(
      "mapping {}: give stream, passed, split, ring, vector or lanes, alone or followed by :MxNxK,rows=R,chains=C with "
      "numbers from 1",
      quote(text)));
}

GemmMapping load_gemm_mapping(const std::string& file) {
  Problems problems;
  const ConfigNode root = load_config(file, &problems);
  check_keys(root, "", {"mapping", "tile_m", "tile_n", "tile_k", "row_blocks", "chains"}, problems);
  GemmMapping mapping;
  if (const ConfigNode* kind = root.find("mapping")) {
    if (const auto which = read_name(*kind, "mapping", kind_names(), problems))
      mapping.kind = gemm_mapping_kinds()[*which];
  } else {
    problems.add(root.where, "missing key 'mapping'");
  }
  std::vector<std::string> missing;
  const auto read = [&](const char* key, std::uint64_t most, auto& value) {
    const ConfigNode* node = root.find(key);
    if (node == nullptr) return missing.emplace_back(key), void();
    using Value = std::decay_t<decltype(value)>;
    if (const auto number = read_integer(*node, key, {1, most}, problems)) value = static_cast<Value>(*number);
  };
  read("tile_m", kMostOfATile, mapping.tile_m);
  read("tile_n", kMostOfATile, mapping.tile_n);
  read("tile_k", kMostOfATile, mapping.tile_k);
  read("row_blocks", 9999, mapping.row_blocks);
  read("chains", 99, mapping.chains);
  if (!missing.empty() && missing.size() < 5) {
    problems.add(root.where, fmt::format("missing key '{}'", missing.front()),
                 "give 'mapping' alone, or with all of tile_m, tile_n, tile_k, row_blocks and chains");
  }
  problems.throw_if_any();
  return mapping;
}

}  // namespace kernbench::tp
