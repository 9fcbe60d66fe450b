#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kernbench::mutate {

/// Random numbers that are the same on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(engine_() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

/// `text` with one to four faults: bytes changed, cut, doubled or put in; words replaced by extreme, foreign or
/// misspelt ones; lines lost, doubled, moved or indented; nesting of 10 to 100,000 levels. `words`: of other inputs of
/// the kind. `binary`: bytes only.
std::string mutated(std::string text, const std::vector<std::string>& words, bool binary, Random& random);

/// The words of a text: runs of letters, digits and what names and numbers have.
std::vector<std::string> words_of(const std::string& text);

/// Values that readers have been tripped by: numbers at the ends of types, not numbers, empty and long texts, escapes,
/// bytes that are no UTF-8.
const std::vector<std::string>& extremes();

}  // namespace kernbench::mutate
