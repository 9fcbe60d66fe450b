#pragma once
#include <cstdio>
#include <memory>
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
  /// `gzip`: what is written gets compressed. Throws OutputError.
  explicit OutputFile(std::string path, bool gzip = false);
  ~OutputFile();  ///< without commit(): removes the temporary file
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All throw OutputError; a file that has failed once throws the same again, whatever is asked of it.
  void write(std::string_view text);
  void flush();   ///< what is written can be read under temporary()
  void commit();  ///< once, if it succeeds
  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }  ///< empty for devices and pipes

 private:
  struct Deflate;
  [[noreturn]] void fail(const char* doing);
  void put(std::string_view bytes);
  void compress(std::string_view text, bool last);

  std::string path_;
  std::string temporary_;      ///< empty: `path_` is written directly
  std::FILE* file_ = nullptr;  ///< null once committed or failed
  std::unique_ptr<Deflate> deflate_;
  std::string failure_;
};

/// The name ends so, in letters of either case. `ending`: in small ones, with its dot.
bool has_ending(const std::string& path, std::string_view ending);
/// The name ends in .gz.
bool is_gzip(const std::string& path);

/// Writes a whole file; throws OutputError.
void write_file(const std::string& path, std::string_view text);

}  // namespace kernbench
