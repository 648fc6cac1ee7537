#include "gguf/split.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace mashbox::gguf {
namespace {

constexpr size_t digits = 5;
constexpr std::string_view of = "-of-", extension = ".gguf";

std::string fiveDigits(uint32_t value) {
  const std::string text = std::to_string(value);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

bool readNumber(std::string_view text, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace

std::string SplitName::path(uint32_t part) const {
  return prefix + "-" + fiveDigits(part) + std::string(of) + fiveDigits(count) + std::string(extension);
}

bool parseSplitName(const std::string& path, SplitName& name) {
  constexpr size_t suffix = 1 + digits + of.size() + digits + extension.size();
  if (path.size() <= suffix) return false;
  const std::string_view tail = std::string_view(path).substr(path.size() - suffix);
  if (tail[0] != '-' || tail.substr(1 + digits, of.size()) != of || !tail.ends_with(extension)) return false;
  const std::string_view count = tail.substr(1 + digits + of.size(), digits);
  if (!readNumber(tail.substr(1, digits), name.number) || !readNumber(count, name.count)) return false;
  if (name.number < 1 || name.number > name.count) return false;
  name.prefix = path.substr(0, path.size() - suffix);
  return true;
}

} // namespace mashbox::gguf
