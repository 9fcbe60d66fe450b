#include "sc_main/workloads/serve/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tlm/config/problems.h"
#include "tlm/sim/random.h"

namespace kernbench::serve {

namespace {
constexpr const char* kColumns =
    "give TIMESTAMP,ContextTokens,GeneratedTokens as the Azure LLM inference traces, or arrival,prompt,output";
constexpr std::int64_t kMostTokens = 1 << 20;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

/// A field of a line, and where it begins.
struct Field {
  std::string text;
  unsigned column = 1;
};

std::vector<Field> fields_of(const std::string& line) {
  std::vector<Field> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    std::string text = line.substr(begin, end - begin);
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.pop_back();
    fields.push_back({text, static_cast<unsigned>(begin + 1)});
    begin = end + 1;
  }
  return fields;
}

std::int64_t tokens_of(const Location& where, const std::string& name, const std::string& text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= kMostTokens) return value;
  throw ConfigError(where, fmt::format("{} is '{}'", name, text),
                    fmt::format("give an integer from {} to {}", least, kMostTokens));
}

/// Days since 1970-01-01 of the Gregorian calendar.   source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms"
std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

std::int64_t days_of(int year, int month) {
  return days_from_civil(month == 12 ? year + 1 : year, month % 12 + 1, 1) - days_from_civil(year, month, 1);
}

/// "2023-11-16 18:15:46.6805900", "2023-11-16T18:15:46Z".
std::int64_t ns_of_date(const Location& where, const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, used = 0;
  double second = 0;
  const int read =
      std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[ T]%2d:%2d:%lf%n", &year, &month, &day, &hour, &minute, &second, &used);
  const std::string rest = read == 6 ? text.substr(static_cast<std::size_t>(used)) : text;
  if (read != 6 || (!rest.empty() && rest != "Z" && rest != "+00:00") || month < 1 || month > 12 || day < 1 ||
      day > days_of(year, month) || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
      !(second >= 0 && second < 61)) {
    throw ConfigError(where, fmt::format("TIMESTAMP is '{}'", text), "give a date and time, as 2023-11-16 18:15:46.68");
  }
  return (days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60) * kNsPerSecond +
         std::llround(second * 1e9);
}

std::int64_t ns_of_number(const Location& where, const std::string& text) {
  double value = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%lf%n", &value, &used) == 1 && static_cast<std::size_t>(used) == text.size() &&
      std::isfinite(value) && value >= 0 && value < 1e7) {
    return std::llround(value * 1e9);
  }
  throw ConfigError(where, fmt::format("arrival is '{}'", text), "give seconds, from 0 to less than 1e7");
}
}  // namespace

