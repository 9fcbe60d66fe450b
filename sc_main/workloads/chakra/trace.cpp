#include "sc_main/workloads/chakra/trace.h"

#include <execution_trace.pb.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "tlm/config/config_node.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"

namespace kernbench::chakra {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// NodeType of the format, by number.
constexpr const char* kNodeTypes[] = {"INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
                                      "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE",
                                      "STORAGE_NODE", "BATCH_NODE",     "CHECKPOINT_NODE"};
std::optional<NodeKind> kind_of(int type) {
  switch (type) {
    case 1:
      return NodeKind::metadata;
    case 4:
      return NodeKind::compute;
    case 5:
      return NodeKind::send;
    case 6:
      return NodeKind::receive;
    case 7:
      return NodeKind::collective;
    default:
      return {};
  }
}

/// CollectiveCommType of the format, by number. REDUCE_SCATTER_BLOCK is MPI's name for what NCCL calls reduce_scatter.
constexpr CollectiveOp kCollectives[] = {
    CollectiveOp::all_reduce,     CollectiveOp::reduce,    CollectiveOp::all_gather, CollectiveOp::gather,
    CollectiveOp::scatter,        CollectiveOp::broadcast, CollectiveOp::all_to_all, CollectiveOp::reduce_scatter,
    CollectiveOp::reduce_scatter, CollectiveOp::barrier};

std::optional<std::int64_t> integer_of(const wire::Attribute& attribute) {
  switch (attribute.value_case()) {
    case wire::Attribute::kInt32Value:
      return attribute.int32_value();
    case wire::Attribute::kInt64Value:
      return attribute.int64_value();
    case wire::Attribute::kUint32Value:
      return attribute.uint32_value();
    case wire::Attribute::kUint64Value:
      return static_cast<std::int64_t>(std::min<std::uint64_t>(attribute.uint64_value(), INT64_MAX));
    case wire::Attribute::kSint32Value:
      return attribute.sint32_value();
    case wire::Attribute::kSint64Value:
      return attribute.sint64_value();
    case wire::Attribute::kFixed32Value:
      return attribute.fixed32_value();
    case wire::Attribute::kFixed64Value:
      return static_cast<std::int64_t>(std::min<std::uint64_t>(attribute.fixed64_value(), INT64_MAX));
    case wire::Attribute::kSfixed32Value:
      return attribute.sfixed32_value();
    case wire::Attribute::kSfixed64Value:
      return attribute.sfixed64_value();
    case wire::Attribute::kBoolValue:
      return attribute.bool_value() ? 1 : 0;
    default:
      return {};
  }
}

/// The elements of a list as Python prints it, as they stand there; none if it is no list.
std::vector<std::string_view> elements_of(std::string_view text) {
  std::vector<std::string_view> elements;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return elements;
  std::size_t begin = 1;
  int depth = 0;
  char quote = 0;  // that a string has begun with
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if ((c == ',' && depth == 0) || i + 1 == text.size()) {
      while (begin < i && text[begin] == ' ') ++begin;
      elements.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (c == ']' || c == ')') {
      --depth;
    }
  }
  return elements;
}

/// The other end of a transfer by the call that started it: PyTorch's record_param_comms has tensors, a sequence
/// number, the group, the other's place in it, "send" or "recv", and more. Nothing if `values` is not of that.
std::optional<std::int64_t> called_peer(const std::string& values, const char* call) {
  constexpr std::size_t kPlace = 3, kCall = 4;
  const std::vector<std::string_view> inputs = elements_of(values);
  if (inputs.size() <= kCall || inputs[kCall] != fmt::format("'{}'", call)) return {};
  std::int64_t place = 0;
  const char* const end = inputs[kPlace].data() + inputs[kPlace].size();
  const auto [stop, error] = std::from_chars(inputs[kPlace].data(), end, place);
  if (error != std::errc() || stop != end || place < 0) return {};  // recv of any has no place
  return place;
}

constexpr std::int64_t kMostUs = 1'000'000'000'000;        // of simulated time, which is counted in ps, a 64-bit number
constexpr std::int64_t kMostWork = std::int64_t{1} << 53;  // operations, or bytes, of a node: so, too

/// A node as it is read: its attributes by name, and where to complain.
class NodeReader {
 public:
  NodeReader(const wire::Node& wire, const Location& where, Problems& problems)
      : wire_(wire), where_(where), problems_(problems) {
    node_.id = wire.id();
    node_.name = wire.name();
    node_.after.assign(wire.data_dependencies().begin(), wire.data_dependencies().end());
    for (const wire::Attribute& attribute : wire.attributes()) attributes_.emplace(attribute.name(), &attribute);
  }

