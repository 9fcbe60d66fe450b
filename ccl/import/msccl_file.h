#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/config/problems.h"
#include "tlm/kernel/call.h"

/// An MSCCL algorithm as it stands in its file. For msccl.cpp alone.
namespace kernbench::ccl::msccl {

constexpr std::size_t kMostProblems = 100;  ///< nobody reads more at once

enum class Action : std::uint8_t {
  send,
  receive,
  receive_copy_send,
  receive_reduce_send,
  receive_reduce_copy,
  receive_reduce_copy_send,
  copy,
  reduce,
  nothing
};
enum class Buffer : std::uint8_t { input, output, scratch };

struct Place {
  Buffer buffer = Buffer::input;
  std::int32_t chunk = 0;
};

struct FileStep {
  Action action = Action::nothing;
  Place from, to;
  std::int32_t count = 1;
  std::int32_t after_block = -1, after_step = -1;  ///< waits for that step of that thread block of its gpu
  Location where;
};

struct ThreadBlock {
  std::int32_t id = 0, send = -1, receive = -1, channel = 0;
  std::vector<FileStep> steps;
  Location where;
};

struct Gpu {
  std::int32_t id = 0;
  std::vector<ThreadBlock> blocks;
  Location where;
};

struct File {
  std::string name;  ///< of the algorithm
  CollectiveOp op = CollectiveOp::all_reduce;
  bool custom = false;  ///< the file does not say what its outputs are: of `op` it has the shape alone
  bool in_place = true;
  std::int32_t chunks = 1;  ///< of the whole operation
  std::vector<Gpu> gpus;    ///< by id
  std::vector<std::string> warnings{};
  Location where;
};

/// Throws ConfigError.
File parse(const std::string& text, const std::string& name);

}  // namespace kernbench::ccl::msccl
