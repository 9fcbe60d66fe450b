#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernbench::ccl {

/// When something happens on the first of a node's lanes, and on the last: lanes share links one after the other, and
/// each goes on with its own part of a message.
struct Span {
  double first = 0, last = 0;
};
inline Span latest(const Span& a, const Span& b) { return {std::max(a.first, b.first), std::max(a.last, b.last)}; }
inline Span operator+(const Span& a, double seconds) { return {a.first + seconds, a.last + seconds}; }

/// A queue in a place for as many as it may ever hold.
template <class T>
class Ring {
 public:
  void reserve(std::size_t most) {
    std::size_t places = 1;
    while (places < most) places *= 2;
    values_.resize(places);
  }
  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return size() == 0; }
  const T& front() const { return values_[begin_ & (values_.size() - 1)]; }
  void push(const T& value) { values_[end_++ & (values_.size() - 1)] = value; }
  void pop() { ++begin_; }

 private:
  std::vector<T> values_;  ///< a power of two
  std::size_t begin_ = 0, end_ = 0;
};

/// Something of each step, in the rounds that are under way: those that are done leave their place to others.
template <class T>
class Rounds {
 public:
  void reserve(std::size_t steps, std::size_t rounds) {
    steps_ = steps;
    places_.assign(rounds, kNone);
  }
  /// Of a round in which anything happens for the first time.
  void begin(std::size_t round) {
    if (places_[round] != kNone) return;
    if (idle_.empty()) {
      idle_.push_back(left_.size());
      left_.push_back(0);
      values_.resize(values_.size() + steps_);
    }
    const std::size_t place = places_[round] = idle_.back();
    idle_.pop_back();
    left_[place] = steps_;
    std::fill_n(values_.begin() + static_cast<std::ptrdiff_t>(place * steps_), steps_, T{});
  }
  T& at(std::size_t round, std::size_t step) { return values_[places_[round] * steps_ + step]; }
  /// One of its steps is done. REQUIRES: of none that is done anybody asks once all are.
  void done(std::size_t round) {
    if (--left_[places_[round]] == 0) idle_.push_back(places_[round]);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t steps_ = 0;
  std::vector<std::size_t> places_;  ///< by round
  std::vector<std::size_t> left_;    ///< by place: steps that are not done
  std::vector<std::size_t> idle_;
  std::vector<T> values_;
};

}  // namespace kernbench::ccl
