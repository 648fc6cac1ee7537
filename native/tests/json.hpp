#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "test.hpp"

namespace mashbox::test {

/// A JSON document for golden files: `json["cases"][0]["tokens"].ints()`. Every mismatch throws and so fails the test.
class Json {
public:
  using List = std::vector<Json>;
  using Members = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  explicit Json(bool value) : value_(value) {}
  explicit Json(double value) : value_(value) {}
  explicit Json(std::string value) : value_(std::move(value)) {}
  explicit Json(List value) : value_(std::move(value)) {}
  explicit Json(Members value) : value_(std::move(value)) {}

  static Json parse(std::string_view text);
  static Json load(const std::filesystem::path& path) { return parse(readFile(path)); }

  bool isNull() const { return value_.index() == 0; }
  bool isString() const { return std::holds_alternative<std::string>(value_); }
  bool isObject() const { return std::holds_alternative<Members>(value_); }
  bool boolean() const { return get<bool>("a boolean"); }
  double number() const { return get<double>("a number"); }
  int64_t integer() const { return static_cast<int64_t>(number()); }
  const std::string& string() const { return get<std::string>("a string"); }
  const List& list() const { return get<List>("an array"); }
  const Members& members() const { return get<Members>("an object"); }
  std::vector<int32_t> ints() const {
    std::vector<int32_t> all;
    for (const Json& item : list()) all.push_back(static_cast<int32_t>(item.number()));
    return all;
  }

  /// The member of that name; null when there is none.
  const Json* find(std::string_view name) const {
    for (const auto& [key, value] : members())
      if (key == name) return &value;
    return nullptr;
  }
  const Json& operator[](std::string_view name) const {
    if (const Json* value = find(name)) return *value;
    throw std::runtime_error("JSON has no member " + std::string(name));
  }
  const Json& operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  const Json& operator[](size_t index) const { return list().at(index); }
  size_t size() const { return isObject() ? members().size() : list().size(); }

private:
  class Parser;

  template <class T> const T& get(const char* what) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    throw std::runtime_error(std::string("JSON value is not ") + what);
  }

  std::variant<std::monostate, bool, double, std::string, List, Members> value_;
};

class Json::Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json document() {
    Json result = value();
    skipSpace();
    if (at_ != text_.size()) fail("text after the document");
    return result;
  }

private:
  [[noreturn]] void fail(const char* what) const { throw std::runtime_error("JSON at byte " + std::to_string(at_) + ": " + what); }

  void skipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char peek() {
    skipSpace();
    if (at_ == text_.size()) fail("unexpected end");
    return text_[at_];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("unexpected character");
  }
  Json literal(std::string_view word, Json result) {
    if (text_.substr(at_, word.size()) != word) fail("unknown literal");
    at_ += word.size();
    return result;
  }

  Json value() {
    switch (peek()) {
      case '{': return object();
      case '[': return array();
      case '"': return Json(string());
      case 't': return literal("true", Json(true));
      case 'f': return literal("false", Json(false));
      case 'n': return literal("null", Json());
      default: return number();
    }
  }

  Json object() {
    Members members;
    expect('{');
    if (accept('}')) return Json(std::move(members));
    do {
      if (peek() != '"') fail("a member needs a name");
      std::string name = string();
      expect(':');
      members.emplace_back(std::move(name), value());
    } while (accept(','));
    expect('}');
    return Json(std::move(members));
  }

  Json array() {
    List items;
    expect('[');
    if (accept(']')) return Json(std::move(items));
    do items.push_back(value());
    while (accept(','));
    expect(']');
    return Json(std::move(items));
  }

  Json number() {
    double result = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), result);
    if (error != std::errc()) fail("not a number");
    at_ = static_cast<size_t>(end - text_.data());
    return Json(result);
  }

  uint32_t hex4() {
    uint32_t code = 0;
    if (text_.size() - at_ < 4) fail("short \\u escape");
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, code, 16);
    if (error != std::errc() || end != text_.data() + at_ + 4) fail("bad \\u escape");
    at_ += 4;
    return code;
  }

  static void appendUtf8(std::string& out, uint32_t code) {
    if (code < 0x80) {
      out += char(code);
    } else if (code < 0x800) {
      out += {char(0xc0 | code >> 6), char(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      out += {char(0xe0 | code >> 12), char(0x80 | (code >> 6 & 63)), char(0x80 | (code & 63))};
    } else {
      out += {char(0xf0 | code >> 18), char(0x80 | (code >> 12 & 63)), char(0x80 | (code >> 6 & 63)), char(0x80 | (code & 63))};
    }
  }

  void escape(std::string& out) {
    if (at_ == text_.size()) fail("unexpected end");
    switch (const char c = text_[at_++]) {
      case 'n': out += '\n'; return;
      case 't': out += '\t'; return;
      case 'r': out += '\r'; return;
      case 'b': out += '\b'; return;
      case 'f': out += '\f'; return;
      case 'u': break;
      default: out += c; return;
    }
    uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (hex4() - 0xdc00);
    }
    appendUtf8(out, code);
  }

  std::string string() {
    std::string out;
    expect('"');
    for (;;) {
      const size_t stop = text_.find_first_of("\"\\", at_);
      if (stop == std::string_view::npos) fail("unfinished string");
      out.append(text_, at_, stop - at_);
      at_ = stop + 1;
      if (text_[stop] == '"') return out;
      escape(out);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

inline Json Json::parse(std::string_view text) { return Parser(text).document(); }

} // namespace mashbox::test
