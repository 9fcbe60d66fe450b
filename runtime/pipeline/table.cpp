#include "runtime/pipeline/table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tlm/config/read.h"

namespace kernbench::pipeline {

namespace {

/// Without quotes what JSON has for a number, true or false; in YAML it is of that type, too.
bool is_number_or_flag(const ConfigNode& node) {
  return node.is_scalar() && !node.quoted && nlohmann::json::accept(node.text);
}

/// Reads values and reports what is wrong with them, by their path.
struct Values {
  static std::optional<std::string> text(const ConfigNode& node, const std::string& path, Problems& problems) {
    if (!is_number_or_flag(node)) return read_text(node, path, problems);
    const bool flag = node.text == "true" || node.text == "false";
    problems.add(node.where, fmt::format("{} is {}{}, not a text", path, flag ? "" : "the number ", node.text),
                 "put it in quotes");
    return std::nullopt;
  }

  /// Sizes of dimensions. Products of them fit 64 bits.
  static std::optional<std::vector<std::uint64_t>> shape(const ConfigNode& node, const std::string& path,
                                                         Problems& problems) {
    if (!expect_list(node, path, "integers", problems)) return std::nullopt;
    std::vector<std::uint64_t> sizes;
    double count = 1;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const auto size = read_integer(node.items[i], json_path(path, i), {1, kMostSize}, problems);
      if (size) sizes.push_back(*size);
      count *= static_cast<double>(size.value_or(1));
    }
    if (node.items.size() > kMostShapeDims) {
      problems.add(node.where, fmt::format("{} has {} dimensions", path, node.items.size()),
                   fmt::format("give at most {}", kMostShapeDims));
      return std::nullopt;
    }
    if (sizes.size() < node.items.size()) return std::nullopt;
    constexpr double kMostElements = 1e13;
    if (count <= kMostElements) return sizes;
    problems.add(node.where, fmt::format("{} is {}: more than 10^13 elements", path, to_text(sizes)),
                 "no memory of the machine holds it");
    return std::nullopt;
  }

  static std::optional<Range> range(const ConfigNode& node, const std::string& path, Problems& problems) {
    const std::string hint = "give [begin, end]: from begin up to, but without, end";
    if (!node.is_list() || node.items.size() != 2) {
      problems.add(node.where, path + " is no pair of integers", hint);
      return std::nullopt;
    }
    const auto begin = read_integer(node.items[0], json_path(path, std::size_t{0}), {0, kMostSize}, problems);
    const auto end = read_integer(node.items[1], json_path(path, std::size_t{1}), {0, kMostSize}, problems);
    if (!begin || !end) return std::nullopt;
    if (*begin >= *end) {
      problems.add(node.where,
                   path + " is [" + std::to_string(*begin) + ", " + std::to_string(*end) + "], which holds nothing",
                   hint);
      return std::nullopt;
    }
    return Range{*begin, *end, node.where};
  }

  /// A dimension, or an element's place in it.
  static constexpr std::uint64_t kMostSize = std::uint64_t{1} << 48;
};

template <class T>
void give(Located<T>& field, T value, const ConfigNode& node) {
  field.value = std::move(value);
  field.where = node.where;
  field.given = true;
}

/// Fields of `table` from `map` into `target`; a null is as good as no value.
void read_fields(const Table& table, const ConfigNode& map, void* target, const std::string& path,
                 const ReadOptions& options, Problems& problems) {
  if (!expect_map(map, path, table.keys(), problems)) return;
  check_keys(map, path, table.keys(), problems);
  for (const Field& field : table.fields) {
    const ConfigNode* node = map.find(field.key);
    if (node != nullptr && !node->is_null()) {
      field.read(target, *node, json_path(path, field.key), options, problems);
    } else if (field.presence == Presence::required) {
      problems.add(map.where, path + " has no '" + field.key + "'", field.doc);
    }
  }
}

/// Writes down the table of one struct.
template <class Struct>
class TableOf {
 public:
  explicit TableOf(const char* title) { table_.title = title; }

