#include <fmt/format.h>
#include <sys/stat.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "tlm/config/bounded_text.h"
#include "tlm/config/config_node.h"
#include "tlm/config/json_text.h"
#include "tlm/config/nearest.h"

namespace kernbench {

namespace {

/// Text of a file by lines, to turn yaml-cpp's marks (0-based, columns in bytes) into locations (1-based, characters).
class Places {
 public:
  Places(const std::string& text, std::string file) : text_(text), file_(std::move(file)) {
    line_begin_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_begin_.push_back(i + 1);
    }
  }
  Location file() const { return {file_, 0, 0}; }
  Location at(const YAML::Mark& mark) const {
    if (mark.line < 0) return file();
    const auto line = std::min<std::size_t>(static_cast<std::size_t>(mark.line), line_begin_.size() - 1);
    return at_offset(line_begin_[line] + static_cast<std::size_t>(std::max(mark.column, 0)));
  }
  /// Text of a line, without its end.
  std::string line(const Location& where) const {
    if (where.line == 0) return {};
    const std::size_t begin = line_begin_[where.line - 1];
    return text_.substr(begin, text_.find('\n', begin) - begin);
  }
  Location at_offset(std::size_t offset) const {
    offset = std::min(offset, text_.size());
    const auto next = std::upper_bound(line_begin_.begin(), line_begin_.end(), offset);
    const auto line = static_cast<std::size_t>(next - line_begin_.begin());
    unsigned column = 1;
    for (std::size_t i = line_begin_[line - 1]; i < offset; ++i) {
      column += (static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80 ? 1 : 0;
    }
    return {file_, static_cast<unsigned>(line), column};
  }

 private:
  const std::string& text_;
  const std::string file_;
  std::vector<std::size_t> line_begin_;
};

void check_characters(const std::string& text, const Places& places) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F) {
      throw ConfigError(places.at_offset(i), fmt::format("byte 0x{:02x} is a control character", c),
                        "this is probably not a text file");
    }
    const std::size_t length = utf8_length(std::string_view(text).substr(i));
    if (length == 0) {
      throw ConfigError(places.at_offset(i), fmt::format("byte 0x{:02x} is not valid UTF-8", c),
                        "save the file as UTF-8");
    }
    i += length;
  }
}

/// Builds the located tree from yaml-cpp's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Places& places) : places_(places) {}
  ConfigNode root;
  Problems problems;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    ConfigNode node;
    node.where = places_.at(mark);
    add(std::move(node), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node;
    node.where = places_.at(mark);
    check_tag(tag, node.where);
    node.quoted = tag != "?" && !tag.empty();
    // yaml-cpp reports "~" and "null" as null only when it converts; here a plain one is no value.
    node.kind = !node.quoted && (value == "~" || value == "null" || value.empty()) ? ConfigNode::Kind::null
                                                                                   : ConfigNode::Kind::scalar;
    if (node.is_scalar()) node.text = value;
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      throw ConfigError(places_.at(mark), "an alias stands inside its own anchor", "write the value out");
    }
    ConfigNode copy = found->second;
    count(copy, places_.at(mark));
    if (copy.is_scalar() || copy.is_null()) copy.where = places_.at(mark);
    add(std::move(copy), 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, ConfigNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    ConfigNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;     ///< of a map: the next value belongs to `key`
    bool skip_value = false;  ///< that key is not usable
    std::string key = {};
    Location key_where = {};
  };

  void check_tag(const std::string& tag, const Location& where) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    problems.add(where, fmt::format("tag {} is not supported", quote(tag)), "remove it");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    Open level;
    level.node.kind = kind;
    level.node.where = places_.at(mark);
    level.anchor = anchor;
    check_tag(tag, level.node.where);
    if (stack_.size() >= kDeepestValues) {
      throw ConfigError(level.node.where, fmt::format("values are nested deeper than {} levels", kDeepestValues));
    }
    stack_.push_back(std::move(level));
  }

  void close() {
    Open level = std::move(stack_.back());
    stack_.pop_back();
    if (level.node.is_map()) apply_merge_key(level.node);
    add(std::move(level.node), level.anchor);
  }

  void add(ConfigNode node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (++nodes_ > kMaxConfigNodes) too_many(node.where);
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    Open& level = stack_.back();
    if (level.node.is_list()) {
      level.node.items.push_back(std::move(node));
    } else if (!level.has_key) {
      take_key(level, node);
    } else {
      level.has_key = false;
      if (!level.skip_value) level.node.entries.push_back({level.key, level.key_where, std::move(node)});
    }
  }

  /// Of the innermost level.
  std::string path() const {
    std::string path = "$";
    for (std::size_t i = 0; i + 1 < stack_.size(); ++i) {
      const Open& level = stack_[i];
      path = level.node.is_list() ? json_path(path, level.node.items.size()) : json_path(path, level.key);
    }
    return path;
  }

  void take_key(Open& level, const ConfigNode& key) {
    level.has_key = true;
    level.skip_value = true;
    if (!key.is_scalar()) {
      problems.add(key.where, "a key must be a word", "write 'key: value'");
      return;
    }
    if (const ConfigNode::Entry* old = level.node.entry(key.text)) {
      problems.add(key.where, fmt::format("key {} is given twice in {}", quote(key.text), path()),
                   fmt::format("the first one stands in line {}", old->key_where.line));
      return;
    }
    level.skip_value = false;
    level.key = key.text;
    level.key_where = key.where;
  }

  /// YAML 1.1 `<<: *anchor` or `<<: [*a, *b]`: keys that the map has keep their values.
  void apply_merge_key(ConfigNode& map) {
    const ConfigNode::Entry* entry = map.entry("<<");
    if (entry == nullptr) return;
    const ConfigNode merged = entry->value;
    map.entries.erase(map.entries.begin() + (entry - map.entries.data()));
    const std::vector<ConfigNode> sources = merged.is_list() ? merged.items : std::vector<ConfigNode>{merged};
    for (const ConfigNode& source : sources) {
      if (!source.is_map()) {
        problems.add(source.where, "'<<' takes a map, or a list of maps", "give an alias of one: '<<: *name'");
        continue;
      }
      for (const ConfigNode::Entry& add : source.entries) {
        if (map.entry(add.key) == nullptr) map.entries.push_back(add);
      }
    }
  }

  void count(const ConfigNode& node, const Location& where) {
    if (++nodes_ > kMaxConfigNodes) too_many(where);
    for (const ConfigNode& item : node.items) count(item, where);
    for (const ConfigNode::Entry& entry : node.entries) count(entry.value, where);
  }

  [[noreturn]] static void too_many(const Location& where) {
    throw ConfigError(where,
                      fmt::format("the file holds more than {} values once its aliases are copied", kMaxConfigNodes),
                      "use fewer aliases of aliases");
  }

  const Places& places_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  std::size_t nodes_ = 0;
};

