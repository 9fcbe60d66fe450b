#pragma once
#include <vector>

#include "runtime/tp/parallel_state.h"

namespace kernbench::tp {

/// What a rank has launched on one stream and not waited for yet.
struct LaunchesUnderWay {
  std::vector<Handle> handles;  ///< in order
  int passes = 0;               ///< that are being made, one inside the other

  void wait(Context& context);  ///< for all
};

/// A pass over a layer, as its forward makes it. Its launches go to the rank's default stream one behind the other, and
/// none is waited for: the next one is at the machine when one ends. Passes nest, a model's has its layers' inside, and
/// the outermost waits for all at its end. So a forward that "waits" does so unless another one is around it. What does
/// not follow in that stream (a collective, which all ranks come to; a launch on another stream; a read of the host)
/// comes behind wait().
class Pass {
 public:
  /// Throws std::logic_error if `state` is not initialised.
  explicit Pass(const ParallelState& state);
  ~Pass();  ///< after an exception nobody waits for what is under way
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  Handle add(Handle launch);                      ///< a launch of the default stream; returns it
  void add(const std::vector<Handle>& launches);  ///< in order
  void wait();                                    ///< for all that is under way, of the passes around this one, too
  void end();                                     ///< the outermost waits

 private:
  Context& context_;
  LaunchesUnderWay& launches_;
};

}  // namespace kernbench::tp
