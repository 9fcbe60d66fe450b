#include "ccl/import/msccl_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <utility>

#include "tlm/config/nearest.h"

namespace kernbench::ccl::msccl {
namespace {

constexpr std::int32_t kMostGpus = 4096, kMostChunks = 1 << 16;
/// Of all gpus; each is followed through the whole algorithm.   assumed: 3 s and 0.8 GB of the host, as measured of an
/// all-gather
constexpr std::int64_t kMostChunksOfAll = 1 << 22;

const std::map<std::string, Action> kActions = {
    {"s", Action::send},
    {"r", Action::receive},
    {"rcs", Action::receive_copy_send},
    {"rrs", Action::receive_reduce_send},
    {"rrc", Action::receive_reduce_copy},
    {"rrcs", Action::receive_reduce_copy_send},
    {"cpy", Action::copy},
    {"re", Action::reduce},
    {"nop", Action::nothing},
};
const std::map<std::string, Buffer> kBuffers = {{"i", Buffer::input}, {"o", Buffer::output}, {"s", Buffer::scratch}};
const std::map<std::string, CollectiveOp> kOps = {
    {"allreduce", CollectiveOp::all_reduce},
    {"allgather", CollectiveOp::all_gather},
    {"reducescatter", CollectiveOp::reduce_scatter},
    {"reduce_scatter", CollectiveOp::reduce_scatter},
    {"alltoall", CollectiveOp::all_to_all},
    {"broadcast", CollectiveOp::broadcast},
    {"custom", CollectiveOp::all_reduce},
};

/// What MSCCL's writers put there; what is not read here does not matter for a schedule.
const std::map<std::string, std::vector<std::string>> kAttributes = {
    {"algo",
     {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace", "redop", "minBytes",
      "maxBytes"}},
    {"gpu", {"id", "i_chunks", "o_chunks", "s_chunks"}},
    {"tb", {"id", "send", "recv", "chan"}},
    {"step", {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}},
};

/// One pass finds all problems: what is wrong is read as its least value, and what follows from it is not looked at.
class Reader {
 public:
  Reader(const std::string& text, const std::string& name) : text_(text), name_(name) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') lines_.push_back(i + 1);
    }
  }

