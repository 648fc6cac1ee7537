#pragma once

#include "model/model.hpp"
#include "sched/request.hpp"

#include <napi.h>

#include <cstdint>
#include <string>

namespace mashbox::addon {

/// Every reader throws an `invalid` error that names the field.

struct LoadArguments {
  model::LoadOptions load;
  model::ContextOptions context;
};

LoadArguments readLoadOptions(const Napi::Value& options);

/// What a request may hold at most; longer arrays are refused before they are copied.
struct RequestLimits {
  uint32_t contextLength, vocabularySize;
};

sched::Request readRequest(const Napi::Value& request, const RequestLimits& limits);

uint32_t readId(const Napi::Value& value);
Napi::Function readFunction(const Napi::Value& value, const std::string& name);

} // namespace mashbox::addon
