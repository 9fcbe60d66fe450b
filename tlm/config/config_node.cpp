#include "tlm/config/config_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "tlm/config/nearest.h"

namespace kernbench {

const ConfigNode::Entry* ConfigNode::entry(const std::string& key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const ConfigNode* ConfigNode::find(const std::string& key) const {
  const Entry* found = entry(key);
  return found == nullptr ? nullptr : &found->value;
}

ConfigNode* ConfigNode::find(const std::string& key) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->find(key));
}

const ConfigNode* ConfigNode::at_path(const std::string& dotted) const {
  const ConfigNode* node = this;
  for (std::size_t begin = 0; node != nullptr && begin <= dotted.size();) {
    const std::size_t end = std::min(dotted.find('.', begin), dotted.size());
    node = node->find(dotted.substr(begin, end - begin));
    begin = end + 1;
  }
  return node;
}

void ConfigNode::set(const std::string& key, const Location& key_where, ConfigNode value) {
  if (ConfigNode* old = find(key)) {
    *old = std::move(value);
  } else {
    entries.push_back({key, key_where, std::move(value)});
  }
}

ConfigNode ConfigNode::make_map(Location where) {
  ConfigNode node;
  node.kind = Kind::map;
  node.where = std::move(where);
  return node;
}

ConfigNode merge(ConfigNode base, const ConfigNode& over) {
  if (!base.is_map() || !over.is_map()) return over;
  for (const ConfigNode::Entry& entry : over.entries) {
    if (ConfigNode* old = base.find(entry.key)) {
      *old = merge(std::move(*old), entry.value);
    } else {
      base.entries.push_back(entry);
    }
  }
  return base;
}

namespace {
void print(const ConfigNode& node, const std::string& path, std::string& out) {
  const auto line = [&](const std::string& value) {
    out += fmt::format("{} = {}  # {}\n", path, value, node.where.str());
  };
  switch (node.kind) {
    case ConfigNode::Kind::null:
      line("null");
      break;
    case ConfigNode::Kind::scalar:
      line(node.quoted ? quote(node.text) : node.text);
      break;
    case ConfigNode::Kind::list:
      if (node.items.empty()) line("[]");
      for (std::size_t i = 0; i < node.items.size(); ++i) print(node.items[i], fmt::format("{}[{}]", path, i), out);
      break;
    case ConfigNode::Kind::map:
      if (node.entries.empty() && !path.empty()) line("{}");
      for (const ConfigNode::Entry& entry : node.entries) {
        print(entry.value, path.empty() ? entry.key : path + "." + entry.key, out);
      }
      break;
  }
}
}  // namespace

std::string print_located(const ConfigNode& root) {
  std::string out;
  print(root, "", out);
  return out;
}

std::string json_path(const std::string& parent, const std::string& key) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  bool plain = !key.empty();
  for (const char c : key) plain = plain && word(c);
  return plain ? parent + "." + key : parent + "[" + quote(key) + "]";
}

std::string json_path(const std::string& parent, std::size_t item) { return fmt::format("{}[{}]", parent, item); }

}  // namespace kernbench