  /// Nothing if the node is of no use.
  std::optional<Node> read() {
    const std::optional<NodeKind> kind = kind_of(wire_.type());
    if (!kind) {
      const bool known = wire_.type() >= 0 && wire_.type() < static_cast<int>(std::size(kNodeTypes));
      complain(known ? fmt::format("is a {}", kNodeTypes[wire_.type()]) : fmt::format("has type {}", wire_.type()),
               "what runs here: COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE, METADATA_NODE");
      return {};
    }
    node_.kind = *kind;
    node_.on_host = whole("is_cpu_op", 1).value_or(0) == 1;
    const bool communicates = *kind != NodeKind::compute && *kind != NodeKind::metadata;
    if (communicates && node_.on_host && !says_what_moves()) node_.kind = NodeKind::compute;
    switch (node_.kind) {
      case NodeKind::compute:
        compute();
        break;
      case NodeKind::collective:
        collective();
        break;
      case NodeKind::send:
      case NodeKind::receive:
        transfer();
        break;
      case NodeKind::metadata:
        break;
    }
    if (communicates && node_.kind == *kind && node_.on_host) complain("communicates and is_cpu_op is true", "");
    return right_ ? std::optional(node_) : std::nullopt;
  }

 private:
  /// The converter keeps the host's call of a communication beside what the device did of it: the call is work of the
  /// host and says nothing of this.
  bool says_what_moves() const {
    return std::any_of(attributes_.begin(), attributes_.end(),
                       [](const auto& attribute) { return attribute.first.rfind("comm_", 0) == 0; });
  }
  void complain(const std::string& what, const std::string& hint) {
    problems_.add(where_, fmt::format("{} {}", in_words(node_), what), hint);
    right_ = false;
  }
  const wire::Attribute* find(const std::string& name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? nullptr : found->second;
  }
  /// An integer from 0 to `most`; nothing if there is none.
  std::optional<std::int64_t> whole(const std::string& name, std::int64_t most = INT64_MAX) {
    const wire::Attribute* const attribute = find(name);
    if (attribute == nullptr) return {};
    const std::optional<std::int64_t> value = integer_of(*attribute);
    if (value && *value >= 0 && *value <= most) return value;
    complain(fmt::format("has {} {}", name, value ? std::to_string(*value) : "of another type than an integer"),
             most == INT64_MAX ? "give an integer of 0 or more" : fmt::format("give an integer from 0 to {}", most));
    return {};
  }
  std::optional<std::int64_t> needed(const std::string& name, std::int64_t most = INT64_MAX, const char* hint = "") {
    if (find(name) == nullptr) complain(fmt::format("has no attribute {}", name), hint);
    return whole(name, most);
  }

  void compute() {
    if (const auto operations = whole("num_ops", kMostWork)) node_.operations = static_cast<std::uint64_t>(*operations);
    node_.tensor_bytes = static_cast<std::uint64_t>(whole("tensor_size", kMostWork).value_or(0));
    node_.recorded_us = wire_.duration_micros();
    // Older files say it in an attribute.
    if (node_.recorded_us == 0) node_.recorded_us = static_cast<std::uint64_t>(whole("runtime", kMostUs).value_or(0));
    if (node_.recorded_us > static_cast<std::uint64_t>(kMostUs)) {
      complain(fmt::format("has duration_micros {}", node_.recorded_us),
               fmt::format("give an integer from 0 to {}", kMostUs));
    }
  }

  void collective() {
    const auto type = needed("comm_type", static_cast<std::int64_t>(std::size(kCollectives)) - 1);
    if (type) node_.op = kCollectives[*type];
    if (node_.op != CollectiveOp::barrier || !type) size();
    group();
    node_.root = whole("root_rank");
    const wire::Attribute* const dimensions = find("involved_dim");
    if (dimensions == nullptr) return;
    if (dimensions->value_case() != wire::Attribute::kBoolList) {
      complain("has an involved_dim that is no list of booleans", "");
      return;
    }
    node_.dimensions.assign(dimensions->bool_list().values().begin(), dimensions->bool_list().values().end());
  }

