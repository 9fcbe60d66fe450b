#include "topology/plan/cube_mesh.h"

#include <fmt/format.h>

#include <optional>

#include "tlm/config/config_node.h"
#include "tlm/config/read.h"

namespace kernbench::topology {

namespace {

std::string attachments(const CubeMesh& mesh) {
  std::string text = fmt::format("pes: {}\nhbm_ports: {}\nm_cpu: {}\nsram: {}\nucie:\n", to_string(mesh.pes),
                                 to_string(mesh.hbm_ports), to_string(mesh.m_cpu), to_string(mesh.sram));
  for (int side = 0; side < kSides; ++side) {
    text += fmt::format("  {}: {}\n", letter(static_cast<Side>(side)),
                        to_string(mesh.ucie[static_cast<std::size_t>(side)]));
  }
  return text;
}

/// Reads positions ("r2c1") and checks that each may carry an attachment.
class MeshReader {
 public:
  MeshReader(const CubeSpec& spec, Problems& problems) : spec_(spec), problems_(problems) {}

  std::vector<GridPoint> list(const ConfigNode& map, const std::string& key, std::size_t count) {
    std::vector<GridPoint> points;
    const ConfigNode* node = find(map, key);
    if (node == nullptr || !expect_list(*node, key, "router positions such as r0c1", problems_)) return points;
    for (const ConfigNode& item : node->items) points.push_back(point(item, key));
    if (points.size() != count) {
      problems_.add(node->where, fmt::format("'{}' has {} positions", key, points.size()),
                    fmt::format("give {}", count));
    }
    return points;
  }
  GridPoint one(const ConfigNode& map, const std::string& key) {
    const ConfigNode* node = find(map, key);
    return node == nullptr ? GridPoint{} : point(*node, key);
  }
  const ConfigNode* find(const ConfigNode& map, const std::string& key) {
    const ConfigNode* node = map.find(key);
    if (node == nullptr) problems_.add(map.where, fmt::format("missing key '{}'", key));
    return node;
  }

 private:
  GridPoint point(const ConfigNode& node, const std::string& what) {
    const std::optional<GridPoint> read = node.is_scalar() ? parse_point(node.text) : std::nullopt;
    const GridPoint point = read.value_or(GridPoint{});
    if (!read) {
      problems_.add(node.where, fmt::format("'{}' holds '{}'", what, node.text), "give a router position such as r0c1");
    } else if (point.row >= spec_.noc.rows || point.col >= spec_.noc.cols) {
      problems_.add(node.where, fmt::format("'{}' names {}, outside the mesh", what, node.text),
                    fmt::format("the mesh has {} rows and {} columns", spec_.noc.rows, spec_.noc.cols));
    } else if (contains(spec_.placement.holes, point) || contains(spec_.placement.exclusion, point)) {
      problems_.add(node.where, fmt::format("'{}' names {}, where nothing may be attached", what, node.text),
                    "holes and the exclusion zone are in cube.placement");
    }
    return point;
  }

  const CubeSpec& spec_;
  Problems& problems_;
};

void refuse_if_stale(const ConfigNode& root, const std::string& path, const CubeSpec& spec) {
  const Determinants now = determinants(spec);
  std::string reasons;
  if (const ConfigNode* then = root.find("determined_by"); then != nullptr && then->is_map()) {
    for (std::size_t i = 0; i < Determinants::kCount; ++i) {
      const ConfigNode* value = then->find(Determinants::names()[i]);
      const std::string old = value != nullptr && value->is_scalar() ? value->text : "nothing";
      if (old != now.value[i])
        reasons += fmt::format("\n    {}: '{}' there, '{}' now", Determinants::names()[i], old, now.value[i]);
    }
  }
  const ConfigNode* hash = root.find("hash");
  if (reasons.empty() && hash != nullptr && hash->text == now.hash()) return;
  if (reasons.empty()) reasons = "\n    its hash is not that of its own 'determined_by'";
  throw ConfigError(hash != nullptr ? hash->where : Location{path, 0, 0},
                    "this layout is stale: it was made for another cube" + reasons,
                    "export it again with 'kernbench topology export --what cube-mesh', or remove it");
}

}  // namespace

std::string export_cube_mesh(const CubeSpec& spec, const CubeMesh& mesh) {
  const Determinants inputs = determinants(spec);
  std::string text =
      "# Where the parts of a cube are attached (row r, column c of the router mesh). Edit positions below "
      "'determined_by' and keep\n"
      "# the file as cube_mesh.yaml beside a topology file, or name it there: 'cube_mesh: FILE'.\n";
  text += fmt::format("hash: \"{}\"\ndetermined_by:\n", inputs.hash());
  for (std::size_t i = 0; i < Determinants::kCount; ++i)
    text += fmt::format("  {}: \"{}\"\n", Determinants::names()[i], inputs.value[i]);
  return text + attachments(mesh);
}

CubeMesh read_cube_mesh(const std::string& text, const std::string& file, const CubeSpec& spec) {
  const ConfigNode root = parse_config(text, file);
  refuse_if_stale(root, file, spec);
  Problems problems;
  check_keys(root, "", {"hash", "determined_by", "pes", "hbm_ports", "m_cpu", "sram", "ucie"}, problems);
  MeshReader reader(spec, problems);
  CubeMesh mesh;
  mesh.pes = reader.list(root, "pes", spec.pes);
  mesh.hbm_ports = reader.list(root, "hbm_ports", spec.pes);
  mesh.m_cpu = reader.one(root, "m_cpu");
  mesh.sram = reader.one(root, "sram");
  if (const ConfigNode* ucie = reader.find(root, "ucie");
      ucie != nullptr && expect_map(*ucie, "ucie", {"n", "s", "e", "w"}, problems)) {
    check_keys(*ucie, "ucie", {"n", "s", "e", "w"}, problems);
    for (int side = 0; side < kSides; ++side) {
      mesh.ucie[static_cast<std::size_t>(side)] =
          reader.list(*ucie, letter(static_cast<Side>(side)), spec.ucie.connections);
    }
  }
  problems.throw_if_any();
  return mesh;
}

CubeLayout find_layout(const CubeSpec& spec, const SystemSpec& machine) {
  if (machine.cube_mesh.empty()) return layout(spec);
  return attach(spec, read_cube_mesh(machine.cube_mesh_text, machine.cube_mesh, spec));
}

}  // namespace kernbench::topology