  TableOf& text(const char* key, Text Struct::*member, const char* doc, std::uint64_t least = 0) {
    add(key, FieldType::text, doc,
        [member, least](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
          auto value = Values::text(node, path, p);
          if (value && value->size() < least) {
            p.add(node.where, path + " is ''", "give a text that is not empty");
          } else if (value) {
            give(to.*member, *value, node);
          }
        });
    table_.fields.back().low = least;
    return *this;
  }
  TableOf& integer(const char* key, Number Struct::*member, const char* doc) {
    return add(key, FieldType::integer, doc,
               [member](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
                 if (auto value = read_integer(node, path, {0, ~std::uint64_t{0}}, p)) give(to.*member, *value, node);
               });
  }
  /// Enumerators count from 0 in the order of `names`.
  template <class Enum>
  TableOf& name(const char* key, Located<Enum> Struct::*member, const std::vector<std::string>& names,
                const char* doc) {
    add(key, FieldType::name, doc,
        [member, names](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
          if (auto value = read_name(node, path, names, p)) give(to.*member, static_cast<Enum>(*value), node);
        });
    table_.fields.back().names = names;
    return *this;
  }
  TableOf& dtype(const char* key, Located<DType> Struct::*member, const char* doc) {
    add(key, FieldType::dtype, doc, [member](Struct& to, const ConfigNode& node, const auto& path, auto& o, auto& p) {
      const auto value = read_name(node, path, dtype_names(), p);
      if (value) give(to.*member, dtype_names()[*value] == "f8" ? o.f8 : *parse_dtype(dtype_names()[*value]), node);
    });
    table_.fields.back().names = dtype_names();
    return *this;
  }
  TableOf& shape(const char* key, Located<std::vector<std::uint64_t>> Struct::*member, const char* doc) {
    return add(key, FieldType::shape, doc,
               [member](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
                 if (auto value = Values::shape(node, path, p)) give(to.*member, *value, node);
               });
  }
  TableOf& range(const char* key, Located<Range> Struct::*member, const char* doc) {
    return add(key, FieldType::range, doc,
               [member](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
                 if (auto value = Values::range(node, path, p)) give(to.*member, *value, node);
               });
  }
  TableOf& ranges(const char* key, Placements Struct::*member, const char* doc) {
    return add(key, FieldType::ranges, doc,
               [member](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
                 if (!expect_list(node, path, "pairs [begin, end], one per dimension", p)) return;
                 std::vector<Range> list;
                 for (std::size_t i = 0; i < node.items.size(); ++i) {
                   if (auto range = Values::range(node.items[i], json_path(path, i), p)) list.push_back(*range);
                 }
                 if (list.size() == node.items.size()) give(to.*member, list, node);
               });
  }
  TableOf& texts(const char* key, Located<std::vector<Text>> Struct::*member, const char* doc) {
    return add(key, FieldType::texts, doc,
               [member](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
                 if (!expect_list(node, path, "names of tensors", p)) return;
                 std::vector<Text> list;
                 for (std::size_t i = 0; i < node.items.size(); ++i) {
                   if (auto text = Values::text(node.items[i], json_path(path, i), p))
                     list.push_back({*text, node.items[i].where, true});
                 }
                 give(to.*member, list, node);
                 (to.*member).given = list.size() == node.items.size();
               });
  }
  TableOf& metadata(const char* key, Located<std::vector<MetadataEntry>> Struct::*member, const char* doc) {
    return add(
        key, FieldType::metadata, doc, [member](Struct& to, const ConfigNode& node, const auto& path, auto&, auto& p) {
          if (!expect_map(node, path, {}, p)) return;
          std::vector<MetadataEntry> list;
          for (const ConfigNode::Entry& entry : node.entries) {
            if (auto text = read_text(entry.value, json_path(path, entry.key), p)) {
              list.push_back({entry.key, *text, entry.key_where, entry.value.where, is_number_or_flag(entry.value)});
            }
          }
          give(to.*member, list, node);
        });
  }
  /// A map with the fields of `nested`, in a member of this struct.
  template <class Nested>
  TableOf& section(const char* key, Nested Struct::*member, Table nested, const char* doc) {
    auto table = std::make_shared<const Table>(std::move(nested));
    add(key, FieldType::section, doc,
        [member, table](Struct& to, const ConfigNode& node, const auto& path, auto& o, auto& p) {
          read_fields(*table, node, &(to.*member), path, o, p);
        });
    table_.fields.back().table = table;
    return *this;
  }
  TableOf& value(const char* key, Table nested, const char* doc) {
    auto table = std::make_shared<const Table>(std::move(nested));
    add(key, FieldType::section, doc, [table](Struct& to, const ConfigNode& node, const auto& path, auto& o, auto& p) {
      ParamValue& made = to.value.emplace();
      made.path = path;
      made.where = node.where;
      read_fields(*table, node, &made, path, o, p);
    });
    table_.fields.back().table = table;
    return *this;
  }
  /// A map of names to sections with the fields of `nested`.
  template <class Nested>
  TableOf& map(const char* key, std::vector<Nested> Struct::*member, Table nested, const char* doc) {
    auto table = std::make_shared<const Table>(std::move(nested));
    add(key, FieldType::map, doc,
        [member, table](Struct& to, const ConfigNode& node, const auto& path, auto& o, auto& p) {
          if (!expect_map(node, path, {}, p)) return;
          for (const ConfigNode::Entry& entry : node.entries) {
            Nested made;
            made.name = entry.key;
            made.path = json_path(path, entry.key);
            made.where = entry.key_where;
            read_fields(*table, entry.value, &made, made.path, o, p);
            (to.*member).push_back(std::move(made));
          }
        });
    table_.fields.back().table = table;
    return *this;
  }
  TableOf& optional() { return table_.fields.back().presence = Presence::optional, *this; }
  TableOf& by_kind() { return table_.fields.back().presence = Presence::by_kind, *this; }
  TableOf& extension() { return table_.fields.back().extension = true, optional(); }
  operator Table() const { return table_; }  // NOLINT(google-explicit-constructor): ends the chain

