#pragma once
#include <algorithm>

#include "tlm/machine/address.h"
#include "topology/spec/schema.h"

/// For the files of the schema table alone: how a section's fields are written down, the ranges they share, and the
/// sections that one file builds and another one uses.
namespace kernbench::topology {

inline constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;
inline constexpr std::uint64_t kMegabyte = 1'000'000, kTerabyte = 1'000'000'000'000;
inline constexpr std::uint64_t kMillisecond = 1'000'000'000;  // ps
inline constexpr std::uint64_t kMHz = 1'000'000, kGHz = 1'000'000'000;

inline constexpr IntegerRange kAnyTime{0, kMillisecond};
inline constexpr IntegerRange kAnyClock{kMHz, 100 * kGHz};
inline constexpr IntegerRange kAnyBandwidth{kMegabyte, 1000 * kTerabyte};
inline constexpr IntegerRange kQueue{1, 65'536};
inline constexpr IntegerRange kAnyEnergy{0, 1'000'000'000'000};  // 1 uJ
inline constexpr IntegerRange kAnyPower{0, 1'000'000'000};       // 1 kW
inline constexpr IntegerRange kCycles{0, 1'000};
inline constexpr IntegerRange kTiming{0, 1'000'000};
inline constexpr IntegerRange kErrors{0, 1'000'000'000'000'000};  // 10^-3
inline constexpr IntegerRange kBitEnergy{0, 1'000'000'000};       // 1 nJ
/// An offset within one unit of the physical address has 33 bits.
inline constexpr std::uint64_t kUnitBytes = PhysicalAddress::kMaxOffset + 1;

/// Builds the table of one struct. `member`: a pointer to member, or a callable from the struct to a reference.
template <class Struct>
class SectionOf {
 public:
  template <class Member>
  SectionOf& integer(const char* key, Member member, IntegerRange range, const char* doc) {
    Field& field = add<Member>(key, FieldKind::integer, member, doc);
    field.range = range;
    return *this;
  }
  template <class Member>
  SectionOf& quantity(const char* key, Member member, Dimension dimension, IntegerRange range, const char* doc) {
    Field& field = add<Member>(key, FieldKind::quantity, member, doc);
    field.dimension = dimension;
    field.range = range;
    const bool rate =
        dimension == Dimension::bandwidth || dimension == Dimension::frequency || dimension == Dimension::transfers;
    field.better = rate ? Better::larger : dimension == Dimension::time ? Better::smaller : Better::none;
    return *this;
  }
  template <class Member>
  SectionOf& time(const char* key, Member member, const char* doc) {
    return quantity(key, member, Dimension::time, kAnyTime, doc);
  }
  template <class Member>
  SectionOf& boolean(const char* key, Member member, const char* doc) {
    add<Member>(key, FieldKind::boolean, member, doc);
    return *this;
  }
  /// Enumerators must count from 0 in the order of `names`.
  template <class Member>
  SectionOf& enumeration(const char* key, Member member, const std::vector<std::string>& names, const char* doc) {
    add<Member>(key, FieldKind::enumeration, member, doc).names = names;
    return *this;
  }
  template <class Member, std::size_t N>
  SectionOf& enumeration(const char* key, Member member, const char* const (&names)[N], const char* doc) {
    return enumeration(key, member, std::vector<std::string>(names, names + N), doc);
  }
  template <class Parts, class Whole>
  SectionOf& ratio(const char* key, Parts parts, Whole whole, const char* doc) {
    Field field;
    field.key = key;
    field.kind = FieldKind::ratio;
    field.doc = doc;
    field.get = [=](const void* object) -> FieldValue {
      const auto& source = *static_cast<const Struct*>(object);
      return Ratio{std::invoke(parts, source), std::invoke(whole, source)};
    };
    field.set = [=](void* object, const FieldValue& value) {
      auto& target = *static_cast<Struct*>(object);
      std::invoke(parts, target) = std::get<Ratio>(value).parts;
      std::invoke(whole, target) = std::get<Ratio>(value).whole;
    };
    section_.fields.push_back(std::move(field));
    return *this;
  }
  template <class Member>
  SectionOf& points(const char* key, FieldKind kind, Member member, const char* doc) {
    Field field;
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.optional = true;
    field.uniform = true;
    field.get = [=](const void* object) -> FieldValue {
      return std::invoke(member, *static_cast<const Struct*>(object));
    };
    field.set = [=](void* object, const FieldValue& value) {
      std::invoke(member, *static_cast<Struct*>(object)) = std::get<std::vector<GridPoint>>(value);
    };
    section_.fields.push_back(std::move(field));
    return *this;
  }
  template <class Member>
  SectionOf& text(const char* key, Member member, const char* doc) {
    Field field;
    field.key = key;
    field.kind = FieldKind::text;
    field.doc = doc;
    field.optional = true;
    field.get = [=](const void* object) -> FieldValue {
      return std::invoke(member, *static_cast<const Struct*>(object));
    };
    field.set = [=](void* object, const FieldValue& value) {
      std::invoke(member, *static_cast<Struct*>(object)) = std::get<std::string>(value);
    };
    section_.fields.push_back(std::move(field));
    return *this;
  }
  SectionOf& custom(Field field) { return section_.fields.push_back(std::move(field)), *this; }
  /// A key of the file that binds no struct: `extends`, `overrides`.
  SectionOf& unbound(const char* key, FieldKind kind, const char* doc) {
    Field field;
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.optional = true;
    section_.fields.push_back(std::move(field));
    return *this;
  }
  /// A nested map that binds a member of this struct.
  template <class Member>
  SectionOf& section(const char* key, Member member, Section nested, const char* doc) {
    return enter(
        key, [=](void* object) -> void* { return &std::invoke(member, *static_cast<Struct*>(object)); },
        std::move(nested), doc);
  }
  /// A nested map whose keys are members of this same struct.
  SectionOf& group(const char* key, const SectionOf& nested, const char* doc) {
    return enter(
        key, [](void* object) { return object; }, nested, doc);
  }
  SectionOf& mandatory() { return section_.fields.back().optional = false, *this; }
  SectionOf& required() { return section_.fields.back().required = true, *this; }
  SectionOf& optional() { return section_.fields.back().optional = true, *this; }
  SectionOf& uniform() { return section_.fields.back().uniform = true, *this; }
  SectionOf& larger_is_better() { return section_.fields.back().better = Better::larger, *this; }
  SectionOf& smaller_is_better() { return section_.fields.back().better = Better::smaller, *this; }
  SectionOf& paces_block() { return section_.fields.back().paces_block = true, *this; }
  operator Section() const { return section_; }  // NOLINT(google-explicit-constructor): ends the chain

 private:
  template <class Member>
  Field& add(const char* key, FieldKind kind, Member member, const char* doc) {
    Field field;
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.get = [=](const void* object) -> FieldValue {
      return static_cast<std::uint64_t>(std::invoke(member, *static_cast<const Struct*>(object)));
    };
    field.set = [=](void* object, const FieldValue& value) {
      auto& target = std::invoke(member, *static_cast<Struct*>(object));
      target = static_cast<std::decay_t<decltype(target)>>(std::get<std::uint64_t>(value));
    };
    section_.fields.push_back(std::move(field));
    return section_.fields.back();
  }
  SectionOf& enter(const char* key, std::function<void*(void*)> enter, Section nested, const char* doc) {
    Field field;
    field.key = key;
    field.kind = FieldKind::section;
    field.doc = doc;
    field.enter = std::move(enter);
    field.section = std::make_shared<const Section>(std::move(nested));
    section_.fields.push_back(std::move(field));
    return *this;
  }

  Section section_;
};

Section noc();
Section ucie();
Section cube();
Section pe();

}  // namespace kernbench::topology
