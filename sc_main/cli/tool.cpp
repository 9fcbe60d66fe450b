#include "sc_main/cli/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <systemc>

#include "sc_main/run/errors.h"
#include "sc_main/run/exit_code.h"
#include "sc_main/run/simulation.h"
#include "sc_main/run/terminal.h"
#include "sc_main/run/version.h"
#include "tlm/config/nearest.h"
#include "tlm/config/problems.h"

namespace kernbench {
namespace {

constexpr const char* kToolUsage = R"(Usage: kernbench COMMAND [ARGUMENTS]

How long will this program take on that machine, where does the time go, and does it compute the right numbers?

Commands:
  run WORKLOAD    run a workload on a modelled machine
  sweep FILE      run a workload at many points of a design space
  search FILE     look for the best points of a design space
  report FILE     draw the results of a sweep or a search, or of a run
  diff A B        what changed between two results
  what-if RESULT  which change of its machine would make a run faster
  topology        show, check or export a machine
  list            workloads, presets, algorithms, dtypes, limits
  validate        hold the model against reference tables and closed forms
  pipeline        check, run or draw a parallelised model of a compiler
  tune            measure collective algorithms on a machine, for 'auto' to choose by
  bench           measure the simulator's own speed
  --version       print the version
  --help          this text; also after every command

Example:
  kernbench run all_reduce -b 1K -e 64K -f 4
)";

struct CommandEntry {
  const char* name;
  int (*run)(const Arguments&);
};
constexpr CommandEntry kCommands[] = {
    {"run", run_command},           {"sweep", sweep_command},       {"search", search_command},
    {"report", report_command},     {"topology", topology_command}, {"list", list_command},
    {"validate", validate_command}, {"bench", bench_command},       {"tune", tune_command},
    {"pipeline", pipeline_command}, {"diff", diff_command},         {"what-if", what_if_command}};

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) throw UsageError("no command given", "try 'kernbench --help'");
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") return std::fputs(kToolUsage, stdout), 0;
  if (name == "--version") return fmt::print("kernbench {}\n", kVersion), 0;

  std::vector<std::string> names;
  for (const CommandEntry& command : kCommands) {
    if (name == command.name) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  if (name.rfind('-', 0) == 0)
    throw UsageError(fmt::format("unknown option '{}'", name), "give a command first: " + join(names));
  throw UsageError(fmt::format("unknown command {}", quote(name)), suggest(name, names, "commands"));
}

/// Of --color: an error may come before any parser knows the option.
ColorMode colors_of(const Arguments& arguments) {
  const Arguments modes = values_of("--color", arguments);
  return !modes.empty() && modes.back() == "never" ? ColorMode::never : ColorMode::automatic;
}

void print_own(const std::string& text, ColorMode colors = ColorMode::automatic) {
  std::fputs(fmt::format("kernbench: {}: ", Terminal(colors).error()).c_str(), stderr);
  say(text + "\n");
}

void print_located(const std::string& text) { say(text + "\n"); }

/// A file that the run opens must not take the number of a standard stream that is closed: it would get its texts.
/// What is put in the place of standard output refuses them.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
}

/// A ConfigError's text locates itself ("file:line:column: error: ..."); everything else gets the tool's name.
void print_error(const std::exception_ptr& error, const std::string& text, ColorMode colors) {
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError&) {
    print_located(text);
  } catch (const Refused& refused) {
    for (const Refusal& refusal : refused.refusals)
      refusal.where.empty() ? print_own(refusal.str(), colors) : print_located(refusal.str());
  } catch (...) {
    print_own(text, colors);
  }
}

/// SystemC's reports go to standard error, never to standard output; errors of ours arrive as exceptions.
void on_report(const sc_core::sc_report& report, const sc_core::sc_actions&) {
  if (report.get_severity() == sc_core::SC_INFO) return;
  if (std::string_view(report.get_msg_type()) == sc_core::SC_ID_RETHROW_UNWINDING_) Simulation::end_by_cause();
  if (report.get_severity() == sc_core::SC_WARNING) {
    say(fmt::format("kernbench: warning: SystemC: {}: {}\n", report.get_msg_type(), report.get_msg()));
    return;
  }
  throw report;
}

/// Address space for what is made between here and main, and a start.   measured: `list` needs 28 MB beside the
/// libraries
constexpr std::size_t kStartBytes = std::size_t{32} << 20;

/// Says it without memory.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kBefore = "kernbench: error: ", kAfter = "\n";
  for (const std::string_view text : {kBefore, std::string_view(kNoMemory), kAfter})
    static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
  std::_Exit(static_cast<int>(ExitCode::environment));
}

[[noreturn]] void terminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (...) {  // said below
  }
  std::string text = "internal error: terminate called";
  if (const std::exception_ptr error = std::current_exception()) classify(error, text);
  print_own(text);
  std::_Exit(static_cast<int>(ExitCode::internal));
}
/// SystemC's memory pool (sc_allocator::allocate) writes to what malloc() returns, a null pointer too.
void on_null(int, siginfo_t* info, void*) {
  if (info->si_code == SEGV_MAPERR && info->si_addr == nullptr) end_without_memory();
  std::signal(SIGSEGV, SIG_DFL);  // it happens again
}
/// Before anything else, initialisers of shared libraries too: they may find no memory, and not all of them say so.
void watch_start() {
  std::set_terminate(terminate);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  void* room = ::mmap(nullptr, kStartBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) end_without_memory();
  ::munmap(room, kStartBytes);
  struct sigaction action {};
  action.sa_sigaction = on_null;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}
#if defined(__SANITIZE_ADDRESS__)
[[gnu::constructor(101)]] void first() { watch_start(); }  // what it instruments needs its memory, made before
#else
[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)() = watch_start;
#endif
}  // namespace

int run_tool(int argc, const char* const* argv) {
  keep_standard_streams();
  sc_core::sc_report_handler::set_handler(on_report);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches its limit is a write error, with a text
  ColorMode colors = ColorMode::automatic;
  int code = 0;
  try {
    const Arguments arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    colors = colors_of(arguments);
    code = dispatch(arguments);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    try {
      std::string text;
      code = static_cast<int>(classify(error, text));
      print_error(error, text, colors);
    } catch (const std::bad_alloc&) {
      end_without_memory();
    }
  }
  // What was lost earlier, before a flush that somebody did on the way, is lost as well.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == 0) {
    print_own(kNoStandardOutput, colors);
    code = static_cast<int>(ExitCode::environment);
  }
  return code;
}

}  // namespace kernbench