 private:
  template <class Read>
  TableOf& add(const char* key, FieldType type, const char* doc, Read read) {
    Field field;
    field.key = key;
    field.type = type;
    field.doc = doc;
    field.read = [read](void* target, const ConfigNode& node, const std::string& path, const ReadOptions& options,
                        Problems& problems) { read(*static_cast<Struct*>(target), node, path, options, problems); };
    table_.fields.push_back(std::move(field));
    return *this;
  }

  Table table_;
};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const KindRule& rule : kind_rules()) names.emplace_back(to_string(rule.kind));
  return names;
}

Table make_table() {
  const Table device = TableOf<Device>("Device")
                           .name("kind", &Device::kind, {"cpu", "npu"}, "The host, or a SIP.")
                           .integer("idx", &Device::idx, "Which one.")
                           .integer("machine", &Device::machine, "Which machine of several.")
                           .extension()
                           .range("cubes", &Device::cubes, "The SIP's cubes that the slot has, from begin up to end.")
                           .extension()
                           .range("pes", &Device::pes, "The PEs of each of these cubes that it has.")
                           .extension();
  const Table value =
      TableOf<ParamValue>("ParamValue")
          .text("path", &ParamValue::file, "The file, relative to the document.")
          .name("format", &ParamValue::format, {"safetensors", "torch.save", "torch.export"}, "How it is written.")
          .text("name", &ParamValue::name, "The tensor's name in the file.")
          .text("name_in_graph", &ParamValue::name_in_graph, "Its name in graphs, to which a get_attr refers.")
          .ranges("placements", &ParamValue::placements,
                  "Which part of the stored tensor this is: a pair [begin, end) for each of its dimensions.");
  const Table tensor =
      TableOf<TensorInfo>("TensorInfo")
          .shape("shape", &TensorInfo::shape, "Elements in each dimension; [] is a single one.")
          .dtype("dtype", &TensorInfo::dtype, "Type of the elements; f8 is f8e4m3 unless option --f8 says e5m2.")
          .value("value", value, "Of constant tensors, and only of these: where the contents come from.")
          .optional();
  const Table task =
      TableOf<SuperTask>("SuperTask")
          .name("kind", &SuperTask::kind, kind_names(), "What it does.")
          .texts("inputs", &SuperTask::inputs, "Tensors that it reads, in order.")
          .texts("outputs", &SuperTask::outputs, "Tensors that it makes, in order.")
          .text("device", &SuperTask::device, "The slot that it runs on: of compute and communication.")
          .by_kind()
          .text("data", &SuperTask::data, "The serialised graph: of compute.")
          .by_kind()
          .text("group", &SuperTask::group, "What the members of one exchange share: of communication.")
          .by_kind()
          .integer("device_idx", &SuperTask::device_idx, "The slot's place in the group, from 0: of communication.")
          .by_kind()
          .metadata("metadata", &SuperTask::metadata, "Exactly the keys of its kind: of communication.")
          .by_kind();
  const Table whole =
      TableOf<WholeTensor>("WholeTensor")
          .shape("shape", &WholeTensor::shape, "Of the whole tensor.")
          .dtype("dtype", &WholeTensor::dtype, "Type of its elements.")
          .integer("idx", &WholeTensor::idx, "Its place among the flat inputs or outputs of the model.");
  const Table slice =
      TableOf<TensorSlice>("TensorSlice")
          .ranges("placements", &TensorSlice::placements, "Which part of the origin: a pair [begin, end) a dimension.")
          .text("origin", &TensorSlice::origin, "Name of the whole tensor.")
          .dtype("dtype", &TensorSlice::dtype, "Type of the elements.")
          .text("device", &TensorSlice::device, "The slot that it lies on.");
  const Table tensors = TableOf<WholeTensors>("tensors")
                            .map("inputs", &WholeTensors::inputs, whole, "The model's inputs.")
                            .map("outputs", &WholeTensors::outputs, whole, "The model's outputs.");
  const Table slices = TableOf<TensorSlices>("tensor_slices")
                           .map("inputs", &TensorSlices::inputs, slice, "What the pipeline's inputs are part of.")
                           .map("outputs", &TensorSlices::outputs, slice, "What its outputs are part of.");
  const Table metadata =
      TableOf<Metadata>("Metadata")
          .section("tensors", &Metadata::tensors, tensors, "Tensors of the whole model.")
          .section("tensor_slices", &Metadata::slices, slices, "The pipeline's tensors as parts of these.");
  return TableOf<Pipeline>("Pipeline")
      .text("name", &Pipeline::name, "The pipeline's name.", 1)
      .map("devices", &Pipeline::devices, device, "The slots that the pipeline needs.")
      .map("tensors", &Pipeline::tensors, tensor, "Every tensor in it.")
      .map("supertasks", &Pipeline::supertasks, task, "Every supertask.")
      .section("metadata", &Pipeline::metadata, metadata,
               "How inputs and outputs of the whole model relate to the pipeline's own.");
}

}  // namespace

