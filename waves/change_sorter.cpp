#include "waves/change_sorter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <queue>
#include <type_traits>

#include "waves/output_file.h"

namespace kernbench {
namespace {
static_assert(std::is_trivially_copyable_v<Change> && sizeof(Change) == 24);

[[noreturn]] void fail() {
  throw OutputError(fmt::format("cannot use a temporary file to sort waves: {}", std::strerror(errno)));
}

/// Reads one sorted run back, a block at a time; the last run is still in memory.
class Cursor {
 public:
  Cursor(int file, std::size_t first, std::size_t count) : file_(file), next_(first), left_(count) {}
  explicit Cursor(std::vector<Change> block) : block_(std::move(block)) {}

  bool advance() {
    if (++at_ < block_.size()) return true;
    return refill();
  }
  bool refill() {
    at_ = 0;
    if (left_ == 0) return false;
    block_.resize(std::min<std::size_t>(left_, 8192));
    const auto bytes = static_cast<ssize_t>(block_.size() * sizeof(Change));
    if (::pread(file_, block_.data(), block_.size() * sizeof(Change), static_cast<off_t>(next_ * sizeof(Change))) !=
        bytes)
      fail();
    next_ += block_.size();
    left_ -= block_.size();
    return true;
  }
  const Change& front() const { return block_[at_]; }

 private:
  int file_ = -1;
  std::size_t next_ = 0, left_ = 0, at_ = 0;
  std::vector<Change> block_;
};
}  // namespace

void ChangeSorter::push(const Change& change) {
  buffer_.push_back(change);
  if (buffer_.size() < limit_) return;
  if (failed_) fail();
  failed_ = true;
  spill();
  failed_ = false;
}

void ChangeSorter::sort() {
  std::stable_sort(buffer_.begin(), buffer_.end(), [](const Change& a, const Change& b) { return a.before(b); });
}

void ChangeSorter::spill() {
  sort();
  if (!file_) file_.reset(std::tmpfile());
  if (!file_) fail();
  if (std::fwrite(buffer_.data(), sizeof(Change), buffer_.size(), file_.get()) != buffer_.size()) fail();
  runs_.push_back({spilled_, buffer_.size()});
  spilled_ += buffer_.size();
  buffer_.clear();
}

void ChangeSorter::drain(const std::function<void(const Change&)>& take) {
  if (failed_) fail();
  sort();
  std::vector<Cursor> cursors;
  if (file_ && std::fflush(file_.get()) != 0) fail();
  for (const Run& run : runs_) cursors.emplace_back(::fileno(file_.get()), run.first, run.count).refill();
  if (!buffer_.empty()) cursors.emplace_back(std::move(buffer_));

  // Earlier runs arrived earlier: the cursor's number breaks ties.
  const auto later = [&](std::size_t a, std::size_t b) {
    if (cursors[a].front().before(cursors[b].front())) return false;
    if (cursors[b].front().before(cursors[a].front())) return true;
    return a > b;
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> heap(later);
  for (std::size_t i = 0; i < cursors.size(); ++i) heap.push(i);
  while (!heap.empty()) {
    const std::size_t i = heap.top();
    heap.pop();
    take(cursors[i].front());
    if (cursors[i].advance()) heap.push(i);
  }
  buffer_.clear();
  runs_.clear();
  spilled_ = 0;
  file_.reset();
}

}  // namespace kernbench
