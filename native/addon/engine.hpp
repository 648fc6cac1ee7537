#pragma once

#include "session.hpp"

#include <napi.h>

#include <memory>

namespace mashbox::addon {

/// `NativeEngine` of src/engine/Native.ts. An open engine is not garbage collected.
class Engine : public Napi::ObjectWrap<Engine> {
public:
  static Napi::Function define(Napi::Env env);
  static Napi::Object create(Napi::Env env, std::shared_ptr<Session> session);

  /// Only `create` can call it: there is no engine without a session.
  explicit Engine(const Napi::CallbackInfo& info);

private:
  Napi::Value model(const Napi::CallbackInfo& info);
  void submit(const Napi::CallbackInfo& info);
  void cancel(const Napi::CallbackInfo& info);
  Napi::Value stats(const Napi::CallbackInfo& info);
  void close(const Napi::CallbackInfo& info);

  std::shared_ptr<Session> session_;
  Napi::ObjectReference model_;
};

/// What an environment that loaded the addon needs of its own.
struct Environment {
  Napi::FunctionReference engine;    ///< the class
  std::shared_ptr<Session> incoming; ///< for the engine that is being created
};

} // namespace mashbox::addon
