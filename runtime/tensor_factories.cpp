#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime/runtime_impl.h"
#include "tlm/sim/random.h"

namespace kernbench {

namespace {
void check_type(DType dtype, const std::string& tensor) {
  refuse_unknown(fmt::format("tensor '{}'", tensor), "DType", dtype, DType::boolean);
}

std::vector<std::uint8_t> encode(const std::vector<double>& values, DType dtype) {
  std::vector<std::uint8_t> raw(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) store_element(raw.data(), dtype, i, values[i]);
  return raw;
}

bool debug_asked(const RuntimeImpl& runtime) {
  const char* variable = std::getenv("KERNBENCH_DEBUG");
  return runtime.options.debug || (variable != nullptr && std::strcmp(variable, "1") == 0);
}

/// The SIP that a rank's new tensor lives on.
int placement_device(const RuntimeImpl& runtime, int rank, const std::string& tensor) {
  const int device = runtime.program.device(rank);
  if (device < 0 && debug_asked(runtime)) {
    std::fprintf(stderr,
                 "kernbench: warning: tensor '%s' of rank %d goes to sip0, for no current device is set: "
                 "set_device(rank) was probably forgotten\n",
                 tensor.c_str(), rank);
  }
  return std::max(device, 0);
}
}  // namespace

Tensor Context::zeros(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  return runtime_.tensors.place(rank_, placement_device(runtime_, rank_, name), shape, dtype, policy, name, true);
}

Tensor Context::empty(Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  return runtime_.tensors.place(rank_, placement_device(runtime_, rank_, name), shape, dtype, policy, name, false);
}

Tensor Context::from_bytes(const std::vector<std::uint8_t>& data, Shape shape, DType dtype, const DPPolicy& policy,
                           const std::string& name) {
  check_type(dtype, name);
  const std::uint64_t bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(shape.count(), 0)) * size_of(dtype);
  if (data.size() != bytes) {
    throw std::invalid_argument(fmt::format("tensor '{}': {} {} has {} bytes, the data {}", name, shape.str(),
                                            to_string(dtype), bytes, data.size()));
  }
  Tensor tensor = empty(shape, dtype, policy, name);
  runtime_.tensors.write_contents(tensor.state(), data.data());
  return tensor;
}

Tensor Context::from_host(const std::vector<double>& data, Shape shape, DType dtype, const DPPolicy& policy,
                          const std::string& name) {
  check_type(dtype, name);
  return from_bytes(encode(data, dtype), shape, dtype, policy, name);
}

Tensor Context::full(double value, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  Tensor tensor = empty(shape, dtype, policy, name);  // before any data: what the device cannot hold, the host may not
  const std::size_t item = size_of(dtype), bytes = static_cast<std::size_t>(shape.count()) * item;
  if (!runtime_.tensors.takes_contents(tensor.state(), bytes)) return tensor;
  std::vector<std::uint8_t> raw(bytes);
  if (bytes > 0) store_element(raw.data(), dtype, 0, value);
  for (std::size_t done = item; done < bytes; done *= 2)
    std::memcpy(raw.data() + done, raw.data(), std::min(done, bytes - done));
  runtime_.tensors.write_contents(tensor.state(), raw.data());
  return tensor;
}

Tensor Context::randn(std::uint64_t seed, Shape shape, DType dtype, const DPPolicy& policy, const std::string& name) {
  constexpr double kTwoPi = 6.283185307179586;
  Tensor tensor = empty(shape, dtype, policy, name);
  const auto count = static_cast<std::size_t>(shape.count());
  if (!runtime_.tensors.takes_contents(tensor.state(), count * size_of(dtype))) return tensor;
  std::vector<std::uint8_t> raw(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t a = splitmix64(splitmix64(seed) + 2 * i), b = splitmix64(splitmix64(seed) + 2 * i + 1);
    const double u = (static_cast<double>(a >> 11) + 1) * 0x1p-53, v = static_cast<double>(b >> 11) * 0x1p-53;
    store_element(raw.data(), dtype, i, std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * v));  // Box-Muller
  }
  runtime_.tensors.write_contents(tensor.state(), raw.data());
  return tensor;
}

}  // namespace kernbench