  File read() {
    pugi::xml_document document;
    const unsigned all_text = pugi::parse_default | pugi::parse_fragment;
    const pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size(), all_text);
    if (!result) throw ConfigError(at(result.offset), std::string("no XML: ") + result.description());
    const pugi::xml_node algo = only_element(document);
    if (std::string(algo.name()) != "algo")
      throw ConfigError(where(algo), fmt::format("'{}' is no 'algo'", algo.name()), "give an MSCCL algorithm file");
    check_attributes(algo);
    File file;
    file.where = where(algo);
    file.name = algo.attribute("name").as_string("msccl");
    file.op = named(algo, "coll", kOps);
    file.custom = algo.attribute("coll").as_string() == std::string("custom");
    if (file.custom) {
      warnings_.push_back(fmt::format(
          "{}: warning: coll is custom, which does not say what the outputs are: no result of it is proved or checked",
          file.where.str()));
    }
    file.in_place = number(algo, "inplace", 0, 1, 0) == 1;
    const std::size_t before = troubles_;
    const std::int32_t gpus = number(algo, "ngpus", 1, kMostGpus);
    file.chunks = number(algo, "nchunksperloop", 1, kMostChunks);
    if (troubles_ > before) problems_.throw_if_any();
    const std::int64_t all = std::int64_t{gpus} * file.chunks;
    if (all > kMostChunksOfAll)
      wrong(algo, fmt::format("{} gpus of {} chunks have {} chunks", gpus, file.chunks, all),
            fmt::format("give at most {}", kMostChunksOfAll));
    file.gpus.resize(static_cast<std::size_t>(gpus));
    std::vector<bool> seen(file.gpus.size());
    for (const pugi::xml_node node : children(algo, "gpu")) {
      const std::size_t until_here = troubles_;
      const std::int32_t id = number(node, "id", 0, gpus - 1);
      if (troubles_ > until_here) continue;
      if (seen[static_cast<std::size_t>(id)]) wrong(node, fmt::format("gpu {} stands here twice", id));
      seen[static_cast<std::size_t>(id)] = true;
      file.gpus[static_cast<std::size_t>(id)] = gpu(node, id, gpus);
    }
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (problems_.empty() && missing != seen.end())
      wrong(algo, fmt::format("there is no gpu {}", missing - seen.begin()),
            fmt::format("give one for each of ngpus = {}", gpus));
    problems_.throw_if_any();
    if (file.custom && names_outputs_) file.in_place = false;  // its inputs stay, whether or not it may run in place
    file.warnings = std::move(warnings_);
    return file;
  }

 private:
  Location at(std::ptrdiff_t offset) const {
    const auto here = static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0));
    const auto next = std::upper_bound(lines_.begin(), lines_.end(), std::min(here, text_.size()));
    const std::size_t begin = *std::prev(next);
    return {name_, static_cast<unsigned>(next - lines_.begin()),
            static_cast<unsigned>(std::min(here, text_.size()) - begin + 1)};
  }
  Location where(const pugi::xml_node& node) const { return at(node.offset_debug() - 1); }  // of its '<'
  /// pugixml knows the places of elements only; names of both lie in its copy of the text, an element's after its '<'.
  Location where(const pugi::xml_node& node, const pugi::xml_attribute& attribute) const {
    return at(node.offset_debug() + (attribute.name() - node.name()));
  }
  static bool is_known(const pugi::xml_node& node, const pugi::xml_attribute& attribute) {
    const std::vector<std::string>& known = kAttributes.at(node.name());
    return std::find(known.begin(), known.end(), attribute.name()) != known.end();
  }
  /// The attribute that an unknown one is to be, if it is near one that is not there; else it is a dialect's own.
  static std::string meant(const pugi::xml_node& node, const pugi::xml_attribute& attribute) {
    if (is_known(node, attribute)) return {};
    std::string near = nearest(attribute.name(), kAttributes.at(node.name()));
    return near.empty() || node.attribute(near.c_str()) ? std::string() : near;
  }
  void check_attributes(const pugi::xml_node& node) {
    std::set<std::string> seen;
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string name = attribute.name(), right = meant(node, attribute);
      if (!right.empty()) {
        problems_.add(where(node, attribute), fmt::format("unknown attribute {} of '{}'", quote(name), node.name()),
                      fmt::format("did you mean '{}'?", right));
      } else if (!is_known(node, attribute) && ignored_.insert({node.name(), name}).second) {  // said once
        warnings_.push_back(fmt::format("{}: warning: attribute {} of '{}' is ignored", where(node, attribute).str(),
                                        quote(name), node.name()));
      }
      if (!seen.insert(name).second) {
        problems_.add(where(node, attribute),
                      fmt::format("attribute '{}' of '{}' stands here twice", name, node.name()), "remove one of them");
      }
    }
  }
  void wrong(const pugi::xml_node& node, const std::string& text, const std::string& hint = "") {
    ++troubles_;
    problems_.add(where(node), text, hint);
    if (problems_.size() >= kMostProblems) problems_.throw_if_any();
  }

  void refuse_text(const pugi::xml_node& node) {
    if (node.type() != pugi::node_pcdata && node.type() != pugi::node_cdata) return;
    const std::string value = node.value();
    const auto blanks = static_cast<std::ptrdiff_t>(std::min(value.find_first_not_of(" \t\r\n"), value.size()));
    problems_.add(at(node.offset_debug() + blanks), "text that belongs to no element", "remove it");
  }

  pugi::xml_node only_element(const pugi::xml_document& document) {
    const pugi::xml_node first = document.document_element();
    for (const pugi::xml_node node : document.children()) {
      refuse_text(node);
      if (node.type() == pugi::node_element && node != first)
        wrong(node, fmt::format("'{}' after the end of '{}'", node.name(), first.name()), "give one 'algo' in a file");
    }
    if (!first) throw ConfigError(at(0), "no XML: there is no element", "give an MSCCL algorithm file");
    return first;
  }

  /// `name`: of all; null: there must be none.
  std::vector<pugi::xml_node> children(const pugi::xml_node& node, const char* name) {
    std::vector<pugi::xml_node> list;
    for (const pugi::xml_node child : node.children()) {
      refuse_text(child);
      if (child.type() != pugi::node_element) continue;
      if (name == nullptr || std::string(child.name()) != name) {
        const std::set<std::string> known{"algo", "gpu", "tb", "step"};
        if (known.count(child.name()) == 0) {  // of a dialect
          warnings_.push_back(fmt::format("{}: warning: '{}' inside of '{}' is ignored", where(child).str(),
                                          child.name(), node.name()));
          continue;
        }
        wrong(child, fmt::format("'{}' inside of '{}'", child.name(), node.name()),
              name == nullptr ? "remove it" : fmt::format("give '{}' only", name));
        continue;
      }
      check_attributes(child);
      list.push_back(child);
    }
    return list;
  }

  std::optional<std::string> text(const pugi::xml_node& node, const char* name) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (attribute) return attribute.value();
    ++troubles_;
    const auto misspelt = [&](const pugi::xml_attribute& a) { return meant(node, a) == name; };
    if (std::none_of(node.attributes_begin(), node.attributes_end(), misspelt))
      wrong(node, fmt::format("'{}' has no '{}'", node.name(), name));
    return {};
  }
  std::int32_t number(const pugi::xml_node& node, const char* name, std::int32_t least, std::int32_t most) {
    const std::optional<std::string> given = text(node, name);
    if (!given) return least;
    const std::string& value = *given;
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
      wrong(node, fmt::format("{} of '{}' is '{}'", name, node.name(), value),
            fmt::format("give an integer from {} to {}", least, most));
      return least;
    }
    return number;
  }
  std::int32_t number(const pugi::xml_node& node, const char* name, std::int32_t least, std::int32_t most,
                      std::int32_t otherwise) {
    return node.attribute(name) ? number(node, name, least, most) : otherwise;
  }
  template <class Value>
  Value named(const pugi::xml_node& node, const char* name, const std::map<std::string, Value>& values) {
    const std::optional<std::string> value = text(node, name);
    if (!value) return {};
    const auto found = values.find(*value);
    if (found != values.end()) return found->second;
    std::vector<std::string> names;
    names.reserve(values.size());
    for (const auto& entry : values) names.push_back(entry.first);
    wrong(node, fmt::format("{} of '{}' is '{}'", name, node.name(), *value), suggest(*value, names, "served are"));
    return {};
  }

  Gpu gpu(const pugi::xml_node& node, std::int32_t id, std::int32_t gpus) {
    Gpu gpu;
    gpu.id = id;
    gpu.where = where(node);
    const std::size_t before = troubles_;
    std::vector<pugi::xml_node> blocks = children(node, "tb");
    const auto number_of = [](const pugi::xml_node& tb) { return tb.attribute("id").as_int(-1); };
    std::stable_sort(blocks.begin(), blocks.end(),  // MSCCL reads them by their ids
                     [&](const pugi::xml_node& a, const pugi::xml_node& b) { return number_of(a) < number_of(b); });
    for (const pugi::xml_node& tb : blocks)
      gpu.blocks.push_back(block(tb, id, gpus, static_cast<std::int32_t>(gpu.blocks.size())));
    if (troubles_ > before) return gpu;
    for (const ThreadBlock& block : gpu.blocks) check_dependences(gpu, block);
    return gpu;
  }

  ThreadBlock block(const pugi::xml_node& node, std::int32_t gpu, std::int32_t gpus, std::int32_t order) {
    const std::size_t before = troubles_;
    ThreadBlock block;
    block.where = where(node);
    block.id = number(node, "id", 0, 1 << 16);
    block.send = number(node, "send", -1, gpus - 1);
    block.receive = number(node, "recv", -1, gpus - 1);
    block.channel = number(node, "chan", 0, 1 << 16, 0);
    if (troubles_ > before) return block;
    if (block.id != order)
      wrong(node, fmt::format("thread block {} comes as number {}", block.id, order), "number them from 0 on");
    if (block.send == gpu || block.receive == gpu)
      wrong(node, fmt::format("gpu {} exchanges with itself", gpu), "copy with 'cpy'");
    for (const pugi::xml_node child : children(node, "step"))
      block.steps.push_back(step(child, block, static_cast<std::int32_t>(block.steps.size())));
    return block;
  }

  void check_dependences(const Gpu& gpu, const ThreadBlock& block) {
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
      const FileStep& step = block.steps[s];
      if (step.after_block < 0) continue;
      const auto other = static_cast<std::size_t>(step.after_block);
      if (other >= gpu.blocks.size() || step.after_step < 0 ||
          static_cast<std::size_t>(step.after_step) >= gpu.blocks[other].steps.size()) {
        problems_.add(step.where, fmt::format("depends on step {} of thread block {}, which does not exist",
                                              step.after_step, step.after_block));
      } else if (step.after_block == block.id && static_cast<std::size_t>(step.after_step) >= s) {
        problems_.add(step.where,
                      fmt::format("step {} depends on step {} of its own thread block, which is not before it", s,
                                  step.after_step),
                      "steps of a thread block run one after the other");
      }
    }
  }

  FileStep step(const pugi::xml_node& node, const ThreadBlock& block, std::int32_t order) {
    const std::size_t before = troubles_;
    FileStep step;
    step.where = where(node);
    children(node, nullptr);
    const std::int32_t given = number(node, "s", 0, 1 << 24);
    step.action = named(node, "type", kActions);
    step.after_block = number(node, "depid", -1, 1 << 16, -1);
    step.after_step = number(node, "deps", -1, 1 << 24, -1);
    if (troubles_ == before && given != order)
      wrong(node, fmt::format("step {} comes as number {}", given, order), "number them from 0 on");
    if (troubles_ > before || step.action == Action::nothing) return step;
    step.from = {named(node, "srcbuf", kBuffers), number(node, "srcoff", -1, kMostChunks)};
    step.to = {named(node, "dstbuf", kBuffers), number(node, "dstoff", -1, kMostChunks)};
    step.count = number(node, "cnt", 1, kMostChunks, 1);
    if (troubles_ > before) return step;
    names_outputs_ = names_outputs_ || step.from.buffer == Buffer::output || step.to.buffer == Buffer::output;
    const Action action = step.action;
    const bool local = action == Action::copy || action == Action::reduce;
    const bool sends = action == Action::send || action == Action::receive_copy_send ||
                       action == Action::receive_reduce_send || action == Action::receive_reduce_copy_send;
    const bool receives = !local && action != Action::send;
    if (sends && block.send < 0) wrong(node, "a step that sends, in a thread block without 'send'");
    if (receives && block.receive < 0) wrong(node, "a step that receives, in a thread block without 'recv'");
    return step;
  }

  const std::string& text_;
  const std::string& name_;
  std::vector<std::size_t> lines_{0};  ///< where they begin
  Problems problems_;
  std::vector<std::string> warnings_;
  std::set<std::pair<std::string, std::string>> ignored_;  ///< attributes, with their elements
  bool names_outputs_ = false;                             ///< a step does that is no nop
  std::size_t troubles_ = 0;  ///< with elements so far, also such as follow from what was said
};

}  // namespace

File parse(const std::string& text, const std::string& name) { return Reader(text, name).read(); }

}  // namespace kernbench::ccl::msccl
