#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "models/sram/sram_config.h"

namespace kernbench {

/// When a banked SRAM has served a request: each bank in order of booking, at its share of the whole rate.
///
/// A request is cut at multiples of `bank_interleave_bytes`; each part holds its bank for bytes / (rate / banks),
/// rounded up to the picosecond. REQUIRES: book() is called in order of arrival. Not modelled: bank cycle time beyond
/// the rate.
class SramTiming {
 public:
  explicit SramTiming(const SramConfig& config) : config_(config), free_(config.banks, 0) {
    if (config.banks == 0 || config.bank_interleave_bytes == 0 || config.bytes_per_second == 0 ||
        config.queue_depth == 0) {
      throw std::invalid_argument("sram: banks, bank_interleave, rate and queue_depth must be at least 1");
    }
  }

  struct Span {
    Ps begin = kNever, end = 0;
  };
  /// Books `bytes` at `offset` from `now` on; calls part(bank, begin, end) for each bank that takes part.
  template <class Part>
  Span book(std::uint64_t offset, std::uint64_t bytes, Ps now, const Part& part) {
    Span span;
    for_parts(offset, bytes, [&](std::size_t bank, std::uint64_t count) {
      const Ps begin = std::max(now, free_[bank]);
      free_[bank] = begin + time(count);
      span = {std::min(span.begin, begin), std::max(span.end, free_[bank])};
      part(static_cast<unsigned>(bank), begin, free_[bank]);
    });
    return span;
  }
  /// How long the request would take with all banks free.
  Ps service(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t parts = (offset % config_.bank_interleave_bytes + bytes + config_.bank_interleave_bytes - 1) /
                                config_.bank_interleave_bytes;
    Ps longest = 0;
    if (parts <= config_.banks) {
      for_parts(offset, bytes, [&](std::size_t, std::uint64_t count) { longest = std::max(longest, time(count)); });
      return longest;
    }
    std::vector<Ps> busy(config_.banks, 0);
    for_parts(offset, bytes,
              [&](std::size_t bank, std::uint64_t count) { longest = std::max(longest, busy[bank] += time(count)); });
    return longest;
  }

 private:
  Ps time(std::uint64_t bytes) const { return Rate(config_.bytes_per_second).time_for(bytes * config_.banks); }
  template <class Body>
  void for_parts(std::uint64_t offset, std::uint64_t bytes, const Body& body) const {
    const std::uint64_t unit = config_.bank_interleave_bytes;
    for (std::uint64_t at = offset, end = offset + bytes; at < end;) {
      const std::uint64_t stop = std::min((at / unit + 1) * unit, end);
      body(static_cast<std::size_t>(at / unit % config_.banks), stop - at);
      at = stop;
    }
  }

  const SramConfig config_;
  std::vector<Ps> free_;  // by bank
};

}  // namespace kernbench
