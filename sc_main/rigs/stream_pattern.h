#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/hbm/channel_gaps.h"
#include "tlm/machine/run_options.h"

namespace kernbench {

/// Of a memory alone on a bench: no contents.
inline RunOptions timing_only(bool fast) {
  RunOptions options;
  options.data = false;
  if (fast) options.fidelity.hbm = Grade::fast;
  return options;
}

/// Why a stream cannot be.
class StreamFault : public std::invalid_argument {
 public:
  StreamFault(std::string member, const std::string& text) : std::invalid_argument(text), member(std::move(member)) {}
  const std::string member;  ///< of BareStreamConfig: what is to be changed
};

/// The place of every burst of a synthetic stream on one HBM channel, as bench/reference/hbm/README.md defines them.
///
/// Patterns: seq, rand, stride_S (bytes), rand_hit, rowconf_Nbank_bgfirst, rowconf_Nbank_samebg, bankpar_kK, triad;
/// what follows the name of seq, rand and triad (_read, _mix_2R1W, _64B) does not matter here.
class StreamPattern {
 public:
  /// config          organisation of the channel
  /// pseudo_channels that the stream uses, from the first on
  /// rows            of a bank
  /// mapping         fields of two letters, most significant first, of Ro Ba Bg Si Pc Co; may be empty for patterns
  ///                 that name their banks themselves (rand_hit, rowconf, bankpar)
  /// request_bytes   whole bursts, a power of two
  /// Throws          StreamFault on an unknown pattern, mapping, or size.
  StreamPattern(const std::string& pattern, const HbmConfig& config, unsigned pseudo_channels, std::uint32_t rows,
                const std::string& mapping, std::uint32_t request_bytes);

  unsigned bursts_per_request() const { return static_cast<unsigned>(per_request_); }
  /// Place of burst `part` of request `i`.
  BurstPlace place(std::uint64_t i, unsigned part) const;

  /// smix(seed, i): the reproducible random numbers of the reference.
  static std::uint64_t mix(std::uint64_t seed, std::uint64_t i);

 private:
  enum class Kind { seq, rand, stride, rand_hit, rowconf, bankpar, triad };
  struct Field {
    std::uint32_t BurstPlace::*member;
    std::uint64_t size;
  };
  void parse(const std::string& pattern);
  void parse_mapping(const std::string& mapping);
  std::uint64_t number(const std::string& pattern, std::size_t from) const;
  BurstPlace map(std::uint64_t burst) const;
  BurstPlace bank_in_turn(std::uint64_t visit) const;

  Kind kind_ = Kind::seq;
  std::uint64_t parameter_ = 0;  // stride in bursts, banks, accesses per visit
  bool same_group_ = false;
  const HbmConfig config_;
  const std::uint64_t pseudo_channels_, rows_, columns_, per_request_;
  std::uint64_t total_;        // bursts of the scope
  std::vector<Field> fields_;  // least significant first
};

}  // namespace kernbench
