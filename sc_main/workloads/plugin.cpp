#include "sc_main/workloads/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "tlm/config/nearest.h"

namespace kernbench {

namespace {
constexpr const char* kSymbol = "kernbench_workload_plugin";

void check(const Plugin* plugin, const std::string& path) {
  if (plugin == nullptr)
    throw std::invalid_argument(fmt::format("plug-in {}: {}() returned nothing", quote(path), kSymbol));
  const Plugin own;
  if (plugin->abi_version != own.abi_version) {
    throw std::invalid_argument(fmt::format("plug-in {} has ABI version {}, this KernBench has {}; build it again",
                                            quote(path), plugin->abi_version, own.abi_version));
  }
  if (plugin->language != own.language || plugin->systemc != own.systemc) {
    throw std::invalid_argument(fmt::format(
        "plug-in {} was built for C++ {} and SystemC {}, this KernBench for C++ {} and SystemC {}; build it "
        "again with kernbench_add_plugin",
        quote(path), plugin->language, plugin->systemc, own.language, own.systemc));
  }
}
}  // namespace

WorkloadCatalogue::WorkloadCatalogue() : factories_(workloads()) {}

void WorkloadCatalogue::add_plugin(const std::string& path) {
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;  // never the system's search path
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::invalid_argument(fmt::format("plug-in {}: {}", quote(path), dlerror()));
  void* symbol = dlsym(library, kSymbol);
  if (symbol == nullptr)
    throw std::invalid_argument(fmt::format("plug-in {} has no symbol '{}'", quote(path), kSymbol));
  const Plugin* plugin = reinterpret_cast<const Plugin* (*)()>(symbol)();
  check(plugin, path);
  for (std::size_t i = 0; i < plugin->count; ++i) {
    const std::string name = plugin->factories[i]()->name();
    if (make(name) != nullptr) {
      throw std::invalid_argument(fmt::format("plug-in {}: there is a workload {} already", quote(path), quote(name)));
    }
    factories_.push_back(plugin->factories[i]);
  }
}

std::unique_ptr<Workload> WorkloadCatalogue::make(const std::string& name) const {
  for (const WorkloadFactory factory : factories_) {
    auto workload = factory();
    if (workload->name() == name) return workload;
  }
  return nullptr;
}

bool WorkloadCatalogue::is_own(const std::string& name) const {
  const std::vector<WorkloadFactory> own = workloads();
  return std::any_of(own.begin(), own.end(), [&](const WorkloadFactory factory) { return factory()->name() == name; });
}

std::vector<std::string> WorkloadCatalogue::names() const {
  std::vector<std::string> names;
  for (const WorkloadFactory factory : factories_) names.push_back(factory()->name());
  return names;
}

}  // namespace kernbench
