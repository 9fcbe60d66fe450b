#include "sc_main/workloads/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

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

/// Calls into a plug-in; what is thrown there names it.
template <class Call>
auto call_plugin(const std::string& plugin, const char* what, const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const ConfigError&) {
    throw;
  } catch (const std::system_error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    throw PluginError(plugin, what, std::current_exception());
  }
}

/// A plug-in's workload, with what it throws said in its name. Not of its run, which the machine and the ranks throw
/// from, too.
class PluginWorkload final : public Workload {
 public:
  PluginWorkload(std::string plugin, WorkloadFactory factory)
      : plugin_(std::move(plugin)), workload_(call_plugin(plugin_, "its constructor", factory)) {}

  std::string name() const override {
    return call("name()", [this] { return workload_->name(); });
  }
  std::string help() const override {
    return call("help()", [this] { return workload_->help(); });
  }
  std::string example() const override {
    return call("example()", [this] { return workload_->example(); });
  }
  void add_options(boost::program_options::options_description& options) override {
    call("add_options()", [&] { workload_->add_options(options); });
    refuse_names_given_twice(options);
  }
  void check_options() const override {
    call("check_options()", [this] { workload_->check_options(); });
  }
  std::vector<std::string> files() const override {
    return call("files()", [this] { return workload_->files(); });
  }
  std::vector<std::string> outputs() const override {
    return call("outputs()", [this] { return workload_->outputs(); });
  }
  Observer* observer() override {
    return call("observer()", [this] { return workload_->observer(); });
  }
  bool may_replay() const override {
    return call("may_replay()", [this] { return workload_->may_replay(); });
  }
  ReplayLong long_work() const override {
    return call("long_work()", [this] { return workload_->long_work(); });
  }
  Report run(Session& session) override { return workload_->run(session); }

 private:
  template <class Call>
  auto call(const char* what, const Call& call) const -> decltype(call()) {
    return call_plugin(plugin_, what, call);
  }

  void refuse_names_given_twice(const boost::program_options::options_description& options) const {
    std::set<std::string> names;
    for (const auto& option : options.options()) {
      const std::string brief =
          option->canonical_display_name(boost::program_options::command_line_style::allow_dash_for_short);
      for (const std::string& given : {"--" + option->long_name(), brief}) {
        if (given.size() < 2 || given.front() != '-' || given == "--") continue;  // it has no such name
        if (names.insert(given).second) continue;
        throw std::invalid_argument(fmt::format(
            "plug-in {}: workload {} has the option '{}', and there is one of this name already; give it another name",
            quote(plugin_), quote(name()), given));
      }
    }
  }

  const std::string plugin_;
  const std::unique_ptr<Workload> workload_;
};

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return fmt::format("threw: {}", error.what());
  } catch (...) {
    return "threw something that is not a std::exception";
  }
}
}  // namespace

PluginError::PluginError(const std::string& plugin, const std::string& call, const std::exception_ptr& thrown)
    : std::runtime_error(fmt::format("plug-in {}: {} {}", quote(plugin), call, text_of(thrown))) {}

std::unique_ptr<Workload> WorkloadCatalogue::Entry::make() const {
  return plugin.empty() ? factory() : std::make_unique<PluginWorkload>(plugin, factory);
}

WorkloadCatalogue::WorkloadCatalogue() {
  for (const WorkloadFactory factory : workloads()) entries_.push_back({factory, {}});
}

void WorkloadCatalogue::add_plugin(const std::string& path) {
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;  // never the system's search path
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::invalid_argument(fmt::format("plug-in {}: {}", quote(path), dlerror()));
  void* symbol = dlsym(library, kSymbol);
  if (symbol == nullptr)
    throw std::invalid_argument(fmt::format("plug-in {} has no symbol '{}'", quote(path), kSymbol));
  const auto* plugin = call_plugin(path, "kernbench_workload_plugin()", reinterpret_cast<const Plugin* (*)()>(symbol));
  check(plugin, path);
  for (std::size_t i = 0; i < plugin->count; ++i) {
    Entry entry{plugin->factories[i], path};
    const std::string name = entry.make()->name();
    if (make(name) != nullptr) {
      throw std::invalid_argument(fmt::format("plug-in {}: there is a workload {} already", quote(path), quote(name)));
    }
    entries_.push_back(std::move(entry));
  }
}

std::unique_ptr<Workload> WorkloadCatalogue::make(const std::string& name) const {
  for (const Entry& entry : entries_) {
    auto workload = entry.make();
    if (workload->name() == name) return workload;
  }
  return nullptr;
}

std::string WorkloadCatalogue::plugin_of(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.make()->name() == name) return entry.plugin;
  }
  return {};
}

std::vector<std::string> WorkloadCatalogue::names() const {
  std::vector<std::string> names;
  for (const auto& workload : all()) names.push_back(workload->name());
  return names;
}

std::vector<std::unique_ptr<Workload>> WorkloadCatalogue::all() const {
  std::vector<std::unique_ptr<Workload>> all;
  for (const Entry& entry : entries_) all.push_back(entry.make());
  return all;
}

}  // namespace kernbench
