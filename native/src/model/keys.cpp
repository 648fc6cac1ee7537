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
bool Keys::seen(std::string_view key) const { return seen_.contains(std::string(key)); }

bool Keys::has(std::string_view key) {
  seen_.emplace(key);
  return file_.find(name(key)) != nullptr;
}

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

uint32_t Keys::countOr(std::string_view key, uint32_t limit, uint32_t fallback) { return has(key) ? number(key, 1, limit) : fallback; }
uint32_t Keys::countOrZero(std::string_view key, uint32_t limit) { return has(key) ? number(key, 0, limit) : 0; }

uint32_t Keys::number(std::string_view key, uint32_t least, uint32_t limit) {
  const auto value = file_.requireUint(name(key));
  if (!value) {
    fail(value.error());
    return least;
  }
  if (*value >= least && *value <= limit) return static_cast<uint32_t>(*value);
  fail(ErrorKind::Invalid, key, std::to_string(*value) + " is not between " + std::to_string(least) + " and " + std::to_string(limit));
  return least;
}

std::vector<uint32_t> Keys::countsPerLayer(std::string_view key, uint32_t layers, uint32_t limit, uint32_t least) {
  std::vector<uint32_t> out(layers, least);
  if (!require(key)) return out;
  const auto values = file_.requireUints(name(key), layers);
  if (!values) {
    fail(values.error());
    return out;
  }
  for (uint32_t i = 0; i < layers; ++i) {
    const uint64_t value = (*values)[i];
    if (value < least || value > limit) {
      fail(ErrorKind::Invalid, key, std::to_string(value) + " is not between " + std::to_string(least) + " and " + std::to_string(limit));
      return out;
    }
    out[i] = static_cast<uint32_t>(value);
  }
  return out;
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

double Keys::positiveOrOff(std::string_view key) {
  if (!has(key)) return 0;
  const auto value = file_.requireFloat(name(key));
  return value && *value == 0 ? 0 : positiveOr(key, 0);
}

bool Keys::flagOr(std::string_view key, bool fallback) {
  if (!has(key)) return fallback;
  const auto value = file_.boolOr(name(key), fallback);
  if (value) return *value;
  fail(value.error());
  return fallback;
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