std::vector<Request> read_requests(const std::string& file, std::size_t most) {
  std::ifstream in(file);
  if (!in) throw ConfigError({file, 0, 0}, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string line;
  if (!std::getline(in, line)) {
    if (in.bad()) throw ConfigError({file, 0, 0}, fmt::format("cannot be read: {}", std::strerror(errno)));
    throw ConfigError({file, 0, 0}, "has no header line", kColumns);
  }
  if (line.rfind("\xEF\xBB\xBF", 0) == 0) line.erase(0, 3);  // byte order mark
  const std::vector<Field> header = fields_of(line);
  const auto column = [&](const char* name) {
    const auto found =
        std::find_if(header.begin(), header.end(), [&](const Field& field) { return field.text == name; });
    return found == header.end() ? header.size() : static_cast<std::size_t>(found - header.begin());
  };
  const bool azure = column("TIMESTAMP") < header.size();
  const char* const names[] = {azure ? "TIMESTAMP" : "arrival", azure ? "ContextTokens" : "prompt",
                               azure ? "GeneratedTokens" : "output"};
  for (const char* name : names) {
    const std::size_t first = column(name);
    if (first == header.size()) throw ConfigError({file, 1, 1}, fmt::format("there is no column '{}'", name), kColumns);
    for (std::size_t other = first + 1; other < header.size(); ++other) {
      if (header[other].text == name)
        throw ConfigError({file, 1, header[other].column}, fmt::format("column '{}' is there twice", name));
    }
  }
  struct Line {
    std::int64_t ns;
    Request request;
  };
  std::vector<Line> lines;
  for (unsigned number = 2; std::getline(in, line); ++number) {
    const std::vector<Field> fields = fields_of(line);
    if (fields.size() == 1 && fields.front().text.empty()) continue;
    if (fields.size() != header.size()) {
      throw ConfigError({file, number, 1},
                        fmt::format("has {} fields, the header line {}", fields.size(), header.size()));
    }
    const auto field = [&](const char* name) -> const Field& { return fields[column(name)]; };
    const auto at = [&](const char* name) { return Location{file, number, field(name).column}; };
    const std::int64_t ns =
        azure ? ns_of_date(at(names[0]), field(names[0]).text) : ns_of_number(at(names[0]), field(names[0]).text);
    const std::int64_t prompt = tokens_of(at(names[1]), names[1], field(names[1]).text, 1);
    const std::int64_t output = tokens_of(at(names[2]), names[2], field(names[2]).text, azure ? 0 : 1);
    if (output > 0) lines.push_back({ns, {0, prompt, output, number}});
  }
  if (lines.empty()) throw ConfigError({file, 0, 0}, "has no requests");
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.ns < b.ns; });
  if (most > 0 && lines.size() > most) lines.resize(most);
  std::vector<Request> requests;
  for (const Line& one : lines) {
    requests.push_back(one.request);
    requests.back().arrival = static_cast<Ps>(one.ns - lines.front().ns) * kPsPerNs;
  }
  return requests;
}

std::vector<Request> make_requests(double rate, std::size_t count, std::uint64_t seed, std::int64_t prompt,
                                   std::int64_t output) {
  std::vector<Request> requests;
  std::uint64_t random = splitmix64(seed + 11);
  double seconds = 0;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back({static_cast<Ps>(std::llround(seconds * 1e9)) * kPsPerNs, prompt, output});
    random = splitmix64(random);
    const double uniform = (static_cast<double>(random >> 11) + 0.5) * 0x1p-53;  // in (0, 1)
    seconds -= std::log(uniform) / rate;
  }
  return requests;
}

namespace {
/// Requests that resemble each other: their share of all, least and largest numbers of tokens.
struct Lengths {
  double share;
  std::int64_t prompt[2], output[2];
};
// source: AzureLLMInferenceTrace_conv.csv (Azure/AzurePublicDataset, CC-BY 4.0), the first 430 requests, as counted by
// eye into groups; its longest prompts, up to 14,050 tokens, are not among these.
constexpr Lengths kConversation[] = {
    {0.46, {850, 1240}, {375, 455}}, {0.13, {163, 218}, {150, 220}},   {0.11, {372, 445}, {54, 125}},
    {0.08, {120, 181}, {85, 250}},   {0.07, {1312, 1378}, {137, 220}}, {0.05, {4073, 4107}, {27, 82}},
    {0.05, {1792, 2903}, {15, 170}}, {0.03, {91, 340}, {12, 24}},      {0.02, {2, 78}, {93, 245}}};

/// In [0, 1).
double next_uniform(std::uint64_t& random) {
  random = splitmix64(random);
  return static_cast<double>(random >> 11) * 0x1p-53;
}
}  // namespace

void give_conversation_lengths(std::vector<Request>& requests, std::uint64_t seed) {
  std::uint64_t random = splitmix64(seed + 19);
  for (Request& request : requests) {
    double left = next_uniform(random);
    const Lengths* group = kConversation;
    while (left >= group->share && group + 1 != std::end(kConversation)) left -= (group++)->share;
    const auto between = [&](const std::int64_t(&sides)[2]) {
      return sides[0] + static_cast<std::int64_t>(next_uniform(random) * static_cast<double>(sides[1] - sides[0] + 1));
    };
    request.prompt = between(group->prompt);
    request.output = between(group->output);
  }
}

}  // namespace kernbench::serve
