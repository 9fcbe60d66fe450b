#include "sc_main/workloads/serve/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tlm/config/nearest.h"
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

constexpr const char* kBlanks = " \t\r";

/// The field that begins at `begin`, up to a comma outside of quotes; `begin` goes behind that comma.
Field field_of(const std::string& line, std::size_t& begin) {
  const std::size_t first = std::min(line.find_first_not_of(kBlanks, begin), line.size());
  Field field{{}, static_cast<unsigned>(std::max(first, begin) + 1)};
  bool quoted = false;
  std::size_t at = first;
  for (; at < line.size() && (quoted || line[at] != ','); ++at) {
    if (line[at] != '"') {
      field.text += line[at];
    } else if (quoted && at + 1 < line.size() && line[at + 1] == '"') {
      field.text += line[at++];  // two of them stand for one
    } else {
      quoted = !quoted;
    }
  }
  field.text.erase(field.text.find_last_not_of(kBlanks) + 1);
  begin = at + 1;
  return field;
}

std::vector<Field> fields_of(const std::string& line) {
  std::vector<Field> fields;
  for (std::size_t begin = 0; begin <= line.size();) fields.push_back(field_of(line, begin));
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
  return (days_from_civil(year, month, day) * 86400 + std::int64_t{hour} * 3600 + std::int64_t{minute} * 60) *
             kNsPerSecond +
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

using Names = std::array<const char*, 3>;
constexpr Names kAzure{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, kOwn{"arrival", "prompt", "output"};

/// The three columns of a file, by their places in its header line.
struct Columns {
  Names names;
  std::array<std::size_t, 3> places{};
  bool azure() const { return names == kAzure; }
};

std::vector<std::string> texts_of(const std::vector<Field>& header) {
  std::vector<std::string> texts;
  texts.reserve(header.size());
  for (const Field& field : header) texts.push_back(field.text);
  return texts;
}

/// Those of which more are there, or at least something near them.
Names names_of(const std::vector<std::string>& header) {
  const auto there = [&](const Names& names) {
    std::size_t sum = 0;
    for (const char* name : names) {
      const bool same = std::find(header.begin(), header.end(), name) != header.end();
      sum += same ? 2 : nearest(name, header).empty() ? 0 : 1;
    }
    return sum;
  };
  return there(kAzure) > there(kOwn) ? kAzure : kOwn;
}

Columns columns_of(const std::string& file, const std::vector<Field>& header) {
  const std::vector<std::string> texts = texts_of(header);
  Columns columns{names_of(texts)};
  Problems problems;
  for (std::size_t i = 0; i < columns.names.size(); ++i) {
    const std::string name = columns.names[i];
    const auto first = std::find(texts.begin(), texts.end(), name);
    columns.places[i] = static_cast<std::size_t>(first - texts.begin());
    if (first == texts.end()) {
      const std::string near = nearest(name, texts);
      problems.add({file, 1, 1}, fmt::format("there is no column '{}'; there are {}", name, quote(join(texts))),
                   near.empty() ? kColumns : fmt::format("is it '{}'? {}", near, kColumns));
      continue;
    }
    const auto other = std::find(first + 1, texts.end(), name);
    if (other != texts.end()) {
      problems.add({file, 1, header[static_cast<std::size_t>(other - texts.begin())].column},
                   fmt::format("column '{}' is there twice", name));
    }
  }
  problems.throw_if_any();
  return columns;
}

/// A request that arrives at `ns` by the clock of its file.
struct Line {
  std::int64_t ns = 0;
  Request request;
};

Line line_of(const std::string& file, unsigned number, const Columns& columns, const std::vector<Field>& fields) {
  const auto text = [&](std::size_t i) -> const std::string& { return fields[columns.places[i]].text; };
  const auto at = [&](std::size_t i) { return Location{file, number, fields[columns.places[i]].column}; };
  Line line;
  line.ns = columns.azure() ? ns_of_date(at(0), text(0)) : ns_of_number(at(0), text(0));
  line.request.prompt = tokens_of(at(1), columns.names[1], text(1), 1);
  line.request.output = tokens_of(at(2), columns.names[2], text(2), columns.azure() ? 0 : 1);
  line.request.line = number;
  return line;
}

std::vector<Field> header_of(const std::string& file, std::ifstream& in) {
  std::string line;
  if (!in) throw ConfigError({file, 0, 0}, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (!std::getline(in, line)) {
    if (in.bad()) throw ConfigError({file, 0, 0}, fmt::format("cannot be read: {}", std::strerror(errno)));
    throw ConfigError({file, 0, 0}, "has no header line", kColumns);
  }
  if (line.rfind("\xEF\xBB\xBF", 0) == 0) line.erase(0, 3);  // byte order mark
  return fields_of(line);
}
}  // namespace

Requests read_requests(const std::string& file, std::size_t most) {
  std::ifstream in(file);
  const std::vector<Field> header = header_of(file, in);
  const Columns columns = columns_of(file, header);
  Requests requests;
  std::vector<Line> lines;
  std::string line;
  for (unsigned number = 2; std::getline(in, line); ++number) {
    const std::vector<Field> fields = fields_of(line);
    if (fields.size() == 1 && fields.front().text.empty()) continue;
    if (fields.size() != header.size()) {
      throw ConfigError({file, number, 1},
                        fmt::format("has {} fields, the header line {}", fields.size(), header.size()));
    }
    lines.push_back(line_of(file, number, columns, fields));
    if (lines.back().request.output > 0) continue;
    lines.pop_back();
    ++requests.left_out;
  }
  if (lines.empty()) throw ConfigError({file, 0, 0}, "has no requests");
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.ns < b.ns; });
  if (most > 0 && lines.size() > most) lines.resize(most);
  for (const Line& one : lines) {
    requests.list.push_back(one.request);
    requests.list.back().arrival = static_cast<Ps>(one.ns - lines.front().ns) * kPsPerNs;
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
