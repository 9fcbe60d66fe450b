#pragma once
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kernbench {

/// The environment refused: a file cannot be opened, written or renamed. The text names the file and the reason.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that appears under its name only when it is whole: it is written under a temporary name beside it and renamed
/// by commit(). Devices and pipes are written directly.
class OutputFile {
 public:
  explicit OutputFile(std::string path);  ///< throws OutputError
  ~OutputFile();                          ///< without commit(): removes the temporary file
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All throw OutputError; a file that has failed once throws the same again, whatever is asked of it.
  void write(std::string_view text);
  void flush();   ///< what is written can be read under temporary()
  void commit();  ///< once, if it succeeds
  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }  ///< empty for devices and pipes

 private:
  [[noreturn]] void fail(const char* doing);

  std::string path_;
  std::string temporary_;      ///< empty: `path_` is written directly
  std::FILE* file_ = nullptr;  ///< null once committed or failed
  std::string failure_;
};

/// Writes a whole file; throws OutputError.
void write_file(const std::string& path, std::string_view text);

}  // namespace kernbench
