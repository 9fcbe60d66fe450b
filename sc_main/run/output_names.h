#pragma once
#include <string>

#include "sc_main/run/file_identity.h"
#include "tlm/config/refusals.h"

namespace kernbench {

/// Refuses outputs whose names end as files of another format do: `--trace t.db` would be JSON. By option, as in
/// --json; `--output` is of `report`. A name that ends in anything else, or in nothing, says no format.
void refuse_foreign_endings(const NamedFiles& outputs, Refusals& refusals);

/// The same for a command that has nothing else to refuse. Throws Refused.
void refuse_foreign_endings(const NamedFiles& outputs);

}  // namespace kernbench
