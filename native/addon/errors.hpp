#pragma once

#include "base/result.hpp"

#include <napi.h>

#include <string>

namespace mashbox::addon {

/// A JavaScript `Error` with the error's `code` and, where there is one, its `subject`.
Napi::Error toJs(Napi::Env env, const Error& error);

[[noreturn]] void throwError(Napi::Env env, const Error& error);
/// An argument that cannot be used: `subject` is the field's name.
[[noreturn]] void throwInvalid(Napi::Env env, const std::string& subject, const std::string& expected);

/// Calls a listener; what it throws is an uncaught exception of the process, not a failure of the engine.
void callListener(const Napi::FunctionReference& listener, Napi::Value argument) noexcept;

} // namespace mashbox::addon
