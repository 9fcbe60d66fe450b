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

/// What else is said of a field, joined by |. See Field.
using Marks = unsigned;
inline constexpr Marks kMore = 1, kLess = 2;  ///< larger, smaller is better
inline constexpr Marks kRequired = 4, kOptional = 8, kUniform = 16, kPaces = 32;
inline constexpr Marks kMandatory = 0;  ///< of a text, which is optional else

/// Builds the table of one struct. `member`: a pointer to member, or a callable from the struct to a reference.
template <class Struct>
class SectionOf {
 public:
  template <class Member>
  SectionOf& integer(const char* key, Member member, IntegerRange range, const char* doc, Marks marks = 0) {
    Field& field = bind<std::uint64_t>(key, FieldKind::integer, member, doc, marks);
    field.range = range;
    return *this;
  }
  template <class Member>
  SectionOf& quantity(const char* key, Member member, Dimension dimension, IntegerRange range, const char* doc,
                      Marks marks = 0) {
    const bool rate =
        dimension == Dimension::bandwidth || dimension == Dimension::frequency || dimension == Dimension::transfers;
    if ((marks & (kMore | kLess)) == 0) marks |= rate ? kMore : dimension == Dimension::time ? kLess : 0;
    Field& field = bind<std::uint64_t>(key, FieldKind::quantity, member, doc, marks);
    field.dimension = dimension;
    field.range = range;
    return *this;
  }
  template <class Member>
  SectionOf& time(const char* key, Member member, const char* doc) {
    return quantity(key, member, Dimension::time, kAnyTime, doc);
  }
  template <class Member>
  SectionOf& boolean(const char* key, Member member, const char* doc) {
    bind<std::uint64_t>(key, FieldKind::boolean, member, doc, 0);
    return *this;
  }
  /// Enumerators must count from 0 in the order of `names`.
  template <class Member>
  SectionOf& enumeration(const char* key, Member member, const std::vector<std::string>& names, const char* doc,
                         Marks marks = 0) {
    bind<std::uint64_t>(key, FieldKind::enumeration, member, doc, marks).names = names;
    return *this;
  }
  template <class Member, std::size_t N>
  SectionOf& enumeration(const char* key, Member member, const char* const (&names)[N], const char* doc) {
    return enumeration(key, member, std::vector<std::string>(names, names + N), doc);
  }
  template <class Parts, class Whole>
  SectionOf& ratio(const char* key, Parts parts, Whole whole, const char* doc) {
    Field& field = add(key, FieldKind::ratio, doc, 0);
    field.get = [=](const void* object) -> FieldValue {
      const auto& source = *static_cast<const Struct*>(object);
      return Ratio{std::invoke(parts, source), std::invoke(whole, source)};
    };
    field.set = [=](void* object, const FieldValue& value) {
      auto& target = *static_cast<Struct*>(object);
      std::invoke(parts, target) = std::get<Ratio>(value).parts;
      std::invoke(whole, target) = std::get<Ratio>(value).whole;
    };
    return *this;
  }
  template <class Member>
  SectionOf& points(const char* key, FieldKind kind, Member member, const char* doc) {
    bind<std::vector<GridPoint>>(key, kind, member, doc, kOptional | kUniform);
    return *this;
  }
  template <class Member>
  SectionOf& text(const char* key, Member member, const char* doc, Marks marks = kOptional) {
    bind<std::string>(key, FieldKind::text, member, doc, marks);
    return *this;
  }
  SectionOf& custom(Field field) {
    section_.fields.push_back(std::move(field));
    return *this;
  }
  /// A key of the file that binds no struct: `extends`, `overrides`.
  SectionOf& unbound(const char* key, FieldKind kind, const char* doc) {
    add(key, kind, doc, kOptional);
    return *this;
  }
  /// A nested map that binds a member of this struct.
  template <class Member>
  SectionOf& section(const char* key, Member member, Section nested, const char* doc, Marks marks = 0) {
    return enter(
        key, [=](void* object) -> void* { return &std::invoke(member, *static_cast<Struct*>(object)); },
        std::move(nested), doc, marks);
  }
  /// A nested map whose keys are members of this same struct.
  SectionOf& group(const char* key, const SectionOf& nested, const char* doc) {
    return enter(
        key, [](void* object) { return object; }, nested, doc);
  }
  operator Section() const { return section_; }  // NOLINT(google-explicit-constructor): ends the chain

 private:
  Field& add(const char* key, FieldKind kind, const char* doc, Marks marks) {
    Field& field = section_.fields.emplace_back();
    field.key = key;
    field.kind = kind;
    field.doc = doc;
    field.better = (marks & kMore) != 0 ? Better::larger : (marks & kLess) != 0 ? Better::smaller : Better::none;
    field.required = (marks & kRequired) != 0;
    field.optional = (marks & kOptional) != 0;
    field.uniform = (marks & kUniform) != 0;
    field.paces_block = (marks & kPaces) != 0;
    return field;
  }
  /// A field whose values are Value, or numbers of the member's type.
  template <class Value, class Member>
  Field& bind(const char* key, FieldKind kind, Member member, const char* doc, Marks marks) {
    Field& field = add(key, kind, doc, marks);
    field.get = [=](const void* object) -> FieldValue {
      return static_cast<Value>(std::invoke(member, *static_cast<const Struct*>(object)));
    };
    field.set = [=](void* object, const FieldValue& value) {
      auto& target = std::invoke(member, *static_cast<Struct*>(object));
      target = static_cast<std::decay_t<decltype(target)>>(std::get<Value>(value));
    };
    return field;
  }
  SectionOf& enter(const char* key, std::function<void*(void*)> enter, Section nested, const char* doc,
                   Marks marks = 0) {
    Field& field = add(key, FieldKind::section, doc, marks);
    field.enter = std::move(enter);
    field.section = std::make_shared<const Section>(std::move(nested));
    return *this;
  }

  Section section_;
};

Section noc();
Section ucie();
Section cube();
Section pe();

}  // namespace kernbench::topology
