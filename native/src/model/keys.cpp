#include "model/keys.hpp"

#include "base/text.hpp"

#include <cmath>

namespace mashbox::model {

Keys::Keys(const gguf::File& file) : file_(file) {
  const auto architecture = file.requireString("general.architecture");
  if (!architecture)
    fail(architecture.error());
  else
    architecture_ = *architecture;
}

std::string Keys::name(std::string_view key) const { return architecture_ + "." + std::string(key); }
bool Keys::has(std::string_view key) const { return file_.find(name(key)) != nullptr; }

void Keys::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void Keys::fail(ErrorKind kind, std::string_view key, const std::string& message) {
  fail(Error{kind, name(key) + ": " + message, name(key)});
}

bool Keys::require(std::string_view key) {
  if (has(key)) return true;
  fail(ErrorKind::Inconsistent, key, "the key is missing");
  return false;
}

uint32_t Keys::count(std::string_view key, uint32_t limit) { return require(key) ? countOr(key, limit, 1) : 1; }

uint32_t Keys::countOr(std::string_view key, uint32_t limit, uint32_t fallback) {
  if (!has(key)) return fallback;
  const auto value = file_.requireUint(name(key));
  if (!value) {
    fail(value.error());
    return 1;
  }
  if (*value >= 1 && *value <= limit) return static_cast<uint32_t>(*value);
  fail(ErrorKind::Invalid, key, std::to_string(*value) + " is not between 1 and " + std::to_string(limit));
  return 1;
}

uint32_t Keys::countPerLayer(std::string_view key, uint32_t layers, uint32_t limit) {
  if (!require(key)) return 1;
  const auto values = file_.requireUints(name(key), layers);
  if (!values) {
    fail(values.error());
    return 1;
  }
  for (const uint64_t value : *values) {
    if (value < 1 || value > limit) {
      fail(ErrorKind::Invalid, key, std::to_string(value) + " is not between 1 and " + std::to_string(limit));
      return 1;
    }
    if (value != values->front()) {
      fail(ErrorKind::Unsupported, key, "layers that differ are not supported for " + escaped(architecture_));
      return 1;
    }
  }
  return static_cast<uint32_t>(values->front());
}

double Keys::positive(std::string_view key) { return require(key) ? positiveOr(key, 1) : 1; }

double Keys::positiveOr(std::string_view key, double fallback) {
  if (!has(key)) return fallback;
  const auto value = file_.requireFloat(name(key));
  if (!value) {
    fail(value.error());
    return 1;
  }
  if (std::isfinite(*value) && *value > 0) return *value;
  fail(ErrorKind::Invalid, key, std::to_string(*value) + " is not a finite number above 0");
  return 1;
}

std::string_view Keys::textOr(std::string_view key, std::string_view fallback) {
  if (!has(key)) return fallback;
  const auto value = file_.requireString(name(key));
  if (value) return *value;
  fail(value.error());
  return fallback;
}

void Keys::refuseUnlessZero(std::string_view key, std::string_view what) {
  if (!has(key)) return;
  const auto value = file_.requireFloat(name(key));
  if (value && *value == 0) return;
  fail(ErrorKind::Unsupported, key, std::string(what) + " is not supported for " + escaped(architecture_));
}

} // namespace mashbox::model
