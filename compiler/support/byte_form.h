// Values as bytes and back, for what svod-pack keeps for itself: numbers as they lie in
// memory, a list after its length, an aggregate field by field. Nothing in the bytes says
// what they are of, so only the same build of svod-pack may read them; and only what a
// checksum has found whole. A reader still checks every length against what is left: a
// wrong one ends in failed(), not in a crash.
#pragma once

#include "compiler/support/fields.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace svod {

namespace byte_form_detail {

template <class T>
inline constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class T> struct IsArray : std::false_type {};
template <class T, size_t N> struct IsArray<std::array<T, N>> : std::true_type {};

// Types whose parts no binding reaches: classes, and aggregates with a base.
struct IgnoreParts {
  void operator()(auto&...) const {}
};
template <class T>
concept HasParts = requires(T& value) { value.with_parts(IgnoreParts()); };

} // namespace byte_form_detail

class ByteWriter {
public:
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

  void raw(std::span<const std::byte> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }

  template <class T> void put(const T& value) {
    using namespace byte_form_detail;
    if constexpr (kIsPlain<T>) {
      raw(std::as_bytes(std::span(&value, 1)));
    } else if constexpr (IsArray<T>::value) {
      for (const auto& element : value) put(element);
    } else if constexpr (HasParts<T>) {
      value.with_parts([&](const auto&... parts) { (put(parts), ...); });
    } else {
      with_fields(value, [&](const auto&... fields) { (put(fields), ...); });
    }
  }
  template <class T> void put(const std::vector<T>& list) {
    put(uint64_t{list.size()});
    if constexpr (byte_form_detail::kIsPlain<T>)
      raw(std::as_bytes(std::span(list)));
    else
      for (const T& element : list) put(element);
  }
  void put(const std::string& text) {
    put(uint64_t{text.size()});
    raw(std::as_bytes(std::span(text)));
  }
  template <class T> void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class A, class B> void put(const std::pair<A, B>& value) {
    put(value.first);
    put(value.second);
  }
  template <class K, class V> void put(const std::map<K, V>& map) {
    put(uint64_t{map.size()});
    for (const auto& [key, value] : map) put(key), put(value);
  }
  template <class T> void put(const std::set<T>& set) {
    put(uint64_t{set.size()});
    for (const T& element : set) put(element);
  }
  template <class... T> void put(const std::variant<T...>& value) {
    put(static_cast<uint8_t>(value.index()));
    std::visit(
        [&]<class V>(const V& held) {
          if constexpr (!std::is_same_v<V, std::monostate>) put(held);
        },
        value);
  }

private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}
  // Something did not fit; all that was read is worth nothing.
  bool failed() const { return failed_; }
  void fail() { failed_ = true, left_ = {}; }
  bool at_end() const { return left_.empty(); }

  std::span<const std::byte> raw(uint64_t size) {
    if (size > left_.size()) {
      fail();
      return {};
    }
    const std::span<const std::byte> out = left_.first(size);
    left_ = left_.subspan(size);
    return out;
  }

  template <class T> T get() {
    T value{};
    get(value);
    return value;
  }
  template <class T> void get(T& value) {
    using namespace byte_form_detail;
    if constexpr (std::is_same_v<T, bool>) {
      const auto from = get<uint8_t>();
      if (from > 1) fail();
      value = from == 1;
    } else if constexpr (kIsPlain<T>) {
      const std::span<const std::byte> from = raw(sizeof value);
      if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    } else if constexpr (IsArray<T>::value) {
      for (auto& element : value) get(element);
    } else if constexpr (HasParts<T>) {
      value.with_parts([&](auto&... parts) { (get(parts), ...); });
    } else {
      with_fields(value, [&](auto&... fields) { (get(fields), ...); });
    }
  }
  template <class T> void get(std::vector<T>& list) {
    const auto count = get<uint64_t>();
    if constexpr (byte_form_detail::kIsPlain<T>) {
      const std::span<const std::byte> from =
          raw(count > left_.size() ? UINT64_MAX : count * sizeof(T));
      list.resize(from.size() / sizeof(T));
      if (!from.empty()) std::memcpy(list.data(), from.data(), from.size());
    } else {
      list.clear();
      for (uint64_t i = 0; i < count && !failed_; i++) get(list.emplace_back());
    }
  }
  void get(std::string& text) {
    const std::span<const std::byte> from = raw(get<uint64_t>());
    text.assign(reinterpret_cast<const char*>(from.data()), from.size());
  }
  template <class T> void get(std::optional<T>& value) {
    value.reset();
    if (get<bool>()) get(value.emplace());
  }
  template <class A, class B> void get(std::pair<A, B>& value) {
    get(value.first);
    get(value.second);
  }
  template <class K, class V> void get(std::map<K, V>& map) {
    map.clear();
    for (auto count = get<uint64_t>(); count > 0 && !failed_; count--) {
      K key{};
      get(key);
      get(map[std::move(key)]);
    }
  }
  template <class T> void get(std::set<T>& set) {
    set.clear();
    for (auto count = get<uint64_t>(); count > 0 && !failed_; count--)
      set.insert(get<T>());
  }
  template <class... T> void get(std::variant<T...>& value) {
    const auto index = get<uint8_t>();
    uint8_t at = 0;
    const auto one = [&]<class V>(std::type_identity<V>) {
      if (at++ != index) return;
      V& held = value.template emplace<V>();
      if constexpr (!std::is_same_v<V, std::monostate>) get(held);
    };
    (one(std::type_identity<T>()), ...);
    if (index >= sizeof...(T)) fail();
  }

private:
  std::span<const std::byte> left_;
  bool failed_ = false;
};

// One value as a text of bytes, and back: nothing where the text is of no such value.
template <class T> std::string byte_text(const T& value) {
  ByteWriter out;
  out.put(value);
  return {reinterpret_cast<const char*>(out.bytes().data()), out.bytes().size()};
}

template <class T> std::optional<T> value_of(const std::string& text) {
  ByteReader in(std::as_bytes(std::span(text)));
  T out = in.get<T>();
  return in.failed() || !in.at_end() ? std::nullopt : std::optional<T>(std::move(out));
}

} // namespace svod
