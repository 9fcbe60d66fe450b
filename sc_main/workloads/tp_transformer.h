#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tp/transformer.h"
#include "sc_main/check/tp_reference.h"
#include "sc_main/workloads/machine_work.h"
#include "sc_main/workloads/model_weights.h"
#include "sc_main/workloads/serve/serving.h"
#include "sc_main/workloads/tp_model.h"
#include "sc_main/workloads/tp_moe.h"
#include "sc_main/workloads/tp_summary.h"
#include "sc_main/workloads/tp_times.h"
#include "sc_main/workloads/workload.h"

namespace kernbench {

/// Prefill, or the decode steps: `steps` passes over `length` tokens of each sequence.
struct TransformerPhase {
  std::string name;
  std::int64_t steps = 0, length = 0;
};

/// Of so many sequences: the least number of equal micro-batches from `stages` to twice that, or else the largest
/// below. With fewer, stages stand idle; with more, a stage reads its weights more often than it saves.
std::int64_t default_micro_batches(std::int64_t sequences, std::int64_t stages);

class TpTransformer final : public Workload {
 public:
  std::string name() const override { return "tp_transformer"; }
  std::string help() const override {
    return "layers of a language model, prefill and decode, tensor-parallel, checked";
  }
  std::string example() const override {
    return "kernbench run tp_transformer --model llama3-8b --layers 1 --ends 0 --prompt 0 --context 128 -w 0 --data "
           "off --fidelity fast";
  }
  void add_options(boost::program_options::options_description& options) override;
  void check_options() const override;
  std::vector<std::string> files() const override;
  ReplayLong long_work() const override;
  Report run(Session& session) override;

 private:
  /// What all ranks of a run share.
  struct Case {
    tp::Model model;
    HostTransformer host;
    std::vector<TransformerPhase> phases;
    std::vector<std::vector<std::int64_t>> tokens;  ///< of each step of each phase, one after the other
    /// By step and tensor-parallel rank: of all sequences, which data-parallel ranks and micro-batches share.
    std::vector<std::vector<std::vector<std::uint8_t>>> outputs;
    std::int64_t pieces = 0;                  ///< of a step
    std::uint64_t cache_bytes = 0;            ///< of a rank
    std::shared_ptr<ModelWeightFiles> files;  ///< --weights; null: a pattern
    bool loads = true;                        ///< contents are there, or take time
    bool reads_take_time = false;             ///< of the host
    std::optional<TpMemory> memory;
    std::function<MachineWork(Ps)> work;  ///< since the start
    std::vector<MachineWork> of_phase;    ///< of all timed passes
    std::vector<MachineWork> of_piece;    ///< likewise, by phase and piece; empty where stages go on at once
    tp::MoeRun moe;
    bool alike = true;  ///< all-reduces give all ranks the same bits
  };
  Case make_case(const Session& session) const;
  void check_divides(const tp::Model& model) const;
  /// What a token may look back upon.
  void check_reach(const tp::Model& model, std::int64_t positions, Refusals& refusals) const;
  tp::TransformerOptions transformer_options() const;
  tp::MoeRun moe_run(const Session& session) const;
  /// Of every layer, for the rows of whole sequences.
  std::vector<std::vector<std::int32_t>> routing(const Case& run) const;
  serve::ServingOptions serving() const;  ///< with what the other options say of it
  Report serve(Session& session) const;
  class Rank;
  /// Sequences of a micro-batch.
  std::int64_t entries() const { return batch_ / dp_ / micro_; }
  std::int64_t world() const { return tp_ * dp_ * pp_; }
  /// Of embedding and output matrix, how many the stage with most has.
  std::int64_t ends_of_stage() const { return ends_ == 0 ? 0 : pp_ == 1 ? 2 : 1; }
  HostTransformer::Values input(const Case& run, const std::vector<std::int64_t>& tokens) const;
  Comparison compare(const Case& run) const;
  Report report(Session& session, const Case& run, const TpTimes& times, const std::vector<TpTimes::Row>& rows,
                const Comparison& comparison) const;
  std::string piece_name(std::int64_t piece) const;

  std::string model_, weights_;
  static constexpr std::int64_t kNoLayers = std::numeric_limits<std::int64_t>::min();  ///< the option is not given
  std::int64_t layers_ = kNoLayers, batch_ = 1, prompt_ = 128, decode_ = 1, context_ = 0, page_ = 32, tp_ = 0, dp_ = 1,
               pp_ = 1, micro_ = 0;
  bool sizes_given_ = false;  ///< the command line has --prompt or --decode
  int ends_ = 1, overlap_ = 1, sequence_ = 0;
  MoeSettings moe_;
  serve::ServingOptions serving_;
  TpOptions common_;
};

}  // namespace kernbench
