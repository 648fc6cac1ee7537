#include "errors.hpp"

namespace mashbox::addon {

Napi::Error toJs(Napi::Env env, const Error& error) {
  const Napi::Error thrown = Napi::Error::New(env, error.message);
  thrown.Set("code", Napi::String::New(env, errorCode(error.kind)));
  if (!error.subject.empty()) thrown.Set("subject", Napi::String::New(env, error.subject));
  return thrown;
}

void throwError(Napi::Env env, const Error& error) { throw toJs(env, error); }

void throwInvalid(Napi::Env env, const std::string& subject, const std::string& expected) {
  throwError(env, {ErrorKind::Invalid, subject + ": expected " + expected, subject});
}

void callListener(const Napi::FunctionReference& listener, Napi::Value argument) noexcept {
  const napi_env env = listener.Env();
  const napi_value function = listener.Value(), undefined = Napi::Env(env).Undefined(), value = argument;
  if (napi_call_function(env, undefined, function, 1, &value, nullptr) == napi_ok) return;
  napi_value thrown;
  if (napi_get_and_clear_last_exception(env, &thrown) == napi_ok) napi_fatal_exception(env, thrown);
}

} // namespace mashbox::addon
