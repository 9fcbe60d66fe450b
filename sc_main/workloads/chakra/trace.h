#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tlm/config/problems.h"
#include "tlm/kernel/call.h"

/// MLCommons Chakra execution traces: one file per rank, a graph of computing and communication.
namespace kernbench::chakra {

enum class NodeKind : std::uint8_t { compute, send, receive, collective, metadata };
/// As in the format: "COMP_NODE".
const char* to_string(NodeKind kind);

/// A node of a rank's graph. Sizes in bytes.
struct Node {
  std::uint64_t id = 0;
  std::string name;
  NodeKind kind = NodeKind::compute;
  std::vector<std::uint64_t> after;  ///< ids that it depends on: data, and control where the file has the node

  // Computing.
  bool on_host = false;                     ///< is_cpu_op
  std::optional<std::uint64_t> operations;  ///< num_ops, floating-point
  std::uint64_t tensor_bytes = 0;           ///< tensor_size: to and from memory
  std::uint64_t recorded_us = 0;            ///< how long it took where it was recorded

  // Communication.
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint64_t bytes = 0;           ///< comm_size: what the rank puts in
  std::int64_t peer = -1;            ///< of a send or receive: a rank of the machine, or
  bool peer_is_member = false;       ///< a place in its group, as PyTorch counts
  std::uint64_t tag = 0;             ///< likewise
  std::string group;                 ///< pg_name; empty: all ranks
  std::vector<bool> dimensions;      ///< involved_dim; empty: all
  std::optional<std::int64_t> root;  ///< root_rank: a rank of the machine
};

/// A rank's file.
struct RankTrace {
  std::string file, version;
  std::vector<Node> nodes;                         ///< in order of the file
  std::vector<std::uint64_t> refused;              ///< ids of nodes that cannot be used
  std::map<std::string, std::vector<int>> groups;  ///< that its metadata name; no ranks: all

  Location where() const { return {file, 0, 0}; }
};

/// "node 7 'fwd'": for messages.
std::string in_words(const Node& node);

/// Files PREFIX.<rank>.et that there are, by rank.
std::vector<std::string> trace_files(const std::string& prefix);

/// PREFIX.0.et, PREFIX.1.et and so on. What is wrong goes to `problems`, file by file. Throws ConfigError if there are
/// no files, or not one for each rank.
std::vector<RankTrace> read_traces(const std::string& prefix, Problems& problems);

/// All bytes of a file, up to 1 GiB. Throws ConfigError.
std::string contents_of(const std::string& file);

}  // namespace kernbench::chakra
