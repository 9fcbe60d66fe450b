#pragma once
#include <execution_trace.pb.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace kernbench::chakra {

/// Numbers of the format's enumerations.
enum WireType { kMetadata = 1, kMemLoad = 2, kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7 };
enum WireCollective {
  kAllReduce = 0,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kReduceScatterBlock,
  kBarrier
};

/// One rank's file, as Chakra's own writers make it.
class TraceWriter {
 public:
  /// The last node; for what the shorthands below do not set.
  wire::Node& node() { return nodes_.back(); }
  TraceWriter& add(std::uint64_t id, const std::string& name, int type, const std::vector<std::uint64_t>& after = {}) {
    wire::Node& node = nodes_.emplace_back();
    node.set_id(id);
    node.set_name(name);
    node.set_type(type);
    for (const std::uint64_t each : after) node.add_data_dependencies(each);
    return *this;
  }
  TraceWriter& with(const std::string& name, std::int64_t value) {
    attribute(name).set_int64_value(value);
    return *this;
  }
  TraceWriter& with(const std::string& name, const std::string& value) {
    attribute(name).set_string_value(value);
    return *this;
  }
  TraceWriter& with_flags(const std::string& name, const std::vector<bool>& values) {
    wire::BoolList& list = *attribute(name).mutable_bool_list();
    for (const bool value : values) list.add_values(value);
    return *this;
  }
  TraceWriter& with_flag(const std::string& name, bool value) {
    attribute(name).set_bool_value(value);
    return *this;
  }

  TraceWriter& compute(std::uint64_t id, std::uint64_t micros, const std::vector<std::uint64_t>& after = {}) {
    add(id, "compute", kCompute, after);
    node().set_duration_micros(micros);
    return *this;
  }
  TraceWriter& collective(std::uint64_t id, int type, std::int64_t bytes,
                          const std::vector<std::uint64_t>& after = {}) {
    add(id, "collective", kCollective, after).with_flag("is_cpu_op", false);
    return with("comm_type", type).with("comm_size", bytes);
  }
  TraceWriter& send(std::uint64_t id, int to, std::int64_t bytes, const std::vector<std::uint64_t>& after = {}) {
    return add(id, "send", kSend, after).with("comm_dst", to).with("comm_size", bytes);
  }
  TraceWriter& receive(std::uint64_t id, int from, std::int64_t bytes, const std::vector<std::uint64_t>& after = {}) {
    return add(id, "recv", kReceive, after).with("comm_src", from).with("comm_size", bytes);
  }

  wire::GlobalMetadata& metadata() { return metadata_; }

  std::string bytes() const {
    std::ostringstream out;
    google::protobuf::util::SerializeDelimitedToOstream(metadata_, &out);
    for (const wire::Node& node : nodes_) google::protobuf::util::SerializeDelimitedToOstream(node, &out);
    return out.str();
  }

 private:
  wire::Attribute& attribute(const std::string& name) {
    wire::Attribute& attribute = *node().add_attributes();
    attribute.set_name(name);
    return attribute;
  }
  wire::GlobalMetadata metadata_ = [] {
    wire::GlobalMetadata metadata;
    metadata.set_version("0.0.4");
    return metadata;
  }();
  std::vector<wire::Node> nodes_;
};

inline void write_file(const std::string& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}
/// PREFIX.0.et and so on.
inline void write_traces(const std::string& prefix, const std::vector<TraceWriter>& ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    write_file(prefix + "." + std::to_string(rank) + ".et", ranks[rank].bytes());
  }
}
/// `kernbench run chakra` of traces of that name, each rank on a SIP of one cube.
inline std::vector<std::string> command_of(const std::string& prefix, std::size_t ranks) {
  return {"run",
          "chakra",
          "--workload-configuration",
          prefix,
          "--topology",
          "minimal",
          "--fidelity",
          "fast",
          "--set",
          "system.sips.count=" + std::to_string(ranks),
          "--set",
          "cube.pes=2"};
}

}  // namespace kernbench::chakra
