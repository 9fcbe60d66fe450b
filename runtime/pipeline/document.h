#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tlm/config/config_node.h"
#include "tlm/config/problems.h"
#include "tlm/kernel/dtype.h"

/// The intermediate pipeline format: what a compiler that has parallelised a model hands over (docs/pipeline.md).
namespace kernbench::pipeline {

/// A value of the document with its place. Not given: it is missing, or was refused when it was read.
template <class T>
struct Located {
  T value{};
  Location where;
  bool given = false;
};
using Text = Located<std::string>;
using Number = Located<std::uint64_t>;

/// [begin, end)
struct Range {
  std::uint64_t begin = 0, end = 0;
  Location where;
};
using Placements = Located<std::vector<Range>>;

/// Of a tensor: kernels move so many at once (runtime/pipeline/run/kernels.h).
inline constexpr std::size_t kMostShapeDims = 6;

enum class DeviceKind : std::uint8_t { cpu, npu };
enum class ParamFormat : std::uint8_t { safetensors, torch_save, torch_export };
enum class TaskKind : std::uint8_t {
  dfg,
  fx,
  send,
  recv,
  reduce,
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
  broadcast,
  input,
  output
};
const char* to_string(DeviceKind kind);
const char* to_string(TaskKind kind);  ///< as the document spells it: "FX"

/// What every named part of the document has.
struct Part {
  std::string name;  ///< its key
  std::string path;  ///< "$.supertasks.s1"
  Location where;    ///< of its key
};

/// A slot: a SIP, or the host. `cubes`, `pes` and `machine` are extensions that a plain file leaves out.
struct Device : Part {
  Located<DeviceKind> kind;
  Number idx, machine;
  Located<Range> cubes, pes;
};

/// Where a constant comes from.
struct ParamValue {
  std::string path;
  Location where;
  Text file, name, name_in_graph;
  Located<ParamFormat> format;
  Placements placements;
};

struct TensorInfo : Part {
  Located<std::vector<std::uint64_t>> shape;
  Located<DType> dtype;
  std::optional<ParamValue> value;  ///< of a constant
};

/// An entry of a communication's metadata: an integer or a text.
struct MetadataEntry {
  std::string key, text;
  Location key_where, where;
  bool number = false;  ///< not a text
};

struct SuperTask : Part {
  Located<TaskKind> kind;
  Located<std::vector<Text>> inputs, outputs;
  Text device, data, group;
  Number device_idx;
  Located<std::vector<MetadataEntry>> metadata;

  const MetadataEntry* entry(const std::string& key) const;  ///< of the metadata; null: there is none
};

/// A tensor of the whole model.
struct WholeTensor : Part {
  Located<std::vector<std::uint64_t>> shape;
  Located<DType> dtype;
  Number idx;
};

/// Which part of which whole tensor a tensor of the pipeline is.
struct TensorSlice : Part {
  Placements placements;
  Text origin, device;
  Located<DType> dtype;
};

struct WholeTensors {
  std::vector<WholeTensor> inputs, outputs;
};
struct TensorSlices {
  std::vector<TensorSlice> inputs, outputs;
};
struct Metadata {
  WholeTensors tensors;
  TensorSlices slices;
};

/// A document as it was read. What is wrong with its meaning is a matter of check().
struct Pipeline {
  Text name;
  DType f8 = DType::f8e4m3;  ///< what `f8` means in it
  std::vector<Device> devices;
  std::vector<TensorInfo> tensors;
  std::vector<SuperTask> supertasks;
  Metadata metadata;

  // Null: there is none of that name.
  const Device* device(const std::string& name) const;
  const TensorInfo* tensor(const std::string& name) const;
  void index();  ///< makes the look-ups; the reader calls it

 private:
  std::unordered_map<std::string, std::size_t> device_at_, tensor_at_;
};

struct ReadOptions {
  DType f8 = DType::f8e4m3;  ///< what `f8` means
};

/// Reads a document; reports every unknown or missing field and every value of a wrong type, and gives what is left.
Pipeline read_pipeline(const ConfigNode& root, const ReadOptions& options, Problems& problems);

/// As suggest(), with a hint also where there is no valid name: "there are no slots".
std::string suggest_known(const std::string& text, const std::vector<std::string>& valid, const std::string& things);

/// "f16"; both kinds of f8 are "f8" in a document.
const char* document_type(DType dtype);
/// "[2, 3]"
std::string to_text(const std::vector<std::uint64_t>& shape);

}  // namespace kernbench::pipeline
