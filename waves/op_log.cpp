#include "waves/op_log.h"

#include <nlohmann/json.hpp>

#include "waves/op_database.h"
#include "waves/op_params.h"
#include "waves/output_file.h"

namespace kernbench {

nlohmann::ordered_json params_json(const OpRecord& record) {
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  for (const OpRecord::Param& param : record.params) {
    if (param.text.empty()) {
      params[param.name] = param.number;
    } else {
      params[param.name] = param.text;
    }
  }
  return params;
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

namespace {
class JsonLines final : public OpLog {
 public:
  explicit JsonLines(const std::string& path) : file_(path, is_gzip(path)) {}

  void op(const OpRecord& record) override {
    nlohmann::ordered_json row{
        {"t_start", record.start}, {"t_end", record.end},           {"component", record.component},
        {"op_kind", record.kind},  {"op_name", record.name},        {"op", record.op},
        {"kernel", record.kernel}, {"params", params_json(record)}, {"stage", record.stage}};
    if (repeats_) row["repeat"] = true;
    file_.write(json_line(row) + "\n");
  }
  void repeats(bool does) override { repeats_ = does; }
  void finish() override { file_.commit(); }
  const std::string& temporary() const override { return file_.temporary(); }

 private:
  OutputFile file_;
  bool repeats_ = false;
};

bool is_database(const std::string& path) {
  return has_ending(path, ".sqlite") || has_ending(path, ".sqlite3") || has_ending(path, ".db");
}
}  // namespace

std::unique_ptr<OpLog> open_op_log(const std::string& path) {
  if (is_database(path)) return open_op_database(path);
  return std::make_unique<JsonLines>(path);
}

}  // namespace kernbench
