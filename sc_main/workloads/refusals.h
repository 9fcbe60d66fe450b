#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace kernbench {

/// One thing that a command line is refused for.
struct Refusal {
  std::string text, hint;  ///< the hint may be empty
  std::string str() const { return hint.empty() ? text : fmt::format("{}\n  hint: {}", text, hint); }
};

/// The command line is wrong: exit code 2.
class Refused : public std::invalid_argument {
 public:
  /// REQUIRES: at least one.
  explicit Refused(std::vector<Refusal> all) : std::invalid_argument(text_of(all)), refusals(std::move(all)) {}
  const std::vector<Refusal> refusals;

 private:
  static std::string text_of(const std::vector<Refusal>& all) {
    std::string text;
    for (const Refusal& refusal : all) text += (text.empty() ? "" : "\n") + refusal.str();
    return text;
  }
};

/// Collects refusals, so that one pass reports them all.
class Refusals {
 public:
  void add(std::string text, std::string hint = {}) { list_.push_back({std::move(text), std::move(hint)}); }
  /// Does `read`, and keeps what it refuses.
  template <class Read>
  void from(const Read& read) {
    try {
      read();
    } catch (const Refused& refused) {
      list_.insert(list_.end(), refused.refusals.begin(), refused.refusals.end());
    } catch (const std::invalid_argument& error) {
      add(error.what());
    }
  }
  void throw_if_any() const {
    if (!list_.empty()) throw Refused(list_);
  }

 private:
  std::vector<Refusal> list_;
};

}  // namespace kernbench
