#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace mashbox {

/// Why something could not be done. The names cross into JavaScript as `code`.
enum class ErrorKind {
  NotFound,     ///< no such file, or not a regular file
  Truncated,    ///< the file ends too early
  Invalid,      ///< the format is broken or a value is impossible
  Unsupported,  ///< well formed, but nothing that this engine can run
  Inconsistent, ///< parts contradict each other
  OutOfMemory,  ///< would not fit; computed before allocating, or refused by the system
  Rejected,     ///< a request that cannot run (too long, token out of range, unknown id)
  TooComplex,   ///< a grammar that would cost more time or memory than one may
  DeadEnd,      ///< an output that cannot go on within its grammar
};

/// The name of an error kind as JavaScript sees it, for example "truncated".
const char* errorCode(ErrorKind kind);

struct Error {
  ErrorKind kind;
  std::string message; ///< one line, for a person
  std::string subject; ///< the metadata key, tensor or field that the message is about; may be empty
};

/// A value or an error. C++20's stand-in for `std::expected`.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

private:
  std::variant<T, Error> state_;
};

template <> class [[nodiscard]] Result<void> {
public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

private:
  std::optional<Error> error_;
};

} // namespace mashbox
