#include "runtime/tp/pass.h"

namespace kernbench::tp {

/// The last first: it ends last, so that the rank waits once. The others say whether they failed.
void LaunchesUnderWay::wait(Context& context) {
  std::vector<Handle> launches;
  launches.swap(handles);
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) context.wait(*launch);
}

Pass::Pass(const ParallelState& state) : context_(state.context()), launches_(state.launches_under_way()) {
  ++launches_.passes;
}

Pass::~Pass() {
  if (--launches_.passes == 0) launches_.handles.clear();
}

Handle Pass::add(Handle launch) {
  launches_.handles.push_back(launch);
  return launch;
}

void Pass::add(const std::vector<Handle>& launches) {
  for (const Handle& launch : launches) add(launch);
}

void Pass::wait() { launches_.wait(context_); }

void Pass::end() {
  if (launches_.passes == 1) wait();
}

}  // namespace kernbench::tp