  void transfer() {
    const bool sends = node_.kind == NodeKind::send;
    const char* const other = sends ? "comm_dst" : "comm_src";
    const auto called = called_peer(wire_.inputs().values(), sends ? "send" : "recv");
    if (find(other) == nullptr && called) {
      node_.peer = *called;
      node_.peer_is_member = true;
      group();
    } else if (const auto peer = needed(other, INT64_MAX, "give the other rank: its inputs do not name it either")) {
      node_.peer = *peer;
    }
    node_.tag = static_cast<std::uint64_t>(whole("comm_tag").value_or(0));
    size();
  }

  void size() {
    const auto bytes = needed("comm_size");
    if (bytes && *bytes == 0) complain("has comm_size 0", "give the bytes that the rank puts in");
    node_.bytes = static_cast<std::uint64_t>(bytes.value_or(0));
  }

  void group() {
    const wire::Attribute* const name = find("pg_name");
    if (name == nullptr) return;
    if (name->value_case() == wire::Attribute::kStringValue) {
      node_.group = name->string_value();
    } else if (const auto number = whole("pg_name")) {
      node_.group = std::to_string(*number);
    }
  }

  const wire::Node& wire_;
  const Location& where_;
  Problems& problems_;
  Node node_;
  std::map<std::string, const wire::Attribute*> attributes_;
  bool right_ = true;
};

/// Process groups as PyTorch writes them into its metadata node: a list of {pg_name, ranks} in quotes and brackets.
void read_metadata(const wire::Node& wire, RankTrace& trace, Problems& problems) {
  const std::string& text = wire.inputs().values();
  const std::size_t begin = text.find("[{"), end = text.rfind("}]");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;  // of something else
  const auto wrong = [&] {
    problems.add(trace.where(),
                 fmt::format("node {} {}: its process groups cannot be read", wire.id(), quote(wire.name())),
                 "expected a list of objects with pg_name and ranks");
  };
  Json list;
  try {
    list = parse_json(text.substr(begin, end + 2 - begin));
  } catch (const JsonError&) {
    return wrong();
  }
  for (const Json& each : list) {
    if (!each.is_object() || !each.contains("pg_name") || !each["pg_name"].is_string()) return wrong();
    std::vector<int> ranks;
    if (each.contains("ranks")) {
      if (!each["ranks"].is_array()) return wrong();
      for (const Json& rank : each["ranks"]) {
        if (!rank.is_number_integer()) return wrong();
        ranks.push_back(rank.get<int>());
      }
    }
    trace.groups[each["pg_name"].get<std::string>()] = ranks;
  }
}

/// Of a file.   assumed: protobuf's own reader counts to 2 GiB
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

std::string contents_of(const std::string& file) { return load_text(file, kMostBytes, "", ""); }

namespace {

/// Messages of a file, one after the other.
class Messages {
 public:
  Messages(const std::string& contents, const Location& where, Problems& problems)
      : contents_(contents),
        stream_(reinterpret_cast<const std::uint8_t*>(contents.data()), static_cast<int>(contents.size())),
        where_(where),
        problems_(problems) {}

  /// False at the end, or where the file goes wrong.
  bool next(google::protobuf::Message& message) {
    at_ = stream_.CurrentPosition();
    if (at_ == static_cast<int>(contents_.size())) return false;
    std::uint32_t length = 0;
    if (!stream_.ReadVarint32(&length)) return wrong("the length of a message cannot be read");
    const int begin = stream_.CurrentPosition(), left = static_cast<int>(contents_.size()) - begin;
    if (length > static_cast<std::uint32_t>(left)) {
      return wrong(fmt::format("a message of {} B begins, and {} B are left", length, left));
    }
    if (!message.ParseFromArray(contents_.data() + begin, static_cast<int>(length))) {
      return wrong(fmt::format("a message of {} B is no {}", length, message.GetDescriptor()->name()));
    }
    stream_.Skip(static_cast<int>(length));
    return true;
  }
  bool wrong(const std::string& what) {
    problems_.add(where_, fmt::format("byte {}: {}", at_, what),
                  "a Chakra execution trace (.et, protobuf) is expected");
    return false;
  }

