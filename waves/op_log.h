#pragma once
#include <memory>
#include <string>

#include "tlm/observe/observer.h"

namespace kernbench {

/// `--oplog`: every op that an engine completed, in the order in which the models publish them (mostly that of
/// completion); see docs/oplog.md.
class OpLog : public OpObserver {
 public:
  /// The file appears under its name. Throws OutputError.
  virtual void finish() = 0;
  virtual const std::string& temporary() const = 0;
};

/// A database if the name ends in .sqlite, .sqlite3 or .db, otherwise one JSON object a line. Throws OutputError.
std::unique_ptr<OpLog> open_op_log(const std::string& path);

}  // namespace kernbench
