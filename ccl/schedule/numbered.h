#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace kernbench::ccl {

/// Values under numbers from 0; the number of one that has been removed is given again.
template <class T>
class Numbered {
 public:
  std::int32_t add(T value) {
    if (free_.empty()) {
      values_.push_back(std::move(value));
      return static_cast<std::int32_t>(values_.size() - 1);
    }
    const std::int32_t number = free_.back();
    free_.pop_back();
    (*this)[number] = std::move(value);
    return number;
  }
  void remove(std::int32_t number) { free_.push_back(number); }
  T& operator[](std::int32_t number) { return values_[static_cast<std::size_t>(number)]; }

 private:
  std::vector<T> values_;
  std::vector<std::int32_t> free_;
};

}  // namespace kernbench::ccl
