#pragma once

#include "loading.hpp"
#include "sched/frame_queue.hpp"
#include "sched/scheduler.hpp"

#include <napi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace mashbox::addon {

/// One `load`: the thread that loads, then the scheduler, and the way of their reports to the JavaScript thread, which is one
/// thread-safe function with coalesced wake-ups. A session keeps the event loop alive until it is closed; when its environment ends, a
/// clean-up hook closes it. All but the reporting happens on the JavaScript thread.
class Session : public std::enable_shared_from_this<Session> {
public:
  /// Starts loading; the promise is settled with an engine or the error.
  static Napi::Promise load(Napi::Env env, LoadArguments arguments, Napi::Function onProgress, Napi::Function onFrame);

  Session(Napi::Env env, Napi::Function onProgress, Napi::Function onFrame);
  Session(const Session&) = delete;

  const ModelInfo& model() const { return model_; }
  /// None once the session is closed.
  sched::Scheduler* scheduler() const { return scheduler_.get(); }
  /// Joins the session's threads and frees the model. Idempotent.
  void close();

private:
  static void onWake(napi_env env, napi_value function, void* session, void* data);
  static void onFinalized(napi_env env, void* session, void* hint);
  static void onEnvironmentEnd(void* session);

  void openWakeup();
  void startLoading(LoadArguments arguments);
  void wake();
  void stop();
  void deliverProgress(Napi::Env env);
  void settle(Napi::Env env);
  void deliverFrames(Napi::Env env);

  Napi::Env env_;
  Napi::Promise::Deferred promise_;
  Napi::FunctionReference onProgress_, onFrame_;
  bool closed_ = false;

  napi_threadsafe_function wakeup_ = nullptr; ///< open exactly as long as a thread may call it
  std::atomic<bool> awake_ = false;           ///< a wake-up is on its way
  std::mutex mutex_;
  std::optional<double> progress_;            ///< not yet delivered; guarded by mutex_
  std::optional<Result<LoadedModel>> loaded_; ///< not yet delivered; guarded by mutex_
  sched::FrameQueue frames_;

  std::thread loader_;
  ModelInfo model_{};
  std::unique_ptr<sched::Scheduler> scheduler_;
};

} // namespace mashbox::addon
