#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <systemc>
#include <vector>

#include "sc_main/workloads/workload.h"

namespace kernbench {

/// Raised with every change of the public headers that an already built plug-in would not survive.
inline constexpr std::uint32_t kPluginAbi = 17;

/// What a shared library with workloads hands out: its only exported symbol, kernbench_workload_plugin, returns one.
struct Plugin {
  std::uint32_t abi_version = kPluginAbi;  ///< first, so that a plug-in of another version can be recognised
  long language = __cplusplus;             ///< standard that it was compiled for
  int systemc = SC_VERSION_MAJOR * 10'000 + SC_VERSION_MINOR * 100 + SC_VERSION_PATCH;  ///< version it was built for
  const WorkloadFactory* factories = nullptr;                                           ///< one per workload
  std::size_t count = 0;                                                                ///< of factories
};

/// The descriptor of a plug-in with these workloads, each a class that can be made without arguments.
template <class... W>
const Plugin* plugin_of() {
  static const WorkloadFactory factories[] = {+[]() -> std::unique_ptr<Workload> { return std::make_unique<W>(); }...};
  static const Plugin plugin = [] {
    Plugin made;
    made.factories = factories;
    made.count = sizeof...(W);
    return made;
  }();
  return &plugin;
}

/// What a plug-in's workload threw outside of its ranks: its program has failed.
class PluginError : public std::runtime_error {
 public:
  /// `call`: into the plug-in, as in "name()". The text names both, and what was thrown.
  PluginError(const std::string& plugin, const std::string& call, const std::exception_ptr& thrown);
};

/// The workloads that `kernbench run` knows: those of the tool and those of plug-ins. A plug-in stays open for the life
/// of the process, since kernels of it may outlive its workload.
///
/// Whatever a workload of a plug-in throws from what it is asked before its run comes as PluginError, but for what it
/// refuses (std::invalid_argument, ConfigError) and what this computer lacks (std::system_error, std::bad_alloc).
/// Its add_options() refuses names that the description has already: those of every run stand there first.
class WorkloadCatalogue {
 public:
  WorkloadCatalogue();  ///< those of the tool

  /// Opens a shared library and adds its workloads. Throws std::invalid_argument: a file that cannot be opened, without
  /// the symbol, of another ABI version, or with a name that is there already; PluginError.
  void add_plugin(const std::string& path);

  std::unique_ptr<Workload> make(const std::string& name) const;  ///< nothing if there is none of that name
  std::string plugin_of(const std::string& name) const;           ///< that it came with; empty: it is the tool's
  std::vector<std::string> names() const;                         ///< in the order in which they were added
  std::vector<std::unique_ptr<Workload>> all() const;             ///< likewise

 private:
  struct Entry {
    WorkloadFactory factory;
    std::string plugin;  ///< empty: the tool's own
    std::unique_ptr<Workload> make() const;
  };
  std::vector<Entry> entries_;
};

}  // namespace kernbench

/// Makes a shared library a plug-in: `KERNBENCH_WORKLOAD_PLUGIN(First, Second)` at file scope, once per library.
#define KERNBENCH_WORKLOAD_PLUGIN(...)                                                                       \
  extern "C" __attribute__((visibility("default"))) const ::kernbench::Plugin* kernbench_workload_plugin() { \
    return ::kernbench::plugin_of<__VA_ARGS__>();                                                            \
  }
