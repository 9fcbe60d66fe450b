#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernbench::pe {

inline constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// Whoever waits on a Scoreboard: an op. It is ready once `pending` is zero.
struct Hazard {
  std::uint32_t pending = 0;
  std::uint32_t accesses = kNobody;  ///< the Scoreboard's: the first of its accesses there
  std::uint64_t chain = 0;  ///< not 0: ops of one chain do not wait for each other, their engine keeps their order
};

/// A range of memory that an op touches: `rows` rows of `row_bytes`, `stride` bytes apart.
struct Range {
  enum class Space : std::uint8_t { tcm, va };
  Space space = Space::tcm;
  bool write = false;
  std::uint64_t begin = 0, row_bytes = 0, stride = 0, rows = 1;

  static Range of(Space space, std::uint64_t begin, std::uint64_t bytes, bool write) {
    return {space, write, begin, bytes, bytes, 1};
  }
  /// Contiguous rows, and rows that overlap each other, become one interval.
  static Range strided(Space space, std::uint64_t begin, std::uint64_t row_bytes, std::uint64_t stride,
                       std::uint64_t rows, bool write);

  bool empty() const { return row_bytes == 0 || rows == 0; }
  std::uint64_t end() const { return begin + (rows - 1) * stride + row_bytes; }
};

/// Whether two ranges share a byte. Exact for intervals and for two strided ranges of one stride; ranges of different
/// strides count as the intervals that span them.
bool overlap(const Range& a, const Range& b);

/// Keeps ops whose ranges overlap, at least one of them writing, in program order.
///
/// enter() is called in program order. An op waits for every access of an earlier op that conflicts with one of its
/// own, unless both belong to one chain; release() ends an op's accesses, all or only its reads (a store has read its
/// source long before its last acknowledgement is back). enter() looks at as many places of 16 bytes as accesses were
/// ever in flight at once, which the engines' queues bound; release() at those of the op.
class Scoreboard {
 public:
  /// Adds `op` and sets op.pending. REQUIRES: `op` has no access here.
  void enter(Hazard& op, const Range* ranges, std::size_t count);
  enum class What { reads, all };
  /// Appends to `ready` the ops that waited for nothing else, by access of `op`, then in the order
  /// in which they entered.
  void release(Hazard& op, What what, std::vector<Hazard*>& ready);
  /// An earlier op that `op` waits for, for reports; null: none.
  const Hazard* before(const Hazard& op) const;
  /// Forgets everything: the kernel failed and nothing more will be entered.
  void clear();
  std::size_t size() const { return in_use_; }

 private:
  struct Span {
    std::uint64_t begin, end;
    bool meets(const Span& other) const { return begin < other.end && other.begin < end; }
  };
  static constexpr Span kNowhere{~std::uint64_t{0}, 0};
  struct Access {
    Range range;
    Hazard* owner;
    std::uint32_t next;                             // of its owner; of a free place: the next free one
    std::uint32_t first = kNobody, last = kNobody;  // of those that wait for it, in waiters_
  };
  struct Waiter {
    Hazard* op;
    std::uint32_t next;
  };
  void wait_for_earlier(Hazard& op, const Range& range);
  void wait(Access& access, Hazard& op);
  void add(Hazard& op, const Range& range);
  void remove(std::uint32_t place);

  std::vector<Access> accesses_;
  std::vector<Span> spans_;  // of each access; kNowhere: a free place
  std::uint32_t free_access_ = kNobody;
  std::size_t in_use_ = 0;
  std::vector<Waiter> waiters_;  // a pool of list nodes
  std::vector<std::uint32_t> free_;
};

}  // namespace kernbench::pe
