#include "arguments.hpp"
#include "cpu/cores.hpp"
#include "cpu/kernels.hpp"
#include "cuda/devices.hpp"
#include "engine.hpp"
#include "errors.hpp"
#include "model/memory.hpp"
#include "session.hpp"

#include <napi.h>

#include <cstdlib>

namespace mashbox::addon {
namespace {

Napi::Object cudaInfo(Napi::Env env) {
  const auto found = cuda::listDevices();
  auto devices = Napi::Array::New(env, found.devices.size());
  for (uint32_t i = 0; i < found.devices.size(); ++i) {
    auto device = Napi::Object::New(env);
    device.Set("name", found.devices[i].name);
    device.Set("memoryBytes", static_cast<double>(found.devices[i].memoryBytes));
    device.Set("computeCapability", found.devices[i].computeCapability);
    devices.Set(i, device);
  }
  auto object = Napi::Object::New(env);
  object.Set("built", found.built);
  object.Set("reason", found.reason);
  object.Set("devices", devices);
  return object;
}

Napi::Value info(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto isa = cpu::chooseIsa(std::getenv("MASHBOX_ISA"));
  if (!isa) throwError(env, isa.error());
  auto object = Napi::Object::New(env);
  object.Set("version", MASHBOX_VERSION);
  object.Set("isa", cpu::isaName(*isa));
  object.Set("threads", cpu::availableCores());
  object.Set("cuda", cudaInfo(env));
  return object;
}

Napi::Value load(const Napi::CallbackInfo& call) {
  auto arguments = readLoadOptions(call[0]);
  const auto onProgress = readFunction(call[1], "onProgress"), onFrame = readFunction(call[2], "onFrame");
  return Session::load(call.Env(), std::move(arguments), onProgress, onFrame);
}

Napi::Value inspect(const Napi::CallbackInfo& call) {
  const Napi::Env env = call.Env();
  const auto arguments = readLoadOptions(call[0]);
  const auto found = model::Model::inspect(arguments.load.path, arguments.context);
  if (!found) throwError(env, found.error());
  const auto& plan = found->plan;
  auto memory = Napi::Object::New(env);
  memory.Set("weights", static_cast<double>(plan.weights));
  memory.Set("kvCache", static_cast<double>(plan.kvCache + plan.states));
  memory.Set("scratch", static_cast<double>(plan.scratch));
  auto object = Napi::Object::New(env);
  object.Set("architecture", found->architecture);
  object.Set("layers", found->layers);
  object.Set("predictionBlocks", found->predictionBlocks);
  object.Set("vocabularySize", found->vocabulary);
  object.Set("trainedContextLength", found->trainedContext);
  object.Set("contextLength", plan.contextLength);
  object.Set("slots", arguments.context.slots);
  object.Set("memory", memory);
  object.Set("availableMemory", static_cast<double>(plan.available));
  object.Set("largestContext", plan.largestContext);
  object.Set("largestSlots", plan.largestSlots);
  object.Set("fits", model::fits(plan));
  return object;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto* environment = new Environment;
  environment->engine = Napi::Persistent(Engine::define(env));
  env.SetInstanceData(environment);
  exports.Set("info", Napi::Function::New<info>(env, "info"));
  exports.Set("inspect", Napi::Function::New<inspect>(env, "inspect"));
  exports.Set("load", Napi::Function::New<load>(env, "load"));
  return exports;
}

} // namespace
} // namespace mashbox::addon

static Napi::Object initialize(Napi::Env env, Napi::Object exports) { return mashbox::addon::init(env, exports); }

NODE_API_MODULE(mashbox, initialize)
