// What PE_CPU does on commands of the cube's M_CPU.
#include <algorithm>

#include "models/pe/cpu/pe_cpu.h"

namespace kernbench::pe {

namespace {
constexpr std::uint32_t kAnswerBytes = 64;  ///< as any command without a table   assumed: one flit's worth of fields

/// Of a launch's first op. Unique in the run for 2^20 nodes, 2^18 launches per PE and 2^26 ops per launch; a launch's
/// ops have the same ids whatever else the PE records meanwhile.
std::uint64_t op_id(NodeId node, std::uint64_t launch) { return (std::uint64_t{index(node)} + 1) << 44 | launch << 26; }
}  // namespace

void PeCpu::command(const Command& command) {
  switch (command.kind) {
    case CommandKind::start:
      start(command);
      return;
    default:
      break;
  }
  commands_.push_back(command);
  advance();
}

void PeCpu::handle(const Command& command) {
  switch (command.kind) {
    case CommandKind::arm:
      if (++arm_packets_ < command.count) break;
      arm_packets_ = 0;
      arm(*command.message);
      break;
    case CommandKind::sfr_write:
      sfr_write(command);
      break;
    case CommandKind::program:
      program(command);
      break;
    case CommandKind::mmu_map:
    case CommandKind::mmu_unmap:
      mmu_changed(command);
      break;
    case CommandKind::abort:
      abort(command);
      break;
    default:
      sc_assert(false);
  }
}

/// What follows a launch of its stream that is still here is answered at once: that one's context will be its own.
void PeCpu::arm(Message& message) {
  const bool follows = std::any_of(contexts_.begin(), contexts_.end(), [&](const auto& context) {
    return context != nullptr && context->message.stream == message.stream;
  });
  if (follows) {
    successors_.push_back(&message);
    answer(CommandKind::armed, message);
  } else {
    waiting_arms_.push_back(&message);
    arm_waiting();
  }
}

void PeCpu::arm_waiting() {
  for (std::uint32_t i = 0; i < contexts_.size() && !waiting_arms_.empty(); ++i) {
    if (contexts_[i] != nullptr) continue;
    Message& message = *waiting_arms_.front();
    waiting_arms_.erase(waiting_arms_.begin());
    record(i, message);
    answer(CommandKind::armed, message);
  }
}

/// The context is free.
void PeCpu::left(std::uint32_t index, std::uint16_t stream) {
  const auto next = std::find_if(successors_.begin(), successors_.end(),
                                 [&](const Message* message) { return message->stream == stream; });
  if (next == successors_.end()) return arm_waiting();
  Message& message = **next;
  successors_.erase(next);
  record(index, message);
  contexts_[index]->ahead = true;
}

void PeCpu::record(std::uint32_t index, Message& message) {
  // Equal shares of TCM: which kernel has how much cannot depend on when the other one was recorded.
  const std::uint64_t share = services_.tcm.bytes() / contexts_.size();
  auto arena = std::make_shared<TcmArena>(index * share, (index + 1) * share);
  for (const auto& [begin, end] : ipcq_.reserved()) arena->reserve(begin, end);
  if (stacks_ == nullptr) {
    own_stacks_ = std::make_unique<StackPool>(0);  // many PEs must not keep a stack each
    stacks_ = own_stacks_.get();
  }
  contexts_[index] = std::make_unique<KernelContext>(
      index, message,
      KernelEnvironment{services_.coord, services_.config, services_.map, std::get<LaunchMessage>(message.body),
                        ipcq_.directions(), programs_, std::move(arena), op_id(services_.self, launches_++),
                        std::max(services_.options.recorder_window, 1u), *stacks_, nullptr, services_.queue.activity(),
                        services_.options.debug ? &services_.unwritten_reports : nullptr});
  contexts_[index]->recorder.start();
}

void PeCpu::start(const Command& command) {
  KernelContext* context = context_of(*command.message);
  sc_assert(context != nullptr && context->state == KernelContext::State::armed);
  sc_assert(command.start >= services_.now());  // the IO_CPU allows for the slowest way
  context->started = command.start;
  context->cause = services_.cause();
  services_.queue.at(command.start, [this, message = command.message] {
    KernelContext* context = context_of(*message);
    if (context == nullptr || context->state != KernelContext::State::armed) return;  // aborted meanwhile
    context->state = KernelContext::State::running;
    services_.follow(context->cause);
    services_.spend(Spent::start, Services::Part::cpu);
    LaunchMessage& launch = context->launch();
    launch.first_start = std::min(launch.first_start, services_.now());
    finish_if_done(*context);
    advance();
  });
}

void PeCpu::sfr_write(const Command& command) {
  const auto& entries = std::get<SfrWriteMessage>(command.message->body).entries;
  for (std::uint32_t i = command.first; i < command.first + command.count; ++i) {
    if (!(entries[i].self == services_.coord)) continue;
    std::string problem = ipcq_.install(entries[i]);
    for (const auto& context : contexts_) {
      if (context == nullptr || !problem.empty()) continue;
      for (const auto& [begin, end] : ipcq_.reserved()) {
        if (!context->recorder.reserve(begin, end)) problem = "a ring lies in TCM that a running kernel uses";
      }
    }
    if (problem.empty()) continue;
    command.message->faults.push_back(
        {Fault::Kind::ipcq, names::pe_part(services_.coord, "ipcq"), "", "sfr_write", problem, services_.now()});
  }
  answer(CommandKind::finished, *command.message);
}

void PeCpu::mmu_changed(const Command& command) {
  if (const auto* unmap = std::get_if<MmuUnmapMessage>(&command.message->body)) {
    services_.mmu.invalidate(unmap->va, unmap->bytes);
  } else {
    const auto& entries = std::get<MmuMapMessage>(command.message->body).entries;
    for (std::uint32_t i = command.first; i < command.first + command.count; ++i) {
      services_.mmu.invalidate(entries[i].va, entries[i].bytes);
    }
  }
  answer(CommandKind::finished, *command.message);
}

/// There from the first of its parts on: nothing uses it before all have been answered.
void PeCpu::program(const Command& command) {
  const auto& message = std::get<ProgramMessage>(command.message->body);
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const InstalledProgram& installed) { return installed.id == message.id; });
  (found == programs_.end() ? programs_.emplace_back() : *found) = {message.id, message.program};
  answer(CommandKind::finished, *command.message);
}

/// Another PE of the launch has failed. A PE that has answered already has nothing to do.
void PeCpu::abort(const Command& command) {
  for (std::vector<Message*>* not_begun : {&waiting_arms_, &successors_}) {
    const auto found = std::find(not_begun->begin(), not_begun->end(), command.message);
    if (found == not_begun->end()) continue;
    not_begun->erase(found);
    answer(CommandKind::failed, *command.message);
    return;
  }
  KernelContext* context = context_of(*command.message);
  if (context != nullptr && context->state != KernelContext::State::failed) fail(*context);
}

KernelContext* PeCpu::context_of(const Message& message) const {
  for (const auto& context : contexts_) {
    if (context != nullptr && &context->message == &message) return context.get();
  }
  return nullptr;
}

void PeCpu::answer(CommandKind kind, Message& message) {
  tlm::tlm_generic_payload& payload =
      services_.payload(PacketKind::command, services_.map.m_cpu(services_.coord.in_cube()), 0, kAnswerBytes);
  put_command(payload, Command{kind, &message, services_.coord, 0, kAnswerBytes, 0, 0});
  services_.inject(payload);
}

}  // namespace kernbench::pe
