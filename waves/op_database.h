#pragma once
#include <memory>
#include <string>

#include "waves/op_log.h"

namespace kernbench {

/// The op log as a SQLite database; its tables are described in docs/oplog.md. Throws OutputError.
std::unique_ptr<OpLog> open_op_database(const std::string& path);

}  // namespace kernbench
