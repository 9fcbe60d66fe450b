#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "ccl/builtin_algorithms.inc"  // generated: kBuiltins, from the list in ccl/CMakeLists.txt
#include "ccl/import/entry.h"
#include "tlm/config/nearest.h"
#include "tlm/kernel/operations.h"

namespace kernbench::ccl {
namespace {

constexpr const char* kSymbol = "kernbench_ccl_algorithm";

/// Throws Error if a declared parameter is none that ccl.yaml could set.
void check_parameters(const Algorithm& algorithm, const std::string& module) {
  std::set<std::string> names(kEntryKeys.begin(), kEntryKeys.end());
  for (std::uint32_t i = 0; i < algorithm.parameter_count; ++i) {
    const Parameter& p = algorithm.parameters[i];
    const auto wrong = [&](const std::string& what) {
      throw Error(fmt::format("algorithm module '{}': parameter {}", module, what));
    };
    if (p.name == nullptr || *p.name == '\0') wrong(fmt::format("{} has no name", i));
    if (!names.insert(p.name).second) wrong(fmt::format("'{}': there is a key of this name already", p.name));
    if (p.least < 0 || p.preset < p.least || p.preset > p.most) {
      wrong(fmt::format("'{}' has preset {} and range {} to {}; give 0 <= least <= preset <= most", p.name, p.preset,
                        p.least, p.most));
    }
  }
}

/// Throws Error if it says that it serves what there is not.
void check_served(const Algorithm& algorithm, const std::string& module) {
  const auto check_bits = [&](const char* member, std::uint32_t bits, std::uint32_t all) {
    if ((bits & ~all) == 0) return;
    throw Error(fmt::format("algorithm module '{}': descriptor's '{}' is {:#x}; bits of {:#x} have a meaning", module,
                            member, bits, all));
  };
  check_bits("operations", algorithm.operations, (1U << kCollectiveOps) - 1);
  check_bits("scopes", algorithm.scopes, kAllScopes);
  check_bits("topologies", algorithm.topologies, kAllTopologies);
  check_bits("directions", algorithm.directions, kAllDirections);
  if (!algorithm.pe_to_pe) return;
  if (algorithm.operations == 0 || (algorithm.operations & ~kPeToPeOperations) != 0) {
    throw Error(
        fmt::format("algorithm module '{}': what goes PE to PE serves all_gather, gather, scatter, "
                    "reduce_scatter and all_to_all; name some of these in 'operations'",
                    module));
  }
  if (algorithm.plan != nullptr)
    throw Error(fmt::format("algorithm module '{}': 'pe_to_pe' stands in place of 'plan'", module));
}

/// Throws Error if a descriptor is not one that this build can use.
void check_descriptor(const Algorithm* algorithm, const std::string& module) {
  if (algorithm == nullptr)
    throw Error(fmt::format("algorithm module '{}': {}() returned no descriptor", module, kSymbol));
  if (algorithm->abi_version != kAbiVersion) {
    throw Error(fmt::format("algorithm module '{}' has ABI version {}, this KernBench has {}; build it again", module,
                            algorithm->abi_version, kAbiVersion));
  }
  const auto missing = [&](const char* symbol) {
    throw Error(fmt::format("algorithm module '{}': descriptor lacks '{}'", module, symbol));
  };
  if (algorithm->name == nullptr || *algorithm->name == '\0') missing("name");
  if (algorithm->topology_kinds == nullptr) missing("topology_kinds");
  if (algorithm->plan != nullptr && algorithm->links == nullptr) missing("links");
  if (algorithm->kernel_args.call == nullptr) missing("kernel_args");
  if (algorithm->kernel.call == nullptr) missing("kernel");
  if (std::memcmp(algorithm->topology_kinds, &kTopologyKinds, sizeof(TopologyKinds)) != 0) {
    throw Error(fmt::format("algorithm module '{}': its topology kinds are numbered differently", module));
  }
  if (algorithm->kind() == AlgorithmKind::kernel && (algorithm->scopes & bit(Scope::pe)) != 0) {
    throw Error(fmt::format(
        "algorithm module '{}': a kernel serves scopes sip and cube; for scope pe it has to be a schedule", module));
  }
  check_served(*algorithm, module);
  if (algorithm->parameter_count > 0 && algorithm->parameters == nullptr) missing("parameters");
  check_parameters(*algorithm, module);
}

/// A module's descriptor with what it leaves out, and the library that it is of.
struct Loaded {
  std::shared_ptr<void> library;
  Algorithm algorithm;
};

std::shared_ptr<const Algorithm> completed(std::shared_ptr<void> library, const Algorithm& algorithm) {
  auto loaded = std::make_shared<Loaded>(Loaded{std::move(library), algorithm});
  Algorithm& a = loaded->algorithm;
  if (a.operations == 0) a.operations = bit(CollectiveOp::all_reduce);
  if (a.scopes == 0) a.scopes = bit(Scope::sip);
  if (a.topologies == 0) a.topologies = kAllTopologies;
  if (a.directions == 0 && a.kind() == AlgorithmKind::kernel) a.directions = kCubeGrid | kGlobalGrid;
  return {loaded, &a};
}

/// The error of dlopen, which begins with the path.
std::string loader_error(const std::string& file) {
  const std::string text = dlerror();
  return text.rfind(file + ": ", 0) == 0 ? text.substr(file.size() + 2) : text;
}

/// What a library's one function returns.
const Algorithm* ask(void* symbol, const std::string& path) {
  try {
    return reinterpret_cast<const Algorithm* (*)()>(symbol)();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(fmt::format("algorithm module '{}': {}() throws: {}", path, kSymbol, error.what()));
  } catch (...) {
    throw Error(
        fmt::format("algorithm module '{}': {}() throws something that is not a std::exception", path, kSymbol));
  }
}

std::shared_ptr<const Algorithm> load_shared(const std::string& path) {
  const auto close = [](void* handle) {
    if (handle != nullptr) dlclose(handle);
  };
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;  // never the system's search path
  std::shared_ptr<void> library(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), close);
  if (!library) throw Error(fmt::format("algorithm module '{}': {}", path, loader_error(file)));
  void* symbol = dlsym(library.get(), kSymbol);
  if (symbol == nullptr) throw Error(fmt::format("algorithm module '{}' has no symbol '{}'", path, kSymbol));
  const Algorithm* const algorithm = ask(symbol, path);
  check_descriptor(algorithm, path);
  return completed(std::move(library), *algorithm);
}

}  // namespace

std::vector<std::string> builtin_algorithms() {
  std::vector<std::string> names;
  for (const auto& [name, descriptor] : kBuiltins) names.emplace_back(name);
  return names;
}

std::shared_ptr<const Algorithm> load_module(const std::string& module) {
  if (!is_builtin(module)) return load_shared(module);
  const std::string name = module.substr(std::strlen(kBuiltinPrefix));
  for (const auto& [known, descriptor] : kBuiltins) {
    if (name != known) continue;
    check_descriptor(descriptor(), module);
    return completed(nullptr, *descriptor());
  }
  const std::string near = nearest(name, builtin_algorithms());
  throw Error(fmt::format(
      "no built-in algorithm '{}'; {}", module,
      near.empty() ? fmt::format("give {} and one of: {}", kBuiltinPrefix, kernbench::join(builtin_algorithms()))
                   : fmt::format("did you mean '{}{}'?", kBuiltinPrefix, near)));
}

}  // namespace kernbench::ccl
