#include "waves/op_database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "waves/op_params.h"
#include "waves/output_file.h"
#include "waves/track_table.h"

namespace kernbench {
namespace {
// "KBOL" in the file's header, and the version of the tables. Nobody else sees the file before it is whole: no journal.
constexpr const char* kSettings =
    "PRAGMA application_id = 1262636876; PRAGMA user_version = 1; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
    "PRAGMA locking_mode = EXCLUSIVE";

constexpr const char* kTables = R"(
CREATE TABLE components (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, sip INTEGER, cube INTEGER, pe INTEGER, unit TEXT NOT NULL) STRICT;
CREATE TABLE ops (
  id INTEGER PRIMARY KEY, t_start INTEGER NOT NULL, t_end INTEGER NOT NULL,
  component INTEGER NOT NULL REFERENCES components (id), op_kind TEXT NOT NULL, op_name TEXT NOT NULL,
  op INTEGER NOT NULL, kernel TEXT NOT NULL, params TEXT NOT NULL, stage TEXT NOT NULL, nbytes INTEGER,
  launch INTEGER, queue INTEGER, message INTEGER, repeat INTEGER NOT NULL) STRICT;
CREATE TABLE kernels (
  id INTEGER PRIMARY KEY, t_start INTEGER NOT NULL, t_end INTEGER NOT NULL,
  component INTEGER NOT NULL REFERENCES components (id), kernel TEXT NOT NULL, launch INTEGER NOT NULL,
  repeat INTEGER NOT NULL) STRICT;
CREATE VIEW op_log AS
  SELECT ops.id, t_start, t_end, components.name AS component, op_kind, op_name, op, kernel, params, stage, repeat
  FROM ops JOIN components ON components.id = ops.component;
)";

/// Made when all rows are there, which is faster than keeping them in order.
constexpr const char* kIndices = R"(
CREATE INDEX ops_by_time ON ops (t_start);
CREATE INDEX ops_by_component ON ops (component, t_start);
CREATE INDEX ops_by_kernel ON ops (kernel, op_kind);
CREATE INDEX ops_by_op ON ops (op);
CREATE INDEX kernels_by_launch ON kernels (launch);
)";

/// k of "pe<k>"; nothing for other names.
std::optional<std::int64_t> number_of(const std::string& part, const std::string& kind) {
  if (part.size() <= kind.size() || part.size() > kind.size() + 9 || part.rfind(kind, 0) != 0) return std::nullopt;
  if (part.find_first_not_of("0123456789", kind.size()) != std::string::npos) return std::nullopt;
  return std::stoll(part.substr(kind.size()));
}

class OpDatabase final : public OpLog {
 public:
  explicit OpDatabase(const std::string& path) : file_(path) {
    if (file_.temporary().empty())
      throw OutputError(fmt::format("cannot write '{}': a database has to be a file", path));
    guarded([this] {
      database_.emplace(file_.temporary(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      database_->exec(kSettings);
      database_->exec(kTables);
      database_->exec("BEGIN");
      add_component_.emplace(*database_, "INSERT INTO components VALUES (?, ?, ?, ?, ?, ?)");
      add_op_.emplace(*database_, "INSERT INTO ops VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      add_kernel_.emplace(*database_, "INSERT INTO kernels VALUES (NULL, ?, ?, ?, ?, ?, ?)");
    });
  }

  void op(const OpRecord& record) override {
    guarded([&] {
      Row row(*add_op_);
      row.add(record.start).add(record.end).add(component(record.component)).add(record.kind).add(record.name);
      row.add(record.op).add(record.kernel).add(json_line(params_json(record))).add(record.stage);
      const auto nbytes = number(record, "nbytes");
      const bool message = record.name == "ipcq_copy";
      row.add_if(nbytes.has_value(), static_cast<std::uint64_t>(nbytes.value_or(0)));
      row.add_if(record.launch != 0, record.launch);
      row.add_if(message, record.queue).add_if(message, record.message).add(std::uint64_t{repeats_});
      add_op_->exec();
    });
  }

  void kernel(const OpRecord& record) override {
    guarded([&] {
      Row row(*add_kernel_);
      row.add(record.start)
          .add(record.end)
          .add(component(record.component))
          .add(record.kernel)
          .add(record.launch)
          .add(std::uint64_t{repeats_});
      add_kernel_->exec();
    });
  }

  void repeats(bool does) override { repeats_ = does; }

  void finish() override {
    guarded([this] {
      database_->exec("COMMIT");
      database_->exec(kIndices);
      close();
    });
    file_.commit();
  }
  const std::string& temporary() const override { return file_.temporary(); }

 private:
  /// Binds the values of a row from left to right.
  class Row {
   public:
    explicit Row(SQLite::Statement& statement) : statement_(statement) { statement_.reset(); }
    Row& add(const std::string& text) {
      statement_.bind(next_++, text);
      return *this;
    }
    Row& add(std::uint64_t value) {
      statement_.bind(next_++, static_cast<std::int64_t>(value));
      return *this;
    }
    Row& add_if(bool there, std::uint64_t value) {
      if (there) return add(value);
      statement_.bind(next_++);
      return *this;
    }

   private:
    SQLite::Statement& statement_;
    int next_ = 1;
  };

  static std::optional<std::int64_t> number(const OpRecord& record, const std::string& name) {
    for (const OpRecord::Param& param : record.params) {
      if (param.name == name && param.text.empty()) return param.number;
    }
    return std::nullopt;
  }

  std::uint64_t component(const std::string& name) {
    const auto [known, is_new] = components_.emplace(name, components_.size() + 1);
    if (!is_new) return known->second;
    std::optional<std::int64_t> sip, cube, pe;
    const std::vector<std::string> parts = components(name);
    for (const std::string& part : parts) {
      if (const auto k = number_of(part, "sip")) sip = k;
      if (const auto k = number_of(part, "cube")) cube = k;
      if (const auto k = number_of(part, "pe")) pe = k;
    }
    Row row(*add_component_);
    row.add(known->second).add(name);
    for (const auto& place : {sip, cube, pe})
      row.add_if(place.has_value(), static_cast<std::uint64_t>(place.value_or(0)));
    row.add(parts.back());
    add_component_->exec();
    return known->second;
  }

  void close() {
    add_component_.reset();
    add_op_.reset();
    add_kernel_.reset();
    database_.reset();
  }

  /// A database that has failed once says the same again, whatever is asked of it.
  template <class Work>
  void guarded(const Work& work) {
    if (!failure_.empty()) throw OutputError(failure_);
    try {
      work();
    } catch (const SQLite::Exception& error) {
      failure_ = fmt::format("cannot write '{}': {}", file_.path(), error.what());
      close();
      throw OutputError(failure_);
    }
  }

  OutputFile file_;
  std::optional<SQLite::Database> database_;
  std::optional<SQLite::Statement> add_component_, add_op_, add_kernel_;
  std::unordered_map<std::string, std::uint64_t> components_;  // ids
  std::string failure_;
  bool repeats_ = false;
};
}  // namespace

std::unique_ptr<OpLog> open_op_database(const std::string& path) { return std::make_unique<OpDatabase>(path); }

}  // namespace kernbench
