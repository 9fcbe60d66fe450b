#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench {

/// One end of an interval, or a change of level. At one instant ends come first, so that an interval that begins where
/// another ends wins; otherwise the order of arrival holds.
struct Change {
  enum class Kind : std::uint32_t { end, begin, set };
  Ps time = 0;
  std::uint64_t value = 0;
  std::uint32_t track = 0;
  Kind kind = Kind::set;
  bool before(const Change& other) const {
    return time != other.time ? time < other.time : (kind == Kind::end) > (other.kind == Kind::end);
  }
};

/// Sorts changes that arrive in any order, in bounded memory: full buffers are sorted and spilled to an unnamed
/// temporary file, and drain() merges them. Stable.
class ChangeSorter {
 public:
  static constexpr std::size_t kDefaultBuffer = std::size_t{4} << 20;  ///< changes held in memory: 96 MiB
  explicit ChangeSorter(std::size_t buffer = kDefaultBuffer) : limit_(buffer) {}

  void push(const Change& change);  ///< throws OutputError if the temporary file cannot be written
  /// Hands over every change in order and forgets them.
  void drain(const std::function<void(const Change&)>& take);

 private:
  struct Run {
    std::size_t first, count;  ///< in changes, within the temporary file
  };
  void sort();
  void spill();

  std::size_t limit_;
  std::vector<Change> buffer_;
  std::vector<Run> runs_;
  std::size_t spilled_ = 0;
  bool failed_ = false;  ///< a spill went wrong: the order cannot be had any more
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace kernbench
