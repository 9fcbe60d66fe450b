#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "tlm/config/json_text.h"
#include "waves/output_file.h"

namespace kernbench {

enum class ColorMode { automatic, never };

/// Standard error as the user sees it.
class Terminal {
 public:
  explicit Terminal(ColorMode mode = ColorMode::automatic);
  bool interactive() const { return interactive_; }
  /// "error" in red where colours are wanted.
  std::string error() const { return color_ ? "\033[1;31merror\033[0m" : "error"; }

 private:
  bool interactive_ = false;  ///< a terminal that can redraw a line
  bool color_ = false;
};

/// Writes to standard error, escaped as printable() does. One that is gone or full stops nothing: results do not go
/// there.
void say(const std::string& text);

/// Writes to standard output, escaped as printable() does: what files and their names bring along moves no cursor.
inline void show_text(const std::string& text) { fmt::print("{}", printable(text)); }
/// The same of a format.
template <class... Args>
void show_format(fmt::format_string<Args...> format, Args&&... args) {
  show_text(fmt::format(format, std::forward<Args>(args)...));
}

/// Documents, for programs and browsers, go out as they are.
inline void show_document(const std::string& text) { fmt::print("{}", text); }

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
