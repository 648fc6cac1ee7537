#include "engine.hpp"

#include "arguments.hpp"
#include "errors.hpp"

#include <new>
#include <string>
#include <utility>

namespace mashbox::addon {
namespace {

Napi::Value toJs(Napi::Env env, const model::ExpertPaths& experts) {
  if (!experts.any()) return env.Null();
  auto reasons = Napi::Array::New(env, experts.exactReasons.size());
  for (uint32_t i = 0; i < experts.exactReasons.size(); ++i) reasons.Set(i, experts.exactReasons[i]);
  reasons.Freeze();
  auto object = Napi::Object::New(env);
  object.Set("kernelSites", experts.kernelSites);
  object.Set("exactSites", experts.exactSites);
  object.Set("exactReasons", reasons);
  object.Freeze();
  return object;
}

Napi::Object toJs(Napi::Env env, const ModelInfo& model) {
  auto memory = Napi::Object::New(env);
  memory.Set("weights", static_cast<double>(model.weightBytes));
  memory.Set("kvCache", static_cast<double>(model.kvCacheBytes));
  memory.Set("scratch", static_cast<double>(model.scratchBytes));
  memory.Freeze();
  auto object = Napi::Object::New(env);
  object.Set("architecture", model.architecture);
  object.Set("vocabularySize", model.vocabularySize);
  object.Set("layers", model.layers);
  object.Set("contextLength", model.contextLength);
  object.Set("trainedContextLength", model.trainedContextLength);
  object.Set("slots", model.slots);
  object.Set("isa", model.isa);
  object.Set("threads", model.threads);
  object.Set("memory", memory);
  object.Set("experts", toJs(env, model.experts));
  object.Freeze();
  return object;
}

sched::Scheduler& openScheduler(Napi::Env env, const Session& session) {
  if (session.scheduler() == nullptr) throwError(env, {ErrorKind::Rejected, "the engine is closed", ""});
  return *session.scheduler();
}

} // namespace

Napi::Function Engine::define(Napi::Env env) {
  return DefineClass(env, "NativeEngine", {
    InstanceAccessor<&Engine::model>("model", napi_enumerable),
    InstanceMethod<&Engine::submit>("submit"),
    InstanceMethod<&Engine::cancel>("cancel"),
    InstanceMethod<&Engine::stats>("stats"),
    InstanceMethod<&Engine::close>("close"),
  });
}

Napi::Object Engine::create(Napi::Env env, std::shared_ptr<Session> session) {
  auto* environment = env.GetInstanceData<Environment>();
  environment->incoming = std::move(session);
  return environment->engine.New({});
}

Engine::Engine(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Engine>(info) {
  session_ = std::exchange(info.Env().GetInstanceData<Environment>()->incoming, nullptr);
  if (!session_) throw Napi::TypeError::New(info.Env(), "an engine comes from load()");
  model_ = Napi::Persistent(toJs(info.Env(), session_->model()));
  Ref();
}

Napi::Value Engine::model(const Napi::CallbackInfo&) { return model_.Value(); }

void Engine::submit(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  try {
    // Reading the arguments may run the caller's code, which may close the engine.
    auto request = readRequest(info[0], {session_->model().contextLength, session_->model().vocabularySize});
    if (const auto submitted = openScheduler(env, *session_).submit(std::move(request)); !submitted) throwError(env, submitted.error());
  } catch (const std::bad_alloc&) {
    throwError(env, {ErrorKind::OutOfMemory, "out of memory while submitting a request", ""});
  }
}

void Engine::cancel(const Napi::CallbackInfo& info) {
  const uint32_t id = readId(info[0]);
  if (session_->scheduler() != nullptr) session_->scheduler()->cancel(id);
}

Napi::Value Engine::stats(const Napi::CallbackInfo& info) {
  const auto stats = openScheduler(info.Env(), *session_).stats();
  auto object = Napi::Object::New(info.Env());
  object.Set("running", stats.running);
  object.Set("waiting", stats.waiting);
  const sched::BlockUse& blocks = stats.blocks;
  object.Set("freeBlocks", blocks.free());
  object.Set("totalBlocks", blocks.total);
  object.Set("freeWindowBlocks", blocks.windowFree());
  object.Set("windowBlocks", blocks.windowTotal);
  object.Set("steps", static_cast<double>(stats.steps));
  return object;
}

void Engine::close(const Napi::CallbackInfo&) {
  if (session_->scheduler() == nullptr) return;
  session_->close();
  Unref();
}

} // namespace mashbox::addon
