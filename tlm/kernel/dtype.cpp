#include "tlm/kernel/dtype.h"
