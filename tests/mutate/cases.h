#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/mutate/mutator.h"

namespace kernbench::mutate {

/// All of a file.
std::string read(const std::filesystem::path& file);

/// A call of the tool: its words, and the file that is wrong, for the errors have to name it.
struct Case {
  std::vector<std::string> words;
  std::string file;        ///< as the words name it; empty: options are wrong, those in a result file among them
  bool reference = false;  ///< what is wrong may be what results are held against: exit code 1
  /// What to try once this one has ended well, in both grades; empty: nothing.
  std::vector<std::string> then;
};

/// One kind of input that the tool reads.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual std::string name() const = 0;
  /// How many cases there are in all; 0: as many as one likes.
  virtual std::size_t count() const { return 0; }
  /// Case `number` of this kind, its files in `folder`, an empty folder. The same for the same seed.
  virtual Case make(std::size_t number, const std::filesystem::path& folder, Random& random) = 0;
};

/// All kinds. `source`: the tree. `work`: a folder for inputs that the tool itself writes first (results, stores), with
/// `run`, which ends with an exit code.
std::vector<std::unique_ptr<Kind>> all_kinds(const std::filesystem::path& source, const std::filesystem::path& work,
                                             const std::function<int(const std::vector<std::string>&)>& run);

}  // namespace kernbench::mutate
