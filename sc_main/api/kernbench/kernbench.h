#pragma once

/// The public API in one header: what a program of a user, a workload, a kernel or a collective algorithm is written
/// with. Everything else may change from version to version.

#include "kernbench/program.h"

// Workloads and plug-ins.
#include "sc_main/workloads/plugin.h"
#include "sc_main/workloads/workload.h"
