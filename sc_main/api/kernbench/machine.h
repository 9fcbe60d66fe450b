#pragma once

/// The whole machine in a SystemC program of your own (docs/api.md, "The machine as a library"): read a topology, lay
/// the machine out, elaborate it, and run programs of ranks on it. Link kernbench::machine.

#include "kernbench/program.h"
#include "models/bridge/initiator_bridge.h"
#include "models/bridge/target_bridge.h"
#include "topology/machine/foreign.h"
#include "topology/machine/machine.h"
#include "topology/plan/plan.h"
#include "topology/spec/resolve.h"
