#include "sc_main/validate/validate.h"

#include <limits>
#include <utility>

namespace kernbench::validate {

Case judge(std::string name, std::string metric, double reference, double measured, double limit) {
  Case result{std::move(name), std::move(metric), reference, measured, 0, limit, true, {}, false};
  if (measured != reference)
    result.error = reference == 0 ? std::numeric_limits<double>::infinity() : measured / reference - 1;
  return result;
}

Case report(std::string name, std::string metric, double reference, double measured, double limit, std::string reason) {
  Case result = judge(std::move(name), std::move(metric), reference, measured, limit);
  result.judged = false;
  result.reason = std::move(reason);
  return result;
}

}  // namespace kernbench::validate
