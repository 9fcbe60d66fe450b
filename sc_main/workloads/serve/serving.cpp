#include "sc_main/workloads/serve/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <utility>

#include "runtime/errors.h"
#include "sc_main/check/numerics.h"
#include "sc_main/workloads/sizes.h"
#include "tlm/config/problems.h"
#include "tlm/config/units.h"

namespace kernbench::serve {

namespace {
// Steps that are simulated in one go, to compare.
constexpr std::size_t kComparedPrompts = 2, kComparedDecode = 4;

constexpr std::int64_t kMostMade = 1'000'000;  ///< requests that come by chance

/// Whatever its form and size: "-5", "1e3".
bool reads_as_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && text.find_first_of("0123456789") != std::string::npos;
}

/// An integer from 1 to kMostMade; otherwise nothing.
std::optional<std::int64_t> count_of(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMostMade) return std::nullopt;
  return count;
}
}  // namespace

bool ServingOptions::is_file() const { return asked() && !reads_as_number(requests); }

void ServingOptions::check_into(Refusals& refusals) const {
  refusals.check_integer("--most-requests", most, 0, 1 << 30);
  if (scheduler != "prefill_first" && scheduler != "chunked")
    refusals.add(fmt::format("--scheduler is '{}'; give prefill_first or chunked", scheduler));
  if (lengths != "fixed" && lengths != "conversation")
    refusals.add(fmt::format("--lengths is '{}'; give fixed or conversation", lengths));
  if (chunked()) {
    refusals.check_integer("--chunk", chunk, 1, 1 << 20);
    if (chunk >= 1 && chunk < batch)
      refusals.add(
          fmt::format("--chunk is {}: give at least --batch, {}: each sequence of a step has a token", chunk, batch));
  } else if (chunk != 0) {
    refusals.add("--chunk is of --scheduler chunked");
  }
  if (asked() && stages >= 1 && batch % stages != 0)
    refusals.add(fmt::format("--batch is {}: give a multiple of the {} that --pp makes share it", batch,
                             counted(stages, "stage")));
  if (is_file() && (rate > 0 || lengths != "fixed"))
    refusals.add("--rate and --lengths are of --requests N; a file says when and what its requests are");
  if (sizes_given && (is_file() || (asked() && lengths == "conversation"))) {
    refusals.add(
        fmt::format("--prompt and --decode are of --requests N with --lengths fixed; {} has its own: leave them out",
                    is_file() ? "a file" : "--lengths conversation"));
  }
  if (asked() && !is_file()) check_made(refusals);
  if (asked()) return;
  if (rate != 0 || most != 0 || scheduler != "prefill_first" || lengths != "fixed")
    refusals.add("--rate, --lengths, --most-requests and --scheduler are of --requests, which is not given");
}

/// s, of arrivals: simulated time ends after 1.8e7 s.
constexpr double kLongest = 1e6;

void ServingOptions::check_made(Refusals& refusals) const {
  const std::optional<std::int64_t> count = count_of(requests);
  if (!count) refusals.add(fmt::format("--requests is {}; give an integer from 1 to {}", requests, kMostMade));
  if (!(rate > 0 && rate <= 1e6)) {
    refusals.add(fmt::format("--rate is {}; give requests per second, above 0 up to 1e6", rate));
  } else if (const double takes = static_cast<double>(count.value_or(1)) / rate; count && takes > kLongest) {
    refusals.add(
        fmt::format("--requests {} at --rate {} take {:.3g} s; give a rate at which they take {:.0f} s at most", *count,
                    rate, takes, kLongest));
  }
  if (most != 0) refusals.add("--most-requests is of --requests FILE; give --requests fewer");
  if (lengths == "fixed") {
    refusals.check_integer("--prompt", prompt, 1, 1 << 20);
    refusals.check_integer("--decode", output, 1, 1 << 20);
  }
}

Requests ServingOptions::read(std::uint64_t seed) const {
  if (is_file()) return read_requests(requests, static_cast<std::size_t>(most));
  Requests made;
  made.list = make_requests(rate, static_cast<std::size_t>(*count_of(requests)), seed, prompt, output);
  if (lengths == "conversation") give_conversation_lengths(made.list, seed);
  return made;
}

namespace {
/// Room of KV caches, in what `free_bytes` of each SIP hold: as tp::KvCache places caches of a full batch, whose PEs
/// all keep as much as the one that keeps most.
Limits with_room(Limits limits, const tp::Model& model, const tp::TransformerOptions& options, std::int64_t layers,
                 std::uint64_t free_bytes) {
  const std::int64_t entries = limits.batch / limits.stages, sequences = entries * limits.heads;
  limits.granule = tp::cache_layout(sequences, limits.pes, 1, options.page).run * options.page;
  const tp::CacheLayout full = tp::cache_layout(sequences, limits.pes, limits.granule, options.page);
  const std::int64_t row = layers / limits.stages * model.head_dim;
  const double row_bytes = 2 * static_cast<double>(row) * static_cast<double>(size_of(options.dtype));
  const double bytes = static_cast<double>(full.rows()) * row_bytes;  // of a granule of each entry
  limits.positions = static_cast<std::int64_t>(static_cast<double>(free_bytes) / bytes *
                                               static_cast<double>(entries * limits.granule));
  return limits;
}

Limits limits_of(const MachineMap& map, const ServingOptions& serving, const tp::Model& model, std::int64_t ranks) {
  Limits limits;
  limits.batch = serving.batch;
  limits.chunk = serving.chunked() ? serving.chunk : 0;
  limits.replicas = serving.replicas;
  limits.stages = serving.stages;
  limits.pes = static_cast<std::int64_t>(map.pes(0).size());
  limits.heads = std::max<std::int64_t>(model.kv_heads / ranks, 1);
  return limits;
}

StepRange range_of(const ServingOptions& serving, const Limits& limits, const std::vector<Request>& requests,
                   bool ends) {
  StepRange range;
  range.pes = limits.pes;
  range.heads = limits.heads;
  std::int64_t longest = 1;
  for (const Request& request : requests) {
    longest = std::max(longest, request.prompt);
    range.positions = std::max(range.positions, request.prompt + request.output);
  }
  range.tokens = serving.chunked() ? serving.chunk : std::max(longest, serving.batch);
  range.ends = ends;
  range.sends = serving.stages > 1;
  return range;
}
}  // namespace

