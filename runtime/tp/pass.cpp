#include "runtime/tp/pass.h"

#include <utility>

namespace kernbench::tp {

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

/// The last first: it ends last, so that the rank waits once. The others say whether they failed.
void Pass::wait() {
  std::vector<Handle> launches;
  launches.swap(launches_.handles);
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) context_.wait(*launch);
}

void Pass::end() {
  if (launches_.passes == 1) wait();
}

}  // namespace kernbench::tp
