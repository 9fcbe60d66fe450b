#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

namespace kernbench {

/// One thing that a command line is refused for.
struct Refusal {
  std::string text, hint;   ///< the hint may be empty
  std::string where = {};   ///< in a file that an option names; empty: in the command line itself
  std::string option = {};  ///< the one to blame, "replay"; empty: the text alone says it
  std::string str() const {
    return fmt::format("{}{}{}{}", where.empty() ? "" : where + ": error: ", text,
                       hint.empty() ? "" : "\n  hint: ", hint);
  }
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

/// Collects refusals, so that one pass reports them all. The same one is kept once.
class Refusals {
 public:
  void add(std::string text, std::string hint = {}) { keep({std::move(text), std::move(hint)}); }
  /// Refuses what is not from `least` to `most`.
  void check_integer(const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      add(fmt::format("{} is {}; give an integer from {} to {}", option, value, least, most));
  }
  /// Refuses what is neither 0 nor 1.
  void check_flag(const char* option, int value) {
    if (value != 0 && value != 1) add(fmt::format("{} is {}; give 0 or 1", option, value));
  }
  /// Refuses what is none of `names`.
  void check_name(const char* option, const std::string& given, const std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), given) == names.end())
      add(fmt::format("{} is {}; {}", option, quote(given), suggest(given, names, "valid values")));
  }
  /// Does `read`, and keeps what it refuses.
  template <class Read>
  void from(const Read& read) {
    try {
      read();
    } catch (const Refused& refused) {
      for (const Refusal& refusal : refused.refusals) keep(refusal);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) keep({problem.text, problem.hint, problem.where.str()});
    } catch (const std::invalid_argument& error) {
      add(error.what());
    }
  }
  bool any() const { return !list_.empty(); }
  void throw_if_any() const {
    if (any()) throw Refused(list_);
  }

 private:
  void keep(Refusal refusal) {
    const auto same = [text = refusal.str()](const Refusal& other) { return other.str() == text; };
    if (std::none_of(list_.begin(), list_.end(), same)) list_.push_back(std::move(refusal));
  }

  std::vector<Refusal> list_;
};

}  // namespace kernbench