std::string syntax_hint(const YAML::Exception& error, const std::string& line) {
  if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos) {
    return "tabs cannot indent YAML: use spaces";
  }
  if (error.msg.find("anchor") != std::string::npos) return "define it before, with '&name' in front of a value";
  return "check the indentation, colons and brackets around here";
}

/// One YAML document as a tree; null if the text has none.
ConfigNode parse_document(const std::string& text, const std::string& file, Problems* problems) {
  const Places places(text, file);
  check_characters(text, places);
  std::istringstream stream(text);
  TreeBuilder builder(places);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return {};
    TreeBuilder second(places);
    if (parser.HandleNextDocument(second) && !second.root.is_null()) {
      builder.problems.add(second.root.where, "a second YAML document begins here", "keep one document per file");
    }
  } catch (const YAML::Exception& error) {
    const Location where = places.at(error.mark);
    throw ConfigError(where, "not valid YAML: " + error.msg, syntax_hint(error, places.line(where)));
  }
  if (problems == nullptr) builder.problems.throw_if_any();
  if (problems != nullptr) *problems = builder.problems;
  return std::move(builder.root);
}

void relocate(ConfigNode& node, const Location& where) {
  node.where = where;
  for (ConfigNode& item : node.items) relocate(item, where);
  for (ConfigNode::Entry& entry : node.entries) {
    entry.key_where = where;
    relocate(entry.value, where);
  }
}

}  // namespace

ConfigNode parse_config(const std::string& text, const std::string& file, Problems* problems) {
  if (ends_with(file, ".json") && text.find_first_not_of(" \t\r\n") != std::string::npos)
    check_json(text, file, "check quotes, commas and brackets around here; YAML goes into a file named .yaml");
  constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";
  const bool marked = text.compare(0, 3, kByteOrderMark) == 0;
  ConfigNode root = parse_document(marked ? text.substr(3) : text, file, problems);
  if (root.is_null()) {
    throw ConfigError({file, 0, 0}, "the file is empty", "it must hold a map of 'key: value' lines");
  }
  if (!root.is_map()) {
    throw ConfigError(root.where,
                      root.is_list() ? "the file holds a list, not a map" : "the file holds a single value, not a map",
                      "it must hold a map of 'key: value' lines");
  }
  return root;
}

ConfigNode parse_config_value(const std::string& text, const Location& where) {
  ConfigNode value;
  try {
    value = parse_document(text, where.file, nullptr);
  } catch (const ConfigError& error) {
    throw ConfigError(where, error.problems().front().text);
  }
  relocate(value, where);
  return value;
}

void check_json(const std::string& text, const std::string& file, const std::string& hint) {
  try {
    parse_json(text);
  } catch (const JsonError& error) {
    if (error.too_deep || error.byte == 0 || error.byte > text.size() + 1) return;  // the reader of YAML says it
    const std::string before = text.substr(0, error.byte - 1);
    const auto line = static_cast<unsigned>(1 + std::count(before.begin(), before.end(), '\n'));
    const std::size_t start = before.rfind('\n') + 1;  // of the line; npos + 1 is 0
    throw ConfigError({file, line, static_cast<unsigned>(before.size() - start + 1)},
                      error.byte > text.size() ? "not valid JSON: it ends too early" : "not valid JSON", hint);
  }
}

ConfigNode load_config(const std::string& path, Problems* problems) {
  return parse_config(load_text(path), path, problems);
}

std::string load_text(const std::string& path, std::size_t most, const std::string& wanted,
                      const std::string& too_large) {
  const Location file{path, 0, 0};
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    throw ConfigError(file, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) throw ConfigError(file, "is a directory", wanted);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw ConfigError(file, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::optional<std::string> text = bounded_text(stream, most);
  if (stream.bad()) throw ConfigError(file, "cannot be read: input error");
  if (!text) throw ConfigError(file, fmt::format("is larger than {} MiB", most >> 20), too_large);
  return std::move(*text);
}

}  // namespace kernbench