Serving::Serving(const MachineMap& map, tp::Model model, tp::TransformerOptions options, std::int64_t layers,
                 std::int64_t ranks, const ServingOptions& serving, Requests requests, std::uint64_t seed,
                 std::uint64_t taken_bytes, std::uint64_t have_bytes, const CheckPrompt& check_prompt)
    : map_(map),
      model_(std::move(model)),
      options_(std::move(options)),
      ranks_(ranks),
      serving_(serving),
      asked_(std::move(requests)),
      requests_(asked_.list),
      seed_(seed),
      limits_(with_room(limits_of(map, serving, model_, ranks), model_, options_, layers,
                        have_bytes - std::min(taken_bytes, have_bytes))),
      range_(range_of(serving, limits_, requests_, options_.ends)),
      machine_(model_, options_, layers, ranks, range_, seed) {
  check_requests(check_prompt);
  if (model_.position == tp::PositionKind::learned && range_.tokens > model_.positions) {
    throw std::invalid_argument(
        fmt::format("model '{}' has {} positions; give --batch and --chunk no more", model_.name, model_.positions));
  }
}

void Serving::refuse(std::size_t number, const std::string& why) const {
  const Request& one = requests_[number];
  const std::string text = fmt::format("{} prompt and {} output tokens {}", one.prompt, one.output, why);
  if (one.line > 0) throw ConfigError({serving_.requests, one.line, 1}, text);
  throw std::invalid_argument(fmt::format("request {}: {}", number + 1, text));
}

std::string Serving::place_of(std::size_t number) const {
  const unsigned line = requests_[number].line;
  return line > 0 ? fmt::format("{}:{}", serving_.requests, line) : fmt::format("request {}", number + 1);
}

void Serving::check_requests(const CheckPrompt& check_prompt) const {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const std::int64_t tokens = requests_[i].prompt + requests_[i].output;
    if (model_.window > 0 && tokens > model_.window) {
      refuse(i,
             fmt::format("are more than the sliding window of model '{}', {}: what lies outside of it is not modelled",
                         model_.name, model_.window));
    }
    // The last token is given, not taken.
    if (model_.position == tp::PositionKind::learned && tokens - 1 > model_.positions)
      refuse(i, fmt::format("take {} positions: model '{}' has {}", tokens - 1, model_.name, model_.positions));
  }
  const auto longest = std::max_element(requests_.begin(), requests_.end(),
                                        [](const Request& a, const Request& b) { return a.prompt < b.prompt; });
  if (longest != requests_.end() && !serving_.chunked()) {
    const std::string where = place_of(static_cast<std::size_t>(longest - requests_.begin()));
    check_prompt(longest->prompt, fmt::format("{}: with a prompt of {} tokens ", where, longest->prompt));
  }
  const std::optional<std::size_t> big = without_room(requests_, limits_);
  if (!big) return;
  const Request& one = requests_[*big];
  throw OutOfDeviceMemory(fmt::format(
      "{} needs {} positions of KV caches, of which a replica has room for {} beside weights, tables and activations: "
      "use more SIPs (--tp, --pp) or fewer layers",
      place_of(*big) + (one.line > 0 ? ": the request" : ""), limits_.taken_by(one), limits_.positions));
}

void Serving::run(Context& ctx, const Runtime& runtime, const MachineSteps::Meter& meter) {
  machine_.run(ctx, runtime, meter, [this, &ctx, &meter] {
    StepCosts costs(range_, [this](const Part& part) { return machine_.part(part); });
    schedule_ = serve(requests_, limits_, [&](const Step& step) { return costs.of(step); });
    simulated_ = costs.simulated();
    compare(costs);
    const MachineWork all = meter.work(ctx.now());
    if (all.time > 0) standing_ = all.standing_pj / static_cast<double>(all.time);
    most_ = meter.most;
  });
}

/// Some steps, chosen by the seed, in one go.
void Serving::compare(StepCosts& costs) {
  std::vector<const Step*> prompts, decode;
  for (const Taken& taken : schedule_.steps) (taken.step.prompts.empty() ? decode : prompts).push_back(&taken.step);
  compare(costs, prompts, kComparedPrompts, seed_ + 13);
  compare(costs, decode, kComparedDecode, seed_ + 17);
}

void Serving::compare(StepCosts& costs, const std::vector<const Step*>& steps, std::size_t count, std::uint64_t seed) {
  std::uint64_t random = splitmix64(seed);
  for (std::size_t i = 0; i < std::min(count, steps.size()); ++i) {
    random = splitmix64(random);
    Step step = *steps[random % steps.size()];
    step.positions = step.fullest = std::round(step.fullest);  // only the time is compared
    const bool one = step.prompts.size() + (step.batch > 0 ? 1 : 0) == 1 && step.batch + step.ends > 0;
    const double expected = costs.of(step).all().time,
                 took = one ? machine_.whole(step).time : costs.exactly(step).all().time;
    ++compared_;
    expected_ += expected;
    compared_time_ += took;
    largest_ = std::max(largest_, std::abs(expected - took) / took);
  }
}

}  // namespace kernbench::serve
