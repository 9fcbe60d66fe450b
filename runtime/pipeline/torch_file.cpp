#include "runtime/pipeline/torch_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/pipeline/mapped_zip.h"
#include "runtime/pipeline/unpickle.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

namespace kernbench::pipeline {

namespace {

using PayloadJson = nlohmann::json;

/// Numbers of types in archives; source: torch/_export/serde/schema.py, class ScalarType
constexpr std::pair<int, DType> kScalarTypes[] = {
    {2, DType::i8},  {3, DType::i16},      {4, DType::i32},   {5, DType::i64},     {6, DType::f16},    {7, DType::f32},
    {8, DType::f64}, {12, DType::boolean}, {13, DType::bf16}, {29, DType::f8e4m3}, {30, DType::f8e5m2}};

std::optional<DType> scalar_type(int number) {
  for (const auto& [known, dtype] : kScalarTypes) {
    if (known == number) return dtype;
  }
  return std::nullopt;
}

/// The folder "ROOT/" that all entries are in and that holds `name`; empty: there is none.
std::string root_with(const MappedZip& zip, const std::string& name) {
  for (const auto& [entry, place] : zip.entries()) {
    if (ends_with(entry, "/" + name) && entry.find('/') == entry.size() - name.size() - 1)
      return entry.substr(0, entry.find('/') + 1);
  }
  return {};
}

void require_little_endian(const MappedZip& zip, const std::string& root) {
  if (zip.has(root + "byteorder") && zip.text(root + "byteorder") != "little")
    throw BrokenFile("is not little-endian", "save it on a little-endian machine");
}

}  // namespace

TorchFile::TorchFile(const std::string& path, bool exported) : WeightFile(path, "PyTorch") {
  try {
    if (exported) {
      add_exported();
    } else {
      add_saved(0, bytes_, "", "tensor");
    }
  } catch (const BrokenFile& error) {
    throw ConfigError({path, 0, 0}, error.what(), error.hint);
  } catch (const JsonError& error) {
    throw ConfigError({path, 0, 0}, std::string("has a list of weights that ") + error.what(), "the file is broken");
  } catch (const PayloadJson::exception& error) {
    throw ConfigError({path, 0, 0}, std::string("has a list of weights that cannot be read: ") + error.what(),
                      "the file is broken");
  }
}

void TorchFile::add(const std::string& name, Entry entry, std::int64_t offset, std::uint64_t held) {
  const std::string who = "tensor '" + name + "': ";
  const std::uint64_t item = size_of(entry.dtype), count = held / item;
  if (entry.shape.size() != entry.strides.size())
    throw BrokenFile(who + "its strides are not as many as its dimensions");
  bool empty = false;
  for (std::size_t i = 0; i < entry.shape.size(); ++i) {
    if (entry.shape[i] < 0 || entry.strides[i] < 0) throw BrokenFile(who + "a size or a stride is negative");
    empty = empty || entry.shape[i] == 0;
  }
  if (offset < 0) throw BrokenFile(who + "its offset is negative");
  // Each step stays below `count`, so that nothing overflows.
  auto last = static_cast<std::uint64_t>(offset);
  std::int64_t elements = 1;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // of a view that repeats its elements
  for (const std::int64_t size : entry.shape) {
    if (size > kMost / elements) throw BrokenFile(who + "it has more than 2^40 elements");
    elements *= std::max<std::int64_t>(size, 1);  // of an empty one, too: its strides are products
  }
  for (std::size_t i = 0; i < entry.shape.size() && !empty; ++i) {
    const auto steps = static_cast<std::uint64_t>(entry.shape[i] - 1),
               stride = static_cast<std::uint64_t>(entry.strides[i]);
    if (last >= count || (stride != 0 && steps > (count - last) / stride))
      throw BrokenFile(who + "it reaches beyond its storage");
    last += steps * stride;
  }
  if (!empty && last >= count) throw BrokenFile(who + "it reaches beyond its storage");
  if (!empty) entry.begin += static_cast<std::uint64_t>(offset) * item;
  if (!entries_.emplace(name, std::move(entry)).second)
    throw BrokenFile("has two tensors '" + name + "', in dictionaries within one another");
}

void TorchFile::add_saved(std::uint64_t begin, std::uint64_t bytes, const std::string& prefix,
                          const std::string& alone) {
  const MappedZip zip(data_, begin, bytes);
  const std::string root = root_with(zip, "data.pkl");
  if (root.empty())
    throw BrokenFile("has no data.pkl", "give a file of torch.save; an archive of torch.export has that format");
  if (zip.has(root + "constants.pkl"))
    throw BrokenFile("is a TorchScript module", "save the state dict alone: torch.save(model.state_dict(), FILE)");
  require_little_endian(zip, root);
  for (const PickledTensor& tensor : unpickle_tensors(zip.text(root + "data.pkl"))) {
    if (!tensor.dtype) continue;
    const std::string own = tensor.name.empty() && prefix.empty() ? alone : tensor.name;
    const std::string name = prefix.empty() || own.empty() ? prefix + own : prefix + "." + own;
    MappedZip::Entry record;
    if (tensor.held_bytes > 0) record = zip.stored(root + "data/" + tensor.key);
    if (record.bytes < tensor.held_bytes)
      throw BrokenFile("has a storage '" + tensor.key + "' of " + std::to_string(record.bytes) +
                       " B, which should be " + std::to_string(tensor.held_bytes));
    add(name, {tensor.shape, *tensor.dtype, record.begin, tensor.strides}, tensor.offset, tensor.held_bytes);
  }
}

void TorchFile::add_exported() {
  const MappedZip zip(data_, 0, bytes_);
  if (zip.has("serialized_exported_program.json")) {
    // PyTorch 2.1 to 2.7: torch.save's bytes among other files; of 2.1 the names end in json.
    // source: torch/export/__init__.py, save()
    for (const char* name : {"serialized_state_dict.pt", "serialized_state_dict.json", "serialized_constants.pt",
                             "serialized_constants.json"}) {
      if (!zip.has(name)) continue;
      const MappedZip::Entry& place = zip.stored(name);
      add_saved(place.begin, place.bytes, "", "tensor");
    }
    return;
  }
  // PyTorch 2.8 and later. source: PyTorch, "PT2 Archive Spec" and its archive constants
  const std::string root = root_with(zip, "archive_format");
  if (root.empty() || zip.text(root + "archive_format") != "pt2")
    throw BrokenFile("is no archive of torch.export",
                     "give a file of torch.export.save; one of torch.save has that format");
  if (zip.has(root + "archive_version") && zip.text(root + "archive_version") != "0")
    throw BrokenFile("is of another version of the archive than 0, which is read", "write the weights as safetensors");
  require_little_endian(zip, root);
  std::vector<std::string> models;
  const std::string begin = root + "models/", end = ".json";
  for (const auto& [name, place] : zip.entries()) {
    if (name.rfind(begin, 0) == 0 && ends_with(name, end) && name.size() > begin.size() + end.size())
      models.push_back(name.substr(begin.size(), name.size() - begin.size() - end.size()));
  }
  for (const std::string& model : models) {
    const std::string prefix = models.size() > 1 ? model : "";
    for (const char* kind : {"weights", "constants"}) add_model(zip, root, kind, model, prefix);
  }
}

void TorchFile::add_model(const MappedZip& zip, const std::string& root, const std::string& kind,
                          const std::string& model, const std::string& prefix) {
  const std::string folder = root + "data/" + kind + "/", pickled = folder + model + ".pt";
  if (zip.has(pickled)) {  // PyTorch 2.8
    const MappedZip::Entry& place = zip.stored(pickled);
    add_saved(place.begin, place.bytes, prefix, "tensor");
    return;
  }
  const std::string config = folder + model + "_" + kind + "_config.json";
  if (!zip.has(config)) return;
  const std::string text = zip.text(config);
  refuse_deep_json(text);
  const PayloadJson payloads = PayloadJson::parse(text);
  for (const auto& [own, payload] : payloads.at("config").items()) {
    const std::string name = prefix.empty() ? own : prefix + "." + own;
    const PayloadJson& meta = payload.at("tensor_meta");
    if (meta.is_null()) continue;  // an object of Python
    const MappedZip::Entry& place = zip.stored(folder + payload.at("path_name").get<std::string>());
    if (payload.at("use_pickle").get<bool>()) {
      add_saved(place.begin, place.bytes, name, "");
      continue;
    }
    const auto dtype = scalar_type(meta.at("dtype").get<int>());
    if (!dtype) continue;
    const auto numbers = [&](const char* field) {
      std::vector<std::int64_t> made;
      for (const PayloadJson& number : meta.at(field)) made.push_back(number.at("as_int").get<std::int64_t>());
      return made;
    };
    add(name, {numbers("sizes"), *dtype, place.begin, numbers("strides")},
        meta.at("storage_offset").at("as_int").get<std::int64_t>(), place.bytes);
  }
}

}  // namespace kernbench::pipeline
