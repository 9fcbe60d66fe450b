#include <gmock/gmock.h>

#include "tests/workloads/chakra_writer.h"
#include "tests/workloads/tool_json.h"

// Files as Chakra's converter of PyTorch traces writes them. Which fields: mlcommons/chakra, commit 02bbd24 of
// src/converter/pytorch_converter.py (docs/chakra.md).
namespace kernbench::chakra {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::uint64_t>;

/// The converter's own way with nodes: all of them have these attributes, and the global metadata no version.
class ConvertedTrace {
 public:
  ConvertedTrace() {
    wire::GlobalMetadata& metadata = writer_.metadata();
    metadata.clear_version();
    const auto add = [&](const char* name) -> wire::Attribute& {
      wire::Attribute& attribute = *metadata.add_attributes();
      attribute.set_name(name);
      return attribute;
    };
    add("schema").set_string_value("1.1.0-chakra.0.0.4");
    add("pid").set_uint64_value(4242);
    add("time").set_string_value("2025-01-15 09:30:00");
    add("start_ts").set_uint64_value(123'456);
    add("finish_ts").set_uint64_value(123'999);
  }
  /// `parent`: the caller, a control dependency; 0: none.
  void add(std::uint64_t id, const std::string& name, int type, std::uint64_t parent, const Ids& after,
           std::uint64_t micros, const std::string& inputs = "[]") {
    writer_.add(id, name, type, after);
    wire::Node& node = writer_.node();
    if (parent != 0) node.add_control_dependencies(parent);
    node.set_duration_micros(micros);
    for (wire::InputsOutputs* each : {node.mutable_inputs(), node.mutable_outputs()}) {
      each->set_values("[]");
      each->set_shapes("[[32, 128], [128]]");
      each->set_types("['Tensor(float)', 'Tensor(float)']");
    }
    node.mutable_inputs()->set_values(inputs);
    writer_.with("rf_id", static_cast<std::int64_t>(id)).with("fw_parent", 0).with("seq_id", -1).with("scope", 7);
    writer_.with("tid", 1).with("fw_tid", 0).with("op_schema", std::string());
  }
  void host(std::uint64_t id, const std::string& name, std::uint64_t parent, const Ids& after, std::uint64_t micros) {
    add(id, name, kCompute, parent, after, micros);
    writer_.with_flag("is_cpu_op", true).with("stream", 0);
  }
  void groups(std::uint64_t id, std::uint64_t parent, const Ids& after, const std::string& json) {
    add(id, "## process_group:init ##", kMetadata, parent, after, 0, "['" + json + "']");
    writer_.with_flag("is_cpu_op", true).with("stream", 0);
  }
  void device(std::uint64_t id, const std::string& name, std::uint64_t parent, const Ids& after, std::uint64_t micros) {
    add(id, name, kCompute, parent, after, micros);
    writer_.with_flag("is_cpu_op", false).with("stream", 7);
  }
  void collective(std::uint64_t id, const std::string& kernel, std::uint64_t parent, const Ids& after, int type,
                  std::int64_t bytes, const std::string& group) {
    add(id, kernel, kCollective, parent, after, 60);
    writer_.with_flag("is_cpu_op", false).with("stream", 20).with("comm_type", type).with("comm_size", bytes);
    writer_.with("pg_name", group);
  }
  const TraceWriter& writer() const { return writer_; }
  TraceWriter& writer() { return writer_; }

 private:
  TraceWriter writer_;
};

/// A step of rank `rank` of four: two pairs for tensors, one group of all for gradients and experts. The thread is
/// called by the process, whose node the converter has removed.
ConvertedTrace step_of(int rank) {
  ConvertedTrace trace;
  trace.host(2, "[pytorch|profiler|execution_trace|thread]", 1, {}, 0);
  trace.groups(
      3, 2, {2},
      R"([{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 4, "ranks": []}, )"
      R"({"pg_name": "1", "pg_desc": "tp", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}, )"
      R"({"pg_name": "2", "pg_desc": "tp", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [2, 3]}])");
  trace.host(4, "aten::addmm", 2, {3}, 5);
  trace.device(5, "ampere_sgemm_128x64_tn", 4, {4}, 40);
  trace.host(6, "c10d::allreduce_", 2, {4}, 2);
  trace.host(7, "record_param_comms", 6, {6}, 1);
  trace.collective(8, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", 7, {7},
                   kAllReduce, 4096, "0");
  trace.host(9, "record_param_comms", 2, {7}, 1);
  trace.collective(10, "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", 9, {9}, kAllGather,
                   2048, rank < 2 ? "1" : "2");
  trace.host(11, "record_param_comms", 2, {9}, 1);
  trace.collective(12, "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", 11, {8, 11}, kAllToAll, 8192,
                   "0");
  trace.host(13, "Optimizer.step#SGD.step", 2, {11}, 0);
  return trace;
}

class ConvertedTraces : public ::testing::Test {
 protected:
  std::vector<std::string> command(const std::vector<ConvertedTrace>& ranks) const {
    std::vector<TraceWriter> writers;
    for (const ConvertedTrace& rank : ranks) writers.push_back(rank.writer());
    write_traces(tool_.file("t"), writers);
    return command_of("t", ranks.size());
  }
  const Tool tool_;
};

TEST_F(ConvertedTraces, OfTodaysConverterRun) {
  const auto rows = rows_of(tool_, command({step_of(0), step_of(1), step_of(2), step_of(3)}));
  std::map<std::string, int> operations;
  std::map<std::uint64_t, double> begin, end;  // ns, of rank 0's nodes
  for (const Json& row : rows) {
    if (row["part"] == "communication") {
      EXPECT_EQ(row["check"], "ok") << row;
      ++operations[row["comm_type"].get<std::string>()];
    }
    if (row["part"] == "node" && row["rank"] == 0) {
      begin[row["id"].get<std::uint64_t>()] = row["begin_ns"];
      end[row["id"].get<std::uint64_t>()] = row["end_ns"];
    }
  }
  EXPECT_EQ(operations, (std::map<std::string, int>{{"all_gather", 2}, {"all_reduce", 1}, {"all_to_all", 1}}));
  EXPECT_EQ(begin[5], 5'000) << "the host has called it";
  EXPECT_EQ(end[5], 45'000);
  EXPECT_EQ(end[7], 8'000) << "the host goes on beside the device";
  EXPECT_GE(begin[8], 8'000);
  EXPECT_GE(begin[12], end[8]) << "collectives of a group, one after the other";
  EXPECT_EQ(end[13], 10'000);
}

/// `inputs`: of the call that the kernel was launched by, which the converter's input gives to the kernel, too.
void add_transfer(ConvertedTrace& trace, std::uint64_t id, int type, const std::string& inputs,
                  const std::string& group) {
  const Ids after{id == 14 ? 13 : id - 1};
  trace.add(id, "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", type, 11, after, 9, inputs);
  trace.writer().with_flag("is_cpu_op", false).with("stream", 24).with("comm_size", 512).with("pg_name", group);
}
/// As PyTorch's record_param_comms says it: tensors, sequence number, group, the other's place in it, what it does.
std::string call(const std::string& group, int place, const std::string& what) {
  return "[[[21, 22, 0, 128, 4, 'cuda:0']], 5, ['" + group + "', 'pp, it\\'s [2'], " + std::to_string(place) + ", '" +
         what + "', [], [], 0, 1, 2]";
}

/// No attribute says whom a send goes to, but the call that it is of: to a place in the group.
TEST_F(ConvertedTraces, TransfersGoWhereTheirCallsSay) {
  std::vector<ConvertedTrace> ranks{step_of(0), step_of(1), step_of(2), step_of(3)};
  add_transfer(ranks[3], 14, kSend, call("2", 0, "send"), "2");
  add_transfer(ranks[2], 14, kReceive, call("2", 1, "recv"), "2");
  add_transfer(ranks[3], 15, kSend, call("0", 1, "send"), "0");
  add_transfer(ranks[1], 14, kReceive, call("0", 3, "recv"), "0");
  std::set<std::pair<int, int>> ways;
  for (const Json& row : rows_of(tool_, command(ranks))) {
    if (row["part"] != "communication" || row["comm_type"] != "send_recv") continue;
    EXPECT_EQ(row["check"], "ok") << row;
    EXPECT_EQ(row["bytes"], 512) << row;
    ways.emplace(row["ranks"][0].get<int>(), row["ranks"][1].get<int>());
  }
  EXPECT_EQ(ways, (std::set<std::pair<int, int>>{{3, 1}, {3, 2}}));
}

TEST_F(ConvertedTraces, TransfersOfWhichNobodySaysToWhomAreRefused) {
  const auto refusal = [&](const std::string& inputs, const std::string& group, int type = kSend) {
    ConvertedTrace sends = step_of(0);
    add_transfer(sends, 14, type, inputs, group);
    const Outcome outcome = tool_(command({sends, step_of(1), step_of(2), step_of(3)}));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  using ::testing::HasSubstr;
  const char* const nobody =
      "has no attribute comm_dst\n  hint: give the other rank: its inputs do not name it either\n";
  for (const std::string& inputs : {std::string("[]"), std::string("[['send"), call("1", 1, "recv"),
                                    std::string("[[], 5, '1', 'send', 'send']"), call("1", -1, "send")}) {
    EXPECT_THAT(refusal(inputs, "1"), HasSubstr(nobody)) << inputs;
  }
  EXPECT_THAT(refusal(call("1", -1, "recvAnySource"), "1", kReceive), HasSubstr("has no attribute comm_src"));
  EXPECT_THAT(refusal(call("1", 2, "send"), "1"), HasSubstr("sends to member 2\n  hint: group '1' has members 0 to 1"));
  EXPECT_THAT(refusal(call("1", 0, "send"), "1"), HasSubstr("sends to rank 0\n  hint: give another rank"));
  EXPECT_THAT(refusal(call("2", 1, "send"), "2"), HasSubstr("is of group '2', which does not hold rank 0"));
  EXPECT_THAT(refusal(call("1", 1, "send"), "1"), HasSubstr("has no receive on rank 1"));
}

}  // namespace
}  // namespace kernbench::chakra
