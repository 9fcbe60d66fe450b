#pragma once
#include <string>

#include "tlm/observe/observer.h"
#include "waves/output_file.h"

namespace kernbench {

/// `--oplog`: one JSON object a line for every op that an engine completed, in the order
/// in which the models publish them (mostly that of completion); see docs/oplog.md.
class OpLogWriter final : public Observer {
 public:
  explicit OpLogWriter(const std::string& path) : file_(path) {}  ///< throws OutputError

  TrackId add_track(const std::string&, TrackKind, const std::vector<std::string>&) override { return kNoTrack; }
  void interval(TrackId, Ps, Ps, std::uint64_t) override {}
  void interval(TrackId, Ps, Ps, const std::string&) override {}
  void change(TrackId, Ps, std::uint64_t) override {}
  void op(const OpRecord& record) override;
  bool wants_ops() const override { return true; }

  void finish() { file_.commit(); }
  const std::string& temporary() const { return file_.temporary(); }

 private:
  OutputFile file_;
};

}  // namespace kernbench
