#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tlm/base/time.h"

namespace kernbench::serve {

/// What somebody asks of a model.
struct Request {
  Ps arrival = 0;           ///< after the first one
  std::int64_t prompt = 0;  ///< tokens
  std::int64_t output = 0;  ///< tokens, at least 1
  unsigned line = 0;        ///< of its file, from 1; 0: it came by chance
};

/// In order of arrival.
struct Requests {
  std::vector<Request> list;
  std::size_t left_out = 0;  ///< of the file: they generate nothing
};

/// The first `most` requests (0: all) of a CSV file with a header line. Columns, in any order and among others:
/// TIMESTAMP (date and time, UTC), ContextTokens, GeneratedTokens, as the public Azure LLM inference traces have them;
/// or `arrival` (seconds), `prompt`, `output`. Fields may have blanks around them, and may be in double quotes.
/// Requests of the traces that generate nothing are left out. Throws ConfigError with file, line and column.
Requests read_requests(const std::string& file, std::size_t most = 0);

/// `count` requests of one size whose arrivals are a Poisson process of `rate` per second; the same for the same seed
/// on every platform.
std::vector<Request> make_requests(double rate, std::size_t count, std::uint64_t seed, std::int64_t prompt,
                                   std::int64_t output);

/// Prompts and outputs as the public trace of conversations has them (docs/serving.md), drawn one by one.
void give_conversation_lengths(std::vector<Request>& requests, std::uint64_t seed);

}  // namespace kernbench::serve
