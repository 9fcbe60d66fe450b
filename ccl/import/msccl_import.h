#pragma once
#include <optional>
#include <utility>

#include "ccl/contract/schedule.h"
#include "ccl/import/msccl_file.h"

/// An MSCCL algorithm as a schedule. For msccl.cpp alone.
namespace kernbench::ccl::msccl {

/// Thread blocks that wait for each other; with more slots perhaps not.
class Stuck : public ConfigError {
 public:
  Stuck(const Problems& problems, std::optional<Location> no_room)
      : ConfigError(problems), for_room(std::move(no_room)) {}
  std::optional<Location> for_room;  ///< of the first that waits for room for its message
};

/// The order in which the steps of the file run where a message takes `lambda` steps of time, and queues hold one more.
///
/// Each channel between two gpus has as many places, as it would with a queue of its own. The machine has one queue for
/// all of them: where a message stands in another channel's way, its gpu receives it as soon as it is there, keeps it,
/// and copies or adds it when its thread block gets to it. Throws ConfigError; Stuck where nobody can go on.
Schedule import_file(const File& file, int lambda);

}  // namespace kernbench::ccl::msccl
