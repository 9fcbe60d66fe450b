#include "ccl/import/msccl_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <pugixml.hpp>
#include <set>

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
    {"allreduce", CollectiveOp::all_reduce},         {"allgather", CollectiveOp::all_gather},
    {"reducescatter", CollectiveOp::reduce_scatter}, {"reduce_scatter", CollectiveOp::reduce_scatter},
    {"alltoall", CollectiveOp::all_to_all},          {"broadcast", CollectiveOp::broadcast},
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

class Reader {
 public:
  Reader(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  File read() {
    pugi::xml_document document;
    const unsigned all_text = pugi::parse_default | pugi::parse_fragment;
    const pugi::xml_parse_result result = document.load_buffer(text_.data(), text_.size(), all_text);
    if (!result) throw ConfigError(at(result.offset), std::string("no XML: ") + result.description());
    const pugi::xml_node algo = only_element(document);
    if (std::string(algo.name()) != "algo")
      fail(algo, fmt::format("'{}' is no 'algo'", algo.name()), "give an MSCCL algorithm file");
    check_attributes(algo);
    File file;
    file.where = where(algo);
    file.name = algo.attribute("name").as_string("msccl");
    file.op = named(algo, "coll", kOps);
    file.in_place = number(algo, "inplace", 0, 1, 0) == 1;
    const std::int32_t gpus = number(algo, "ngpus", 1, kMostGpus);
    file.chunks = number(algo, "nchunksperloop", 1, kMostChunks);
    const std::int64_t all = std::int64_t{gpus} * file.chunks;
    if (all > kMostChunksOfAll)
      fail(algo, fmt::format("{} gpus of {} chunks have {} chunks", gpus, file.chunks, all),
           fmt::format("give at most {}", kMostChunksOfAll));
    file.gpus.resize(static_cast<std::size_t>(gpus));
    std::vector<bool> seen(file.gpus.size());
    for (const pugi::xml_node node : children(algo, "gpu")) {
      const std::int32_t id = number(node, "id", 0, gpus - 1);
      if (seen[static_cast<std::size_t>(id)]) fail(node, fmt::format("gpu {} stands here twice", id), "");
      seen[static_cast<std::size_t>(id)] = true;
      file.gpus[static_cast<std::size_t>(id)] = gpu(node, id, gpus);
    }
    for (std::size_t id = 0; id < seen.size(); ++id) {
      if (!seen[id])
        fail(algo, fmt::format("there is no gpu {}", id), fmt::format("give one for each of ngpus = {}", gpus));
    }
    return file;
  }

 private:
  Location at(std::ptrdiff_t offset) const {
    Location place{name_, 1, 1};
    const auto end = text_.begin() + std::min<std::ptrdiff_t>(std::max<std::ptrdiff_t>(offset, 0),
                                                              static_cast<std::ptrdiff_t>(text_.size()));
    for (auto c = text_.begin(); c != end; ++c) {
      ++place.column;
      if (*c != '\n') continue;
      ++place.line;
      place.column = 1;
    }
    return place;
  }
  Location where(const pugi::xml_node& node) const { return at(node.offset_debug() - 1); }  // of its '<'
  /// pugixml knows the places of elements only; names of both lie in its copy of the text, an element's after its '<'.
  Location where(const pugi::xml_node& node, const pugi::xml_attribute& attribute) const {
    return at(node.offset_debug() + (attribute.name() - node.name()));
  }
  void check_attributes(const pugi::xml_node& node) const {
    const std::vector<std::string>& known = kAttributes.at(node.name());
    std::set<std::string> seen;
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string name = attribute.name();
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        throw ConfigError(where(node, attribute), fmt::format("unknown attribute {} of '{}'", quote(name), node.name()),
                          suggest(name, known, "attributes are"));
      }
      if (!seen.insert(name).second) {
        throw ConfigError(where(node, attribute),
                          fmt::format("attribute '{}' of '{}' stands here twice", name, node.name()),
                          "remove one of them");
      }
    }
  }
  [[noreturn]] void fail(const pugi::xml_node& node, const std::string& text, const std::string& hint) const {
    throw ConfigError(where(node), text, hint);
  }

  void refuse_text(const pugi::xml_node& node) const {
    if (node.type() != pugi::node_pcdata && node.type() != pugi::node_cdata) return;
    const std::string value = node.value();
    const auto blanks = static_cast<std::ptrdiff_t>(std::min(value.find_first_not_of(" \t\r\n"), value.size()));
    throw ConfigError(at(node.offset_debug() + blanks), "text that belongs to no element", "remove it");
  }

  pugi::xml_node only_element(const pugi::xml_document& document) const {
    const pugi::xml_node first = document.document_element();
    for (const pugi::xml_node node : document.children()) {
      refuse_text(node);
      if (node.type() == pugi::node_element && node != first)
        fail(node, fmt::format("'{}' after the end of '{}'", node.name(), first.name()), "give one 'algo' in a file");
    }
    if (!first) throw ConfigError(at(0), "no XML: there is no element", "give an MSCCL algorithm file");
    return first;
  }

  /// `name`: of all; null: there must be none.
  std::vector<pugi::xml_node> children(const pugi::xml_node& node, const char* name) const {
    std::vector<pugi::xml_node> list;
    for (const pugi::xml_node child : node.children()) {
      refuse_text(child);
      if (child.type() != pugi::node_element) continue;
      if (name == nullptr) fail(child, fmt::format("'{}' inside of '{}'", child.name(), node.name()), "remove it");
      if (std::string(child.name()) != name)
        fail(child, fmt::format("'{}' inside of '{}'", child.name(), node.name()), fmt::format("give '{}' only", name));
      check_attributes(child);
      list.push_back(child);
    }
    return list;
  }

  std::string text(const pugi::xml_node& node, const char* name) const {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) fail(node, fmt::format("'{}' has no '{}'", node.name(), name), "");
    return attribute.value();
  }
  std::int32_t number(const pugi::xml_node& node, const char* name, std::int32_t least, std::int32_t most) const {
    const std::string value = text(node, name);
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
      fail(node, fmt::format("{} of '{}' is '{}'", name, node.name(), value),
           fmt::format("give an integer from {} to {}", least, most));
    }
    return number;
  }
  std::int32_t number(const pugi::xml_node& node, const char* name, std::int32_t least, std::int32_t most,
                      std::int32_t otherwise) const {
    return node.attribute(name) ? number(node, name, least, most) : otherwise;
  }
  template <class Value>
  Value named(const pugi::xml_node& node, const char* name, const std::map<std::string, Value>& values) const {
    const std::string value = text(node, name);
    const auto found = values.find(value);
    if (found != values.end()) return found->second;
    std::vector<std::string> names;
    names.reserve(values.size());
    for (const auto& entry : values) names.push_back(entry.first);
    fail(node, fmt::format("{} of '{}' is '{}'", name, node.name(), value), suggest(value, names, "served are"));
  }

  Gpu gpu(const pugi::xml_node& node, std::int32_t id, std::int32_t gpus) const {
    Gpu gpu;
    gpu.id = id;
    for (const pugi::xml_node tb : children(node, "tb")) {
      ThreadBlock block;
      block.where = where(tb);
      block.id = number(tb, "id", 0, 1 << 16);
      if (block.id != static_cast<std::int32_t>(gpu.blocks.size()))
        fail(tb, fmt::format("thread block {} comes as number {}", block.id, gpu.blocks.size()),
             "number them from 0 on");
      block.send = number(tb, "send", -1, gpus - 1);
      block.receive = number(tb, "recv", -1, gpus - 1);
      block.channel = number(tb, "chan", 0, 1 << 16, 0);
      if (block.send == id || block.receive == id)
        fail(tb, fmt::format("gpu {} exchanges with itself", id), "copy with 'cpy'");
      for (const pugi::xml_node child : children(tb, "step")) {
        block.steps.push_back(step(child, block));
        const std::int32_t given = number(child, "s", 0, 1 << 24);
        if (given + 1 != static_cast<std::int32_t>(block.steps.size()))
          fail(child, fmt::format("step {} comes as number {}", given, block.steps.size() - 1),
               "number them from 0 on");
      }
      gpu.blocks.push_back(std::move(block));
    }
    for (const ThreadBlock& block : gpu.blocks) check_dependences(gpu, block);
    return gpu;
  }

  static void check_dependences(const Gpu& gpu, const ThreadBlock& block) {
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
      const FileStep& step = block.steps[s];
      if (step.after_block < 0) continue;
      const auto other = static_cast<std::size_t>(step.after_block);
      if (other >= gpu.blocks.size() || step.after_step < 0 ||
          static_cast<std::size_t>(step.after_step) >= gpu.blocks[other].steps.size()) {
        throw ConfigError(step.where, fmt::format("depends on step {} of thread block {}, which does not exist",
                                                  step.after_step, step.after_block));
      }
      if (step.after_block == block.id && static_cast<std::size_t>(step.after_step) >= s) {
        throw ConfigError(step.where,
                          fmt::format("step {} depends on step {} of its own thread block, which is not before it", s,
                                      step.after_step),
                          "steps of a thread block run one after the other");
      }
    }
  }

  FileStep step(const pugi::xml_node& node, const ThreadBlock& block) const {
    FileStep step;
    step.where = where(node);
    children(node, nullptr);
    step.action = named(node, "type", kActions);
    step.after_block = number(node, "depid", -1, 1 << 16, -1);
    step.after_step = number(node, "deps", -1, 1 << 24, -1);
    if (step.action == Action::nothing) return step;
    step.from = {named(node, "srcbuf", kBuffers), number(node, "srcoff", -1, kMostChunks)};
    step.to = {named(node, "dstbuf", kBuffers), number(node, "dstoff", -1, kMostChunks)};
    step.count = number(node, "cnt", 1, kMostChunks, 1);
    const Action action = step.action;
    const bool local = action == Action::copy || action == Action::reduce;
    const bool sends = action == Action::send || action == Action::receive_copy_send ||
                       action == Action::receive_reduce_send || action == Action::receive_reduce_copy_send;
    const bool receives = !local && action != Action::send;
    if (sends && block.send < 0) fail(node, "a step that sends, in a thread block without 'send'", "");
    if (receives && block.receive < 0) fail(node, "a step that receives, in a thread block without 'recv'", "");
    return step;
  }

  const std::string& text_;
  const std::string& name_;
};

}  // namespace

File parse(const std::string& text, const std::string& name) { return Reader(text, name).read(); }

}  // namespace kernbench::ccl::msccl
