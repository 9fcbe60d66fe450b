#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sc_main/workloads/chakra/trace.h"
#include "tlm/kernel/dtype.h"

namespace kernbench::chakra {

/// A communication of the whole machine: a collective of a group, or a transfer.
struct Communication {
  CollectiveOp op = CollectiveOp::all_reduce;  ///< send_recv: a transfer from the first member to the second
  std::size_t group = 0;                       ///< place in Program::groups; of a transfer 0
  std::vector<int> ranks;                      ///< members
  std::vector<std::size_t> nodes;              ///< of each member: place in its file
  std::uint64_t bytes = 0;                     ///< comm_size
  std::int64_t elements = 0;                   ///< of a block, as docs/collectives.md counts
  int root = 0;                                ///< member
  bool eager = false;                          ///< a transfer that goes before its receiver is ready

  bool transfer() const { return op == CollectiveOp::send_recv; }
};

/// What the files of all ranks do together, found to be right.
struct Program {
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::vector<RankTrace> traces;
  std::vector<std::vector<int>> groups;       ///< the first: all ranks
  std::vector<Communication> communications;  ///< in an order in which they can run one after the other
  /// By rank and node: what it takes part in; kNone: computing.
  std::vector<std::vector<std::size_t>> communication_of;
  /// By rank and node: places of the nodes that wait for it, and for how many it waits.
  std::vector<std::vector<std::vector<std::size_t>>> followers;
  std::vector<std::vector<std::size_t>> waits;
};

/// What a program has to fit.
struct ProgramOptions {
  int ranks = 1;                                   ///< of the machine
  std::vector<int> dimensions;                     ///< of the machine's ranks, the fastest first: for involved_dim
  std::map<std::string, std::vector<int>> groups;  ///< by name, from a file of communicator groups
  DType dtype = DType::f16;                        ///< sizes are whole numbers of it
  std::uint64_t eager_bytes = 0;                   ///< the largest transfer that waits for no receiver
};

/// Puts the graphs together and proves that they can run: every id exists, nothing waits for itself, all members of a
/// group call the same collectives of the same size in the same order, every send has its receive, and no ranks wait
/// for each other. A send of up to `eager_bytes` waits for its own rank only, and its receive for it. What is not so
/// goes to `problems`; the program is of use if there are none.
Program make_program(std::vector<RankTrace> traces, const ProgramOptions& options, Problems& problems);

}  // namespace kernbench::chakra