 private:
  const std::string& contents_;
  google::protobuf::io::CodedInputStream stream_;
  const Location& where_;
  Problems& problems_;
  int at_ = 0;
  google::protobuf::LogSilencer silencer_;  // what is wrong with a message is said here
};

RankTrace read_trace(const std::string& file, Problems& problems) {
  RankTrace trace;
  trace.file = file;
  const std::string contents = contents_of(file);
  const Location where = trace.where();
  if (contents.size() > INT32_MAX) throw ConfigError(where, "is larger than 2 GiB");
  Messages messages(contents, where, problems);
  wire::GlobalMetadata metadata;
  if (contents.empty()) {
    messages.wrong("the file is empty");
    return trace;
  }
  if (!messages.next(metadata)) return trace;
  if (metadata.version().empty() &&
      !metadata.GetReflection()->GetUnknownFields(metadata).empty()) {  // the fields of a node
    messages.wrong("the first message is no GlobalMetadata");
    return trace;
  }
  trace.version = metadata.version();
  std::set<std::uint64_t> ids;
  std::vector<std::vector<std::uint64_t>> control;  // of trace.nodes
  for (wire::Node node; messages.next(node); node.Clear()) {
    if (!ids.insert(node.id()).second) {
      problems.add(where, fmt::format("node {} {}: its id stands here twice", node.id(), quote(node.name())), "");
      continue;
    }
    if (auto read = NodeReader(node, where, problems).read()) {
      trace.nodes.push_back(std::move(*read));
      control.emplace_back(node.control_dependencies().begin(), node.control_dependencies().end());
    } else {
      trace.refused.push_back(node.id());
    }
    if (node.type() == 1) read_metadata(node, trace, problems);
  }
  // Chakra's converter removes nodes that no data dependency touches, and leaves control dependencies on them.
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    std::vector<std::uint64_t>& after = trace.nodes[i].after;
    for (const std::uint64_t id : control[i]) {
      if (ids.count(id) != 0 && std::find(after.begin(), after.end(), id) == after.end()) after.push_back(id);
    }
  }
  return trace;
}

/// Ranks of the files PREFIX.<rank>.et that there are.
std::set<int> ranks_of(const std::string& prefix) {
  const fs::path path(prefix);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string stem = path.filename().string() + ".";
  std::set<int> ranks;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= stem.size() + 3 || name.compare(0, stem.size(), stem) != 0) continue;
    if (name.compare(name.size() - 3, 3, ".et") != 0) continue;
    const std::string number = name.substr(stem.size(), name.size() - 3 - stem.size());
    if (number.size() > 5 || number.find_first_not_of("0123456789") != std::string::npos) continue;
    ranks.insert(std::stoi(number));
  }
  return ranks;
}

}  // namespace

const char* to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::compute:
      return "COMP_NODE";
    case NodeKind::send:
      return "COMM_SEND_NODE";
    case NodeKind::receive:
      return "COMM_RECV_NODE";
    case NodeKind::collective:
      return "COMM_COLL_NODE";
    case NodeKind::metadata:
      break;
  }
  return "METADATA_NODE";
}

std::string in_words(const Node& node) { return fmt::format("node {} {}", node.id, quote(node.name)); }

std::vector<RankTrace> read_traces(const std::string& prefix, Problems& problems) {
  const std::set<int> ranks = ranks_of(prefix);
  if (ranks.empty()) {
    throw ConfigError(
        {prefix + ".0.et", 0, 0}, "there is no such file",
        "--workload-configuration is what the files of all ranks begin with: PREFIX.0.et, PREFIX.1.et, ...");
  }
  for (int rank = 0; rank <= *ranks.rbegin(); ++rank) {
    if (ranks.count(rank) != 0) continue;
    throw ConfigError({fmt::format("{}.{}.et", prefix, rank), 0, 0},
                      fmt::format("there is no such file, but one of rank {}", *ranks.rbegin()), "");
  }
  std::vector<RankTrace> traces;
  traces.reserve(ranks.size());
  for (const int rank : ranks) traces.push_back(read_trace(fmt::format("{}.{}.et", prefix, rank), problems));
  return traces;
}

std::vector<std::string> trace_files(const std::string& prefix) {
  std::vector<std::string> files;
  for (const int rank : ranks_of(prefix)) files.push_back(fmt::format("{}.{}.et", prefix, rank));
  return files;
}

}  // namespace kernbench::chakra
