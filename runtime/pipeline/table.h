#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/pipeline/document.h"

/// The table of the format. Reader, JSON Schema and the page of fields derive from it; so do the rules per kind of
/// supertask that the checker applies.
namespace kernbench::pipeline {

struct Table;

enum class FieldType : std::uint8_t {
  text,
  integer,
  name,    ///< one of `names`
  dtype,   ///< one of `names`
  shape,   ///< [2, 3]: sizes, of at most kMostShapeDims dimensions
  range,   ///< [begin, end)
  ranges,  ///< a list of them
  texts,
  metadata,  ///< a map of integers and texts
  section,   ///< a map with the fields of `table`
  map        ///< a map of names to such sections
};

/// Where a field stands. by_kind: whether a supertask has it depends on its kind (kind_rules).
enum class Presence : std::uint8_t { required, optional, by_kind };

/// One field: how it reads and where it goes.
struct Field {
  std::string key;
  FieldType type = FieldType::text;
  Presence presence = Presence::required;
  std::string doc;  ///< one sentence
  std::vector<std::string> names = {};
  std::uint64_t low = 0;  ///< of integer: the least; of text: the least length
  std::shared_ptr<const Table> table = {};
  bool extension = false;  ///< not of the compiler's format, but of this tool's

  /// Reads `node` into the struct of the field's table.
  std::function<void(void* target, const ConfigNode& node, const std::string& path, const ReadOptions& options,
                     Problems& problems)>
      read = {};
};

struct Table {
  std::string title;  ///< of the page: "Device"
  std::vector<Field> fields;
  std::vector<std::string> keys() const;
};

const Table& document_table();

/// What a kind of supertask has.
struct KindRule {
  TaskKind kind;
  enum class Class : std::uint8_t { compute, communication, boundary } is;
  std::vector<std::string> metadata;  ///< exactly these keys
  /// Numbers of tensors; -1: one or more. Of reduce and broadcast the one side is given on one member only.
  int inputs, outputs;
  std::string doc;
};
const std::vector<KindRule>& kind_rules();  ///< in the order of TaskKind
const KindRule& rule_of(TaskKind kind);

/// Values of reduce_op: "sum" and so on.
const std::vector<std::string>& reduce_ops();
const std::vector<std::string>& dtype_names();

}  // namespace kernbench::pipeline
