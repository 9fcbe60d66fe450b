#include "sc_main/rigs/stream_pattern.h"

#include <cctype>

#include "tlm/sim/random.h"

namespace kernbench {
namespace {
StreamFault bad_pattern(const std::string& pattern, const std::string& why) {
  return {"pattern", "pattern '" + pattern + "': " + why};
}
}  // namespace

StreamPattern::StreamPattern(const std::string& pattern, const HbmConfig& config, unsigned pseudo_channels,
                             std::uint32_t rows, const std::string& mapping, std::uint32_t request_bytes)
    : config_(config),
      pseudo_channels_(pseudo_channels),
      rows_(rows),
      columns_(config.row_bytes / config.burst_bytes),
      per_request_(request_bytes / config.burst_bytes),
      total_(rows_ * columns_ * config.bank_groups * config.banks_per_group * config.stack_ids * pseudo_channels) {
  if (per_request_ == 0 || request_bytes % config.burst_bytes != 0 || (per_request_ & (per_request_ - 1)) != 0) {
    throw StreamFault("request_bytes", "a request of " + std::to_string(request_bytes) +
                                           " B: give a power of two from " + std::to_string(config.burst_bytes) +
                                           " on");
  }
  parse(pattern);
  const bool direct = kind_ == Kind::rand_hit || kind_ == Kind::rowconf || kind_ == Kind::bankpar;
  if (!direct) parse_mapping(mapping);
}

std::uint64_t StreamPattern::number(const std::string& pattern, std::size_t from) const {
  std::uint64_t value = 0;
  std::size_t i = from;
  for (; i < pattern.size() && i < from + 12 && std::isdigit(static_cast<unsigned char>(pattern[i])) != 0; ++i)
    value = value * 10 + static_cast<std::uint64_t>(pattern[i] - '0');
  if (value == 0) throw bad_pattern(pattern, "a number from 1 on is expected in it");
  return value;
}

void StreamPattern::parse(const std::string& pattern) {
  const auto starts = [&](const char* prefix) { return pattern.rfind(prefix, 0) == 0; };
  // Behind the name of a pattern the tables say what is mixed, or how: "seq_mix_2R1W_64B".
  const auto is = [&](const std::string& name) {
    return pattern == name || (starts(name.c_str()) && pattern[name.size()] == '_');
  };
  if (starts("stride_")) {
    kind_ = Kind::stride;
    parameter_ = number(pattern, 7) / config_.burst_bytes;
    if (parameter_ == 0) throw bad_pattern(pattern, "a stride is at least a burst");
  } else if (starts("rowconf_")) {
    kind_ = Kind::rowconf;
    parameter_ = number(pattern, starts("rowconf_write_") ? 14 : 8);  // the mix says what is written
    same_group_ = pattern.find("samebg") != std::string::npos;
    if (parameter_ > std::uint64_t{config_.bank_groups} * config_.banks_per_group * config_.stack_ids)
      throw bad_pattern(pattern, "more banks than a pseudo channel has");
  } else if (starts("bankpar_k")) {
    kind_ = Kind::bankpar;
    parameter_ = number(pattern, 9);
    if (parameter_ > columns_) throw bad_pattern(pattern, "more bursts than a row has");
  } else if (is("rand_hit")) {
    kind_ = Kind::rand_hit;
  } else if (is("rand")) {
    kind_ = Kind::rand;
  } else if (is("triad")) {
    kind_ = Kind::triad;
  } else if (!is("seq")) {
    throw bad_pattern(pattern,
                      "give seq, rand, stride_S, rand_hit, rowconf_Nbank_bgfirst, rowconf_Nbank_samebg, "
                      "rowconf_write_Nbank_..., bankpar_kK or triad");
  }
}

void StreamPattern::parse_mapping(const std::string& mapping) {
  const auto reject = [&](const std::string& why) {
    throw StreamFault("mapping", "mapping '" + mapping + "': " + why);
  };
  std::uint64_t product = 1;
  for (std::size_t i = mapping.size(); i >= 2; i -= 2) {
    const std::string name = mapping.substr(i - 2, 2);
    Field field{};
    if (name == "Ro") {
      field = {&BurstPlace::row, rows_};
    } else if (name == "Ba") {
      field = {&BurstPlace::bank, config_.banks_per_group};
    } else if (name == "Bg") {
      field = {&BurstPlace::bank_group, config_.bank_groups};
    } else if (name == "Si") {
      field = {&BurstPlace::stack_id, config_.stack_ids};
    } else if (name == "Pc") {
      field = {&BurstPlace::pseudo_channel, pseudo_channels_};
    } else if (name == "Co") {
      field = {&BurstPlace::column, columns_};
    } else {
      reject("'" + name + "' is none of Ro, Ba, Bg, Si, Pc, Co");
    }
    for (const Field& other : fields_) {
      if (other.member == field.member) reject("'" + name + "' stands there twice");
    }
    fields_.push_back(field);
    product *= field.size;
  }
  if (mapping.size() % 2 != 0 || product != total_) {
    reject("name each of Ro, Ba, Bg and Co once, and Si and Pc where there are several");
  }
}

std::uint64_t StreamPattern::mix(std::uint64_t seed, std::uint64_t i) { return splitmix64(seed + i * kSplitmixStep); }

BurstPlace StreamPattern::map(std::uint64_t burst) const {
  BurstPlace place;
  for (const Field& field : fields_) {
    place.*field.member = static_cast<std::uint32_t>(burst % field.size);
    burst /= field.size;
  }
  return place;
}

/// Banks one after the other: pseudo channel fastest, then bank group, bank, stack ID.
BurstPlace StreamPattern::bank_in_turn(std::uint64_t visit) const {
  const auto take = [&visit](std::uint64_t size) {
    const auto value = static_cast<std::uint32_t>(visit % size);
    visit /= size;
    return value;
  };
  BurstPlace place;
  place.pseudo_channel = take(pseudo_channels_);
  place.bank_group = take(config_.bank_groups);
  place.bank = take(config_.banks_per_group);
  place.stack_id = take(config_.stack_ids);
  return place;
}

BurstPlace StreamPattern::place(std::uint64_t i, unsigned part) const {
  switch (kind_) {
    case Kind::seq:
      return map((i * per_request_ + part) % total_);
    case Kind::rand:
      return map((mix(1, i) % total_ & ~(per_request_ - 1)) + part);
    case Kind::stride: {
      const std::uint64_t burst = i * parameter_;
      return map((burst + burst / total_ + part) % total_);
    }
    case Kind::triad: {
      const std::uint64_t stream = i % 3;
      return map((stream * (total_ / 4) + i / 3 * per_request_ + part) % total_);
    }
    case Kind::rand_hit: {
      std::uint64_t z = mix(1, i);
      const auto take = [&z](std::uint64_t size) {
        const auto value = static_cast<std::uint32_t>(z % size);
        z /= size;
        return value;
      };
      BurstPlace place;
      place.column = take(columns_) + part;
      place.bank_group = take(config_.bank_groups);
      place.bank = take(config_.banks_per_group);
      z = mix(1, i) >> 9;  // the SID has a bit of its own, also where there is one SID
      place.stack_id = static_cast<std::uint32_t>((z & 1) % config_.stack_ids);
      place.pseudo_channel = static_cast<std::uint32_t>((z >> 1) % pseudo_channels_);
      place.row = 7;
      return place;
    }
    case Kind::rowconf: {
      const std::uint64_t bank = i % parameter_;
      const std::uint64_t groups = config_.bank_groups, banks = config_.banks_per_group;
      BurstPlace place;
      place.bank_group = static_cast<std::uint32_t>((same_group_ ? bank / banks : bank) % groups);
      place.bank = static_cast<std::uint32_t>((same_group_ ? bank : bank / groups) % banks);
      place.stack_id = static_cast<std::uint32_t>(bank / (groups * banks));
      place.row = static_cast<std::uint32_t>(i / parameter_ % rows_);
      place.column = part;
      return place;
    }
    case Kind::bankpar: {
      const std::uint64_t visit = i / parameter_;
      BurstPlace place = bank_in_turn(visit);
      place.row = static_cast<std::uint32_t>(mix(1, visit) % rows_);
      place.column = static_cast<std::uint32_t>((i % parameter_ * per_request_ + part) % columns_);
      return place;
    }
  }
  return {};
}

}  // namespace kernbench