std::vector<std::string> Table::keys() const {
  std::vector<std::string> keys;
  for (const Field& field : fields) keys.push_back(field.key);
  return keys;
}

const Table& document_table() {
  static const Table kTable = make_table();
  return kTable;
}

const std::vector<KindRule>& kind_rules() {
  using Class = KindRule::Class;
  const auto exchange = [](TaskKind kind, const std::vector<std::string>& metadata, const char* doc) {
    return KindRule{kind, Class::communication, metadata, 1, 1, doc};
  };
  static const std::vector<KindRule> kRules = {
      {TaskKind::dfg, Class::compute, {}, -2, -1, "Computes a list of operations."},
      {TaskKind::fx, Class::compute, {}, -2, -1, "Computes an FX node list."},
      {TaskKind::send, Class::communication, {}, 1, 0, "Sends its input to the `recv` of its group."},
      {TaskKind::recv, Class::communication, {}, 0, 1, "Gets what the `send` of its group sends."},
      exchange(TaskKind::reduce, {"reduce_op", "dst"},
               "Reduces the members' inputs; the output is on slot `dst` only."),
      exchange(TaskKind::all_gather, {"dim"}, "Sets the members' inputs side by side along `dim`."),
      exchange(TaskKind::all_reduce, {"reduce_op"}, "Reduces the members' inputs, on every member."),
      exchange(TaskKind::reduce_scatter, {"reduce_op", "dim"}, "Reduces; each member gets an even part along `dim`."),
      exchange(
          TaskKind::all_to_all, {"src_dim", "dst_dim"},
          "Splits along `src_dim` into a piece for each member; received pieces are set side by side along `dst_dim`."),
      exchange(TaskKind::broadcast, {"src"}, "The input of slot `src`, which alone has one, to all."),
      {TaskKind::input, Class::boundary, {}, 0, -1, "Emits the pipeline's inputs."},
      {TaskKind::output, Class::boundary, {}, -1, 0, "Takes the pipeline's outputs."},
  };
  return kRules;
}

const KindRule& rule_of(TaskKind kind) { return kind_rules()[static_cast<std::size_t>(kind)]; }

const std::vector<std::string>& reduce_ops() {
  static const std::vector<std::string> kOps = {"sum", "avg", "max", "min"};
  return kOps;
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> kNames = {"f64", "f32", "f16", "bf16", "f8", "bool", "i64", "i32", "i16", "i8"};
  return kNames;
}

Pipeline read_pipeline(const ConfigNode& root, const ReadOptions& options, Problems& problems) {
  Pipeline pipeline;
  pipeline.f8 = options.f8;
  read_fields(document_table(), root, &pipeline, "$", options, problems);
  pipeline.index();
  return pipeline;
}

}  // namespace kernbench::pipeline
