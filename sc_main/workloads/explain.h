#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ccl/bounds/bounds.h"
#include "ccl/select/choice.h"
#include "tlm/base/time.h"

namespace kernbench {

namespace topology {
struct Plan;
class Machine;
}  // namespace topology

/// What the parts of a machine have done so far.
struct WorkCount {
  std::vector<std::uint64_t> link_bytes;  ///< payload that left, by end of a link
  std::vector<std::uint64_t> hbm_bytes;   ///< by cube of the machine
  std::vector<Ps> math_busy;              ///< by PE
  struct Queue {
    Ps for_credit = 0, for_data = 0;
    std::uint64_t sent = 0, received = 0;  // bytes
  };
  std::vector<Queue> queues;  ///< by PE and queue pair, in order of installation
};
WorkCount count_work(const topology::Plan& plan, topology::Machine& machine);

/// Links of one kind, and what went over them.
struct LinkClass {
  std::string name;  ///< "links between SIPs"
  bool between_sips = false;
  std::size_t directions = 0;   ///< ends that send
  double bytes_per_second = 0;  ///< payload of one direction of the first one
  double bytes = 0;             ///< over all of them, of one operation
  double mean = 0, most = 0;    ///< utilisation: share of the time that the payload rate was used
  std::string busiest;          ///< end with the most
};

/// Which algorithm ran, why, and what others should take: keys of a result, and lines that start with "# ". `choice`:
/// of `auto`; null if it was named.
void add_choice(const std::string& algorithm, const ccl::Choice* choice, nlohmann::ordered_json& json);
std::string choice_text(const std::string& algorithm, const ccl::Choice* choice);

/// Why a collective took as long as it did: its bounds beside what links, memories and queues did meanwhile.
class Explanation {
 public:
  /// `inputs`: of all groups at work, that of the explained one first. `before`, `after`: around `operations` equal
  /// operations of `ns` each.
  Explanation(const topology::Plan& plan, const std::vector<ccl::BoundInput>& inputs, double ns,
              const WorkCount& before, const WorkCount& after, unsigned operations);

  /// In words: the resource that limits.
  const std::string& limit() const { return limit_; }
  const std::vector<LinkClass>& links() const { return links_; }
  /// `algorithm`: what ran. `choice`: of `auto`; null if it was named.
  nlohmann::ordered_json json(const std::string& algorithm, const ccl::Choice* choice) const;
  /// Lines that start with "# ".
  std::string text(const std::string& algorithm, const ccl::Choice* choice) const;

 private:
  void count_links(const WorkCount& before, const WorkCount& after);
  void count_rest(const WorkCount& before, const WorkCount& after);
  std::string judge() const;
  double fraction(const ccl::Bound& bound) const { return ns_ > 0 ? bound.ns / ns_ : 0; }

  const topology::Plan& plan_;
  const double ns_, operations_;
  const std::vector<ccl::Bound> bounds_;
  const std::size_t groups_;
  double least_bytes_ = 0;  ///< over links between SIPs, of all groups
  std::vector<LinkClass> links_;
  double hbm_most_ = 0, math_most_ = 0;  ///< share of the time; HBM: of a cube's peak
  std::string hbm_busiest_;
  double for_credit_ = 0, for_data_ = 0;  ///< share of the time, mean over the queues in use
  std::string limit_;
};

}  // namespace kernbench
