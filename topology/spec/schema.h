#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tlm/config/config_node.h"
#include "tlm/config/read.h"
#include "topology/spec/spec.h"

namespace kernbench::topology {

struct Section;

enum class FieldKind : std::uint8_t {
  section,
  integer,
  quantity,
  boolean,      ///< a value is 0 or 1
  enumeration,  ///< a value is an index into `names`
  ratio,
  grid_point,  ///< "r2c1"; a value is a list of zero or one
  grid_points,
  text,
  overrides,  ///< the list of overrides: topology/spec/overrides.h
};

/// Which change of a value makes a machine faster, as far as that value alone goes: `kernbench what-if` tries it.
enum class Better : std::uint8_t {
  none,     ///< no such direction: shapes, policies, sizes that programs see, energy
  larger,   ///< rates; widths, buffers, slots, ports, units
  smaller,  ///< times, cycles, bytes that carry nothing
};

using FieldValue = std::variant<std::monostate, std::uint64_t, Ratio, std::vector<GridPoint>, std::string>;

/// One key of topology.yaml: how it reads, what it may be, where it goes.
struct Field {
  std::string key;
  FieldKind kind = FieldKind::integer;
  std::string doc;          ///< one sentence
  IntegerRange range = {};  ///< integer and quantity, in base units
  Dimension dimension = Dimension::bytes;
  std::vector<std::string> names = {};  ///< enumeration
  bool required = false;                ///< a file that extends nothing must say it; all else is as in preset `default`
  bool optional = false;                ///< may have no value at all: of numbers 0, which their range does not allow
  bool uniform = false;                 ///< overrides must not change it
  Better better = Better::none;         ///< rates and times have theirs by their dimension
  bool paces_block = false;             ///< a clock that all else in its section follows, widths and pipeline alike
  std::shared_ptr<const Section> section = {};

  // The member of the config struct behind it; REQUIRES: the pointer is to the struct of the field's section.
  std::function<FieldValue(const void*)> get = {};
  std::function<void(void*, const FieldValue&)> set = {};
  std::function<void*(void*)> enter = {};  ///< kind section: the nested struct (possibly the same)
};

/// A map of topology.yaml. Everything about the file derives from these tables: validation, --set, the JSON Schema, the
/// canonical configuration and the user's page.
struct Section {
  std::vector<Field> fields;
  std::vector<std::string> keys() const;
  const Field* find(const std::string& key) const;
};

const Section& root_section();  ///< binds SystemSpec
const Section& cube_section();  ///< binds CubeSpec (without `pe`, which is a section of its own in the file)
const Section& pe_section();    ///< binds PeConfig

/// The field at a dotted path such as "cube.noc.rows", sections included; null if there is none.
const Field* find_field(const std::string& path);
/// Dotted paths of all fields that hold values, in the order of the table.
std::vector<std::string> value_paths();
/// A typed value of a field that is no section; reports what is wrong and then holds nothing. `what`: as in messages.
FieldValue read_value(const Field& field, const ConfigNode& node, const std::string& what, Problems& problems);

/// Typed values of `map` into `target`. Reports unknown and missing keys and bad values; the dotted paths of what could
/// not be read are added to `failed`.
void read_section(const Section& section, const ConfigNode& map, void* target, const std::string& path,
                  Problems& problems, std::set<std::string>& failed);

/// The canonical form: every key that has a value, in the order of the table, quantities with units.
nlohmann::ordered_json to_json(const Section& section, const void* source);
/// One value in its canonical form; null if it has none.
nlohmann::ordered_json to_json(const Field& field, const FieldValue& value);

/// Paths of all fields with `required`.
std::vector<std::string> required_paths(const Section& section, const std::string& path = "");
/// Paths of `uniform` fields whose values differ between two structs of a section.
std::vector<std::string> uniform_differences(const Section& section, const void* a, const void* b,
                                             const std::string& path);

/// Draft-07 JSON Schema of topology.yaml, for editors; published as topology/topology.schema.json.
nlohmann::ordered_json json_schema();

}  // namespace kernbench::topology
