#include "waves/op_log.h"

#include <nlohmann/json.hpp>

namespace kernbench {

void OpLogWriter::op(const OpRecord& record) {
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  for (const OpRecord::Param& param : record.params) {
    if (param.text.empty()) {
      params[param.name] = param.number;
    } else {
      params[param.name] = param.text;
    }
  }
  const nlohmann::ordered_json row{{"t_start", record.start}, {"t_end", record.end},    {"component", record.component},
                                   {"op_kind", record.kind},  {"op_name", record.name}, {"op", record.op},
                                   {"kernel", record.kernel}, {"params", params},       {"stage", record.stage}};
  file_.write(row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace kernbench
