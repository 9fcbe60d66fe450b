#pragma once

/// The HBM stack on a platform of your own (docs/api.md, "One model alone"). Link kernbench::hbm.

#include "models/hbm/hbm.h"
#include "models/hbm/hbm_config.h"
#include "tlm/machine/address.h"
#include "tlm/sim/dispatcher.h"
