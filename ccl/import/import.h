#pragma once
#include <memory>
#include <optional>
#include <string>

#include "ccl/contract/contract.h"

namespace kernbench::ccl {

/// A schedule written for another system, as an algorithm of this one: it serves its own operation and number of ranks,
/// scope sip, on any topology (queues between all pairs that it uses). A custom one serves all_reduce, whose tensors it
/// takes, and puts there what it likes.
struct Imported {
  std::shared_ptr<const Algorithm> algorithm;
  std::shared_ptr<const Schedule> schedule;  ///< proven, or, for another number of ranks, without steps
};

/// `module` is a file to import: its name ends in .xml (MSCCL).
bool is_schedule_file(const std::string& module);
/// Reads and proves it, if it is for so many ranks. Throws ConfigError with the place in the file.
Imported import_schedule(const std::string& file, std::optional<int> ranks = {});

}  // namespace kernbench::ccl
