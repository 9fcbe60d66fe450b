#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>

#include "sc_main/run/show_text.h"
#include "sc_main/run/terminal.h"
#include "waves/output_file.h"

namespace kernbench {

/// Where a command's document goes: "-" is standard output, empty nowhere, all else a file. The file is opened at once,
/// so that hours of work do not end at a folder that does not exist. Throws OutputError.
class DocumentOutput {
 public:
  explicit DocumentOutput(const std::string& path) : shown_(path == "-") {
    if (!path.empty() && !shown_) file_.emplace(path);
  }
  bool wanted() const { return shown_ || file_; }
  /// Once.
  void write(const std::string& text) {
    if (shown_) show_document(text);
    if (!file_) return;
    file_->write(text);
    file_->commit();
  }

 private:
  const bool shown_;
  std::optional<OutputFile> file_;
};

/// What a command has made: "-" shows it, as a document for programs or as a text for people.
inline void show_or_write(const std::string& text, bool document, const std::string& output) {
  if (output != "-") {
    write_file(output, text);
    say(fmt::format("wrote {}\n", output));
  } else {
    document ? show_document(text) : show_text(text);
  }
}

}  // namespace kernbench
