// What libtorch's own unpickler makes of files of torch.save: the evidence of docs/decisions/0600-files-of-pytorch.md,
// which says how to build and run it. Nothing of the project is in it. Built with -DKERNBENCH_LIBTORCH_TRIAL=ON alone.
//   libtorch_trial FILE...
#include <torch/csrc/jit/serialization/pickle.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

struct Found {
  std::size_t tensors = 0;
  double sum = 0;  ///< of all elements: every byte was read
};

void collect(const c10::IValue& value, Found& found) {
  if (value.isTensor()) {
    ++found.tensors;
    found.sum += value.toTensor().to(at::kDouble).sum().item<double>();
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) collect(entry.value(), found);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) collect(item, found);
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) collect(item, found);
  }
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const std::string path = words[i];
    std::ifstream stream(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    std::string said;
    const auto begin = std::chrono::steady_clock::now();
    try {
      const c10::IValue value = torch::jit::pickle_load(bytes);
      Found found;
      collect(value, found);
      said = value.tagKind() + " of " + std::to_string(found.tensors) + " tensors, sum " + std::to_string(found.sum);
    } catch (const c10::Error& error) {
      said = error.what_without_backtrace();
    } catch (const std::exception& error) {
      said = error.what();
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s, %.1f ms: %s\n", path.substr(path.rfind('/') + 1).c_str(), took.count(),
                said.substr(0, said.find('\n')).c_str());
    std::fflush(stdout);
  }
  return 0;
}
