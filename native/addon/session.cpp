#include "session.hpp"

#include "engine.hpp"
#include "errors.hpp"
#include "sched/frames.hpp"

#include <string>
#include <system_error>
#include <utility>

namespace mashbox::addon {
namespace {

Error noThread(const std::system_error& error) { return {ErrorKind::OutOfMemory, std::string("cannot start a thread: ") + error.what(), ""}; }

} // namespace

Session::Session(Napi::Env env, Napi::Function onProgress, Napi::Function onFrame)
    : env_(env), promise_(env), onProgress_(Napi::Persistent(onProgress)), onFrame_(Napi::Persistent(onFrame)) {}

Napi::Promise Session::load(Napi::Env env, LoadArguments arguments, Napi::Function onProgress, Napi::Function onFrame) {
  const auto session = std::make_shared<Session>(env, onProgress, onFrame);
  const Napi::Promise promise = session->promise_.Promise();
  session->openWakeup();
  session->startLoading(std::move(arguments));
  return promise;
}

/// The clean-up hook is added last, so that it runs before the thread-safe function's own: no thread is left to call that one.
void Session::openWakeup() {
  auto self = std::make_unique<std::shared_ptr<Session>>(shared_from_this());
  const Napi::String name = Napi::String::New(env_, "mashbox.engine");
  if (napi_create_threadsafe_function(env_, nullptr, nullptr, name, 0, 1, nullptr, onFinalized, self.get(), onWake, &wakeup_) != napi_ok)
    throw Napi::Error::New(env_);
  self.release();
  napi_add_env_cleanup_hook(env_, onEnvironmentEnd, this);
}

void Session::onFinalized(napi_env, void*, void* session) { delete static_cast<std::shared_ptr<Session>*>(session); }

void Session::startLoading(LoadArguments arguments) {
  arguments.load.onProgress = [this](double fraction) {
    {
      const std::lock_guard lock(mutex_);
      progress_ = fraction;
    }
    wake();
  };
  auto run = [this, arguments = std::move(arguments)]() mutable {
    auto loaded = loadModel(std::move(arguments));
    {
      const std::lock_guard lock(mutex_);
      loaded_ = std::move(loaded);
    }
    wake();
  };
  try {
    loader_ = std::thread(std::move(run));
  } catch (const std::system_error& error) {
    close();
    throwError(env_, noThread(error));
  }
}

/// From any thread.
void Session::wake() {
  if (!awake_.exchange(true)) napi_call_threadsafe_function(wakeup_, nullptr, napi_tsfn_nonblocking);
}

void Session::onWake(napi_env env, napi_value, void* context, void*) {
  if (env == nullptr) return;
  const std::shared_ptr<Session> session = *static_cast<std::shared_ptr<Session>*>(context);
  session->awake_ = false;
  try {
    session->deliverProgress(env);
    session->settle(env);
    session->deliverFrames(env);
  } catch (const Napi::Error&) {
    // The environment is being terminated and runs no more JavaScript; its clean-up hook closes the session.
  }
}

void Session::deliverProgress(Napi::Env env) {
  std::optional<double> progress;
  {
    const std::lock_guard lock(mutex_);
    progress = std::exchange(progress_, std::nullopt);
  }
  if (progress && !closed_) callListener(onProgress_, Napi::Number::New(env, *progress));
}

void Session::settle(Napi::Env env) {
  std::optional<Result<LoadedModel>> loaded;
  {
    const std::lock_guard lock(mutex_);
    loaded = std::exchange(loaded_, std::nullopt);
  }
  if (!loaded) return;
  loader_.join();
  if (!*loaded) {
    promise_.Reject(toJs(env, loaded->error()).Value());
    close();
    return;
  }
  model_ = std::move((*loaded)->info);
  try {
    scheduler_ = std::make_unique<sched::Scheduler>(std::move((*loaded)->decoder), [this](std::span<const sched::Event> events, const sched::BlockUse& blocks) {
      frames_.push(sched::encodeFrame(events, blocks));
      wake();
    });
  } catch (const std::system_error& error) {
    promise_.Reject(toJs(env, noThread(error)).Value());
    close();
    return;
  }
  promise_.Resolve(Engine::create(env, shared_from_this()));
}

/// At most the frames that are there now: a fast engine must not hold the event loop.
void Session::deliverFrames(Napi::Env env) {
  for (size_t rest = frames_.size(); rest > 0 && !closed_; --rest) {
    const Napi::HandleScope scope(env);
    const auto frame = frames_.pop();
    if (!frame) return;
    callListener(onFrame_, Napi::Buffer<std::byte>::Copy(env, frame->data(), frame->size()));
  }
  if (frames_.size() > 0 && !closed_) wake();
}

/// Ends every thread of the session. A scheduler that waits for room in the queue is let go first.
void Session::stop() {
  closed_ = true;
  frames_.close();
  scheduler_.reset();
  if (loader_.joinable()) loader_.join();
  loaded_.reset();
  onProgress_.Reset();
  onFrame_.Reset();
}

void Session::close() {
  if (closed_) return;
  stop();
  napi_remove_env_cleanup_hook(env_, onEnvironmentEnd, this);
  napi_release_threadsafe_function(wakeup_, napi_tsfn_abort);
}

void Session::onEnvironmentEnd(void* session) { static_cast<Session*>(session)->stop(); }

} // namespace mashbox::addon
