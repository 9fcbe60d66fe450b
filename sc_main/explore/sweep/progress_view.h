#pragma once
#include <string>

#include "sc_main/explore/sweep/evaluator.h"
#include "sc_main/run/terminal.h"

namespace kernbench::sweep {

/// How far a sweep is, on standard error: a bar that is redrawn on a terminal, else a line every ten seconds. It has no
/// thread: the sweep calls it.
class ProgressView {
 public:
  ProgressView(const Terminal& terminal, bool wanted) : bar_(terminal.interactive()), wanted_(wanted) {}
  ~ProgressView() { clear(); }
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void show(const Progress& progress);
  /// Prints a line above the bar.
  void say(const std::string& text);
  /// Takes the bar away, so that results may follow.
  void clear();

 private:
  bool bar_, wanted_, drawn_ = false;
  double shown_s_ = 0;  // when it was last drawn or printed
};

/// "1:02:03", or "12 s" below a minute.
std::string readable_seconds(double seconds);

}  // namespace kernbench::sweep
