// A seeded mutator over every kind of input that the tool reads: README.md.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/program_options.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <systemc>

#include "sc_main/cli/tool.h"
#include "sc_main/process/pool.h"
#include "tests/mutate/cases.h"

namespace kernbench::mutate {
namespace {
namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr int kPollMs = 50;
constexpr double kMostSeconds = 60;       // of CPU time: what else a computer does is no fault of the tool's
constexpr double kMostWallSeconds = 600;  // of what computes nothing and does not end
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;

/// Runs the tool in this process, a fork made for it, with its output in `folder`, on a computer of kMostBytes. Does
/// not return where the tool ends the process.
std::string run_here(const std::vector<std::string>& words, const fs::path& folder) {
  for (const auto& [name, descriptor] : {std::pair("stdout", STDOUT_FILENO), std::pair("stderr", STDERR_FILENO)}) {
    const int file = ::open((folder / name).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(file, descriptor);
    ::close(file);
  }
  if (::chdir(folder.c_str()) != 0) std::_Exit(125);
#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes
  const rlimit memory{kMostBytes, kMostBytes};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  std::vector<std::string> copies = words;
  copies.insert(copies.begin(), "kernbench");
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int code = sc_core::sc_elab_and_sim(static_cast<int>(copies.size()), argv.data());
  std::fflush(nullptr);
  std::_Exit(code);
}

/// The first byte that a terminal or a reader of UTF-8 would stumble over.
std::optional<std::size_t> raw_byte(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 && c != '\n' && c != '\t') return at;
    if (c == 0x7f) return at;
    if (c == 0xc2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0) return at;  // as ESC [
    const std::size_t more = c < 0x80                ? 0
                             : c >= 0xc2 && c < 0xe0 ? 1
                             : c >= 0xe0 && c < 0xf0 ? 2
                             : c >= 0xf0 && c < 0xf5 ? 3
                                                     : 9;
    if (more == 9 || at + more >= text.size()) return more == 0 ? std::nullopt : std::optional(at);
    for (std::size_t i = 1; i <= more; ++i) {
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return at;
    }
    at += more + 1;
  }
  return std::nullopt;
}

/// Exit codes of docs/cli.md that bad input may lead to. 1 would be wrong numbers, 70 a fault of the tool's own.
bool documented(int code) { return code == 0 || (code >= 2 && code <= 8); }

/// What a run on an accepted machine may end with: numbers that are right, or a reason why it cannot be. A hang or a
/// program that failed is none.
bool ends_well(int code) { return code == 0 || code == 2 || code == 5 || code == 7; }

const char* const kResult = "result.json";

/// Errors of a file as a whole, which has no line for them.
constexpr const char* kOfAFile[] = {
    "missing key '",   "the file is empty",       "this layout is stale",
    "is larger than ", "no line of column names", " does not serve ",  // a right file, of another operation
};

/// "FILE:3:10: error: " stands before one of the errors, or it is of a file as a whole. Lines may be of any length, so
/// no regular expression.
bool has_place(const std::string& text) {
  for (const char* whole : kOfAFile) {
    if (text.find(whole) != std::string::npos) return true;
  }
  const auto number_before = [&](std::size_t& at) {
    const std::size_t end = at;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') --at;
    return at < end && at > 0 && text[--at] == ':';
  };
  for (std::size_t found = text.find(": error: "); found != std::string::npos;
       found = text.find(": error: ", found + 1)) {
    std::size_t at = found;
    if (number_before(at) && number_before(at)) return true;
  }
  return false;
}

/// Why the results say of no data that they were right, or of some that they were not; empty: neither.
std::string unchecked(const fs::path& file) {
  const std::string text = fs::exists(file) ? read(file) : "";
  if (text.find(R"("check": "wrong")") != std::string::npos) return "wrong numbers, exit code 0";
  if (text.find(R"("check": "ok")") == std::string::npos) return "no data were compared";
  return {};
}

/// Why the ending is not as the documents promise; empty: it is.
std::string fault_of(const Case& c, const process::Ending& ending, const fs::path& folder) {
  if (ending.stopped == process::Ending::Stopped::time) return fmt::format("takes more than {} s", kMostWallSeconds);
  if (ending.cpu_s > kMostSeconds) return fmt::format("takes more than {} s of CPU time", kMostSeconds);
  if (ending.stopped == process::Ending::Stopped::memory)
    return fmt::format("takes more than {} GiB", kMostBytes >> 30);
  if (WIFSIGNALED(ending.status)) return fmt::format("signal {}", WTERMSIG(ending.status));
  const int code = WEXITSTATUS(ending.status);
  if (!documented(code) && !(code == 1 && c.reference)) return fmt::format("exit code {}", code);
  if (c.checked && !ends_well(code)) return fmt::format("exit code {} of an accepted machine", code);
  const std::string out = read(folder / "stdout"), err = read(folder / "stderr");
  for (const std::string* text : {&out, &err}) {
    if (const auto at = raw_byte(*text))
      return fmt::format("byte {:#04x} in its text", static_cast<unsigned char>((*text)[*at]));
  }
  if (code == 0) return c.checked ? unchecked(folder / kResult) : "";
  if (err.empty() && code != 1) return fmt::format("exit code {} without a word", code);
  if (code != 2 || c.says == Case::Says::anything) return {};
  if (err.find(c.file) == std::string::npos && err.find("/etc/hostname:1:1: ") == std::string::npos)
    return "its error does not name the file";  // that one stands among the words of faults: a file named by a file
  if (c.says == Case::Says::place && !has_place(err)) return "its error has no file:line:column";
  return {};
}

struct Options {
  std::size_t cases = 5000;
  std::uint64_t seed = 1;
  std::string kind, keep;
  unsigned jobs = 2;
  long only = -1;
};

/// A folder that goes with the last case that uses it.
struct Folder {
  explicit Folder(fs::path where) : path(std::move(where)) { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

class Run {
 public:
  Run(Options options, fs::path work)
      : options_(std::move(options)), work_(std::move(work)), pool_(options_.jobs, {kMostWallSeconds, kMostBytes}) {}

  /// How many cases did not end as they should.
  std::size_t operator()(const std::vector<std::unique_ptr<Kind>>& kinds) {
    std::vector<Kind*> chosen;
    for (const auto& kind : kinds) {
      if (options_.kind.empty() || kind->name() == options_.kind) chosen.push_back(kind.get());
    }
    if (chosen.empty()) throw std::invalid_argument("no such kind: " + options_.kind);
    for (Kind* kind : chosen) {
      const std::size_t cases = share(chosen, *kind);
      for (std::size_t index = 0; index < cases; ++index) {
        if (options_.only >= 0 && index != static_cast<std::size_t>(options_.only)) continue;
        start(*kind, place_of(kinds, *kind), index);
      }
    }
    while (pool_.running() > 0) wait();
    Tally all;
    for (const auto& [name, tally] : tally_) {
      print(name, tally);
      all.cases += tally.cases, all.accepted += tally.accepted, all.faults += tally.faults, all.cpu_s += tally.cpu_s;
    }
    print("all", all);
    return faults_;
  }

 private:
  /// Of --cases: a kind that has an end has all its cases, unless that is more than a half of what is asked for; the
  /// others share the rest.
  std::size_t share(const std::vector<Kind*>& kinds, const Kind& kind) const {
    std::size_t ended = 0, endless = 0;
    for (const Kind* one : kinds) (one->count() > 0 ? ended : endless) += one->count() > 0 ? one->count() : 1;
    const bool whole = endless == 0 || 2 * ended <= options_.cases;
    if (kind.count() > 0) return whole ? kind.count() : std::min(kind.count(), options_.cases / kinds.size());
    return whole ? (options_.cases - ended + endless - 1) / endless : options_.cases / kinds.size() + 1;
  }
  static std::size_t place_of(const std::vector<std::unique_ptr<Kind>>& kinds, const Kind& kind) {
    std::size_t place = 0;
    while (kinds[place].get() != &kind) ++place;
    return place;
  }
  struct Under {
    std::string kind;
    std::size_t index;
    Case what;
    std::shared_ptr<Folder> files;  ///< of the case, and of what follows it
    fs::path folder;                ///< where its output goes
  };
  struct Tally {
    std::size_t cases = 0, accepted = 0, faults = 0;
    double cpu_s = 0, longest_s = 0;
    std::size_t longest = 0;  ///< a case
  };
  static void print(const std::string& name, const Tally& tally) {
    fmt::print("{:14} {:6} cases, {:6} accepted, {:3} faults, {:6.1f} s CPU, longest {:.1f} s (case {})\n", name,
               tally.cases, tally.accepted, tally.faults, tally.cpu_s, tally.longest_s, tally.longest);
  }

  void start(Kind& kind, std::size_t place, std::size_t index) {
    // Its own stream: a case is the same whatever ran before it.
    Random random(options_.seed * 1'000'003 + place * 10'000'019 + index);
    auto files = std::make_shared<Folder>(work_ / fmt::format("{}_{}", kind.name(), index));
    Case made = kind.make(index, files->path, random);
    launch({kind.name(), index, std::move(made), files, files->path});
  }
  void launch(Under under) {
    while (pool_.full()) wait();
    const std::size_t id = next_++;
    if (under.what.checked) under.what.words.insert(under.what.words.end(), {"--json", kResult});
    const Under& here = under_[id] = std::move(under);
    pool_.start(id, [&here] { return run_here(here.what.words, here.folder); });
  }
  void wait() {
    std::vector<Under> after;
    pool_.wait(kPollMs, [&](std::size_t id, const process::Ending& ending) {
      const Under under = std::move(under_.at(id));
      under_.erase(id);
      judge(under, ending, after);
    });
    for (Under& under : after) launch(std::move(under));
  }
  void judge(const Under& under, const process::Ending& ending, std::vector<Under>& after) {
    Tally& tally = tally_[under.kind];
    ++tally.cases;
    tally.cpu_s += ending.cpu_s;
    if (ending.cpu_s > tally.longest_s) tally.longest_s = ending.cpu_s, tally.longest = under.index;
    const std::string fault = fault_of(under.what, ending, under.folder);
    const bool accepted = fault.empty() && WEXITSTATUS(ending.status) == 0;
    if (accepted) ++tally.accepted;
    if (!fault.empty()) {
      ++tally.faults;
      ++faults_;
      report(under, fault);
    }
    if (!accepted || under.what.then.empty() || !(under.what.any_size || small(under.folder))) return;
    for (const char* grade : {"accurate", "fast"}) {
      Case again;
      again.words = under.what.then;
      again.checked = true;
      again.words.insert(again.words.end(), {"--fidelity", grade});
      const fs::path folder = under.folder / grade;
      fs::create_directories(folder);
      after.push_back({under.kind + "_runs", under.index, again, under.files, folder});
    }
  }
  void report(const Under& under, const std::string& fault) const {
    fmt::print("{} {}: {}\n  kernbench {}\n  {}\n", under.kind, under.index, fault, shown(under.what.words),
               tail(read(under.folder / "stderr")));
    if (options_.keep.empty()) return;
    const fs::path kept = fs::path(options_.keep) / under.files->path.filename();
    fs::create_directories(kept);
    fs::copy(under.files->path, kept, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  /// Machines beyond this take longer to build than a case may.
  static bool small(const fs::path& folder) {
    std::smatch found;
    const std::string text = read(folder / "stdout");
    if (!std::regex_search(text, found, std::regex("ok: (\\d+) SIPs.*?, (\\d+) cubes.*?per SIP, (\\d+) PEs")))
      return false;
    return std::stoul(found[1]) <= 8 && std::stoul(found[2]) <= 16 && std::stoul(found[3]) <= 64;
  }
  static std::string shown(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words)
      line += fmt::format("{} ", word.size() > 120 ? word.substr(0, 120) + "..." : word);
    return line;
  }
  static std::string tail(const std::string& text) { return text.size() > 300 ? text.substr(text.size() - 300) : text; }

  Options options_;
  fs::path work_;
  process::Pool pool_;
  std::size_t next_ = 0, faults_ = 0;
  std::map<std::size_t, Under> under_;
  std::map<std::string, Tally> tally_;
};

int mutate_main(int argc, char** argv) {
  Options options;
  std::string source;
  po::options_description description("mutate --source TREE");
  description.add_options()("source", po::value(&source)->required(), "the tree: presets, examples, pages")(
      "cases", po::value(&options.cases)->default_value(options.cases), "of all kinds together")(
      "seed", po::value(&options.seed)->default_value(options.seed), "another seed, other faults")(
      "kind", po::value(&options.kind), "only this kind of input")("only", po::value(&options.only),
                                                                   "only this case of the kind")(
      "jobs,j", po::value(&options.jobs)->default_value(options.jobs), "processes at a time")(
      "keep", po::value(&options.keep), "folder for the files of what went wrong");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, description), values);
  po::notify(values);

  std::string name = (fs::temp_directory_path() / "kernbench-mutate-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  const fs::path work = name;
  const auto run = [&](const std::vector<std::string>& words) {
    int code = -1;
    process::Pool pool(1, {kMostWallSeconds, kMostBytes});
    fs::create_directories(work / "made");
    pool.start(0, [&] { return run_here(words, work / "made"); });
    while (pool.running() > 0) {
      pool.wait(kPollMs, [&](std::size_t, const process::Ending& ending) { code = WEXITSTATUS(ending.status); });
    }
    return code;
  };
  const std::size_t faults = Run(options, work)(all_kinds(fs::absolute(source), work, run));
  fs::remove_all(work);
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kernbench::mutate

// In the forks, the tool as it is in its own program.
int sc_main(int argc, char* argv[]) { return kernbench::run_tool(argc, argv); }

int main(int argc, char* argv[]) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  try {
    return kernbench::mutate::mutate_main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "mutate: " << error.what() << '\n';
    return 2;
  }
}
