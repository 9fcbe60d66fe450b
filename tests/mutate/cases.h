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

/// A call of the tool: its words, and what of the input is wrong.
struct Case {
  /// What an error has to say: nothing in particular (options are wrong), the file, or file:line:column.
  enum class Says : std::uint8_t { anything, file, place };
  std::vector<std::string> words;
  Says says = Says::anything;
  std::string file = {};   ///< how its name begins
  bool reference = false;  ///< what is wrong may be what results are held against: exit code 1
  /// The tool is also given `--json`: a run that ends well must say there that it has compared data, and all were
  /// right.
  bool checked = false;
  /// What to run once this one has ended well, in both grades; empty: nothing.
  std::vector<std::string> then = {};
  bool any_size = false;  ///< `then` also on large machines
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
