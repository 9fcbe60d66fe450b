#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace kernbench {

namespace ccl {
struct Choice;
}

/// What the members of one call agree on.
struct Agreement {
  std::shared_ptr<const ccl::Choice> choice;  ///< of `auto`, of the member that came first
};

/// The calls that some ranks have to make together, each in the same order: the collectives of a process group, or the
/// transfers from one rank to another.
class CallOrder {
 public:
  /// For messages: "process group 0", and what a call is: "collective".
  CallOrder(std::string where, std::string noun, std::vector<int> ranks);

  const std::vector<int>& ranks() const { return ranks_; }
  int size() const { return static_cast<int>(ranks_.size()); }

  struct Place {
    std::size_t number;
    std::shared_ptr<Agreement> agreed;  ///< the same on all ranks
  };
  /// Enters this rank's next call. `call` says what it is, `placed` how its tensors lie: both
  /// must be the same on all ranks. Throws CollectiveMismatch if another rank's call of that number was another one, or
  /// if a rank has ended without making it.
  Place enter(int rank, const std::string& call, const std::string& placed);
  /// The rank has ended: it makes no more calls. Throws CollectiveMismatch if others have made one that it has not.
  void left(int rank);
  /// Another program begins: the ranks live again.
  void restart() { ended_.assign(ranks_.size(), 0); }
  /// Every rank has submitted call `number`.
  bool complete(std::size_t number) const { return number < completed_; }
  std::string name(std::size_t number) const;         ///< "process group 0, collective 3"
  std::vector<int> absent(std::size_t number) const;  ///< ranks that have not made the call
  /// "process group 0, collective 3: not called by rank 1"; empty if the call is complete.
  std::string missing(std::size_t number) const;
  /// Calls that this rank has made.
  std::size_t made_by(int rank) const { return next_[index_of(rank)]; }

 private:
  struct Call {
    std::string text, placed;
    int first = 0;  ///< rank that called it first
    int submitted = 0;
    std::shared_ptr<Agreement> agreed{};
  };
  std::size_t index_of(int rank) const;

  const std::string where_, noun_;
  const std::vector<int> ranks_;
  std::size_t completed_ = 0;        // calls that every rank has made; they are forgotten
  std::deque<Call> calls_;           // from number `completed_` on
  std::vector<std::size_t> next_;    // by place in ranks_
  std::vector<std::uint8_t> ended_;  // likewise
};

}  // namespace kernbench
