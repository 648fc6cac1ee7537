#include "arguments.hpp"

#include "errors.hpp"
#include "sample/logprobs.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace mashbox::addon {
namespace {

constexpr double LargestU32 = 4294967295.0;
constexpr double LargestSafeInteger = 9007199254740991.0;
constexpr uint32_t MostLimitTokens = 1024;
constexpr double LargestFloat = std::numeric_limits<float>::max();

std::string text(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.16g", number);
  return digits;
}

double toNumber(const Napi::Value& value, const std::string& name, double least, double most) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::numeric_limits<double>::quiet_NaN();
  if (!(number >= least && number <= most))
    throwInvalid(value.Env(), name, most >= LargestFloat ? "a finite number" : "a number from " + text(least) + " to " + text(most));
  return number;
}

double toInteger(const Napi::Value& value, const std::string& name, double least, double most) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : std::numeric_limits<double>::quiet_NaN();
  if (!(number >= least && number <= most) || number != std::floor(number))
    throwInvalid(value.Env(), name, "an integer from " + text(least) + " to " + text(most));
  return number;
}

/// The fields of an argument object.
class Fields {
public:
  Fields(const Napi::Value& value, const std::string& name) : object_(asObject(value, name)) {}

  Napi::Value get(const char* name) const { return object_.Get(name); }
  bool has(const char* name) const { return !get(name).IsUndefined(); }
  Napi::Env env() const { return object_.Env(); }

  float number(const char* name, double least, double most) const { return static_cast<float>(toNumber(get(name), name, least, most)); }
  uint32_t integer(const char* name, double least, double most = LargestU32) const {
    return static_cast<uint32_t>(toInteger(get(name), name, least, most));
  }

  /// Of a plain array.
  std::vector<int32_t> tokenList(const char* name, uint32_t longest) const {
    const Napi::Value value = get(name);
    const std::string kind = "an array of at most " + std::to_string(longest) + " tokens";
    if (!value.IsArray() || value.As<Napi::Array>().Length() > longest) throwInvalid(env(), name, kind);
    const auto array = value.As<Napi::Array>();
    std::vector<int32_t> tokens(array.Length());
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      const Napi::HandleScope scope(env());
      tokens[i] = static_cast<int32_t>(toInteger(array.Get(i), name, 0, std::numeric_limits<int32_t>::max()));
    }
    return tokens;
  }

  std::vector<std::byte> bytes(const char* name) const {
    const Napi::Value value = get(name);
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) throwInvalid(env(), name, "a Uint8Array");
    const auto array = value.As<Napi::Uint8Array>();
    const auto* data = reinterpret_cast<const std::byte*>(array.Data());
    return {data, data + array.ElementLength()};
  }

  bool boolean(const char* name) const {
    const Napi::Value value = get(name);
    if (!value.IsBoolean()) throwInvalid(env(), name, "a boolean");
    return value.As<Napi::Boolean>().Value();
  }

  std::vector<int32_t> tokens(const char* name, size_t longest) const {
    const Napi::Value value = get(name);
    if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array) throwInvalid(env(), name, "an Int32Array");
    const auto array = value.As<Napi::Int32Array>();
    if (array.ElementLength() > longest)
      throwError(env(), {ErrorKind::Rejected, std::string(name) + ": " + std::to_string(array.ElementLength()) + " tokens are more than the " + std::to_string(longest) + " that are possible", name});
    return {array.Data(), array.Data() + array.ElementLength()};
  }

private:
  static Napi::Object asObject(const Napi::Value& value, const std::string& name) {
    if (!value.IsObject()) throwInvalid(value.Env(), name, "an object");
    return value.As<Napi::Object>();
  }

  Napi::Object object_;
};

std::vector<std::pair<int32_t, float>> readLogitBias(const Fields& fields, size_t longest) {
  const char* const name = "logitBias";
  const Napi::Value value = fields.get(name);
  if (!value.IsArray()) throwInvalid(fields.env(), name, "an array of [token, bias]");
  const auto array = value.As<Napi::Array>();
  const uint32_t length = array.Length();
  if (length > longest) throwInvalid(fields.env(), name, "at most " + std::to_string(longest) + " entries");
  std::vector<std::pair<int32_t, float>> biases;
  for (uint32_t i = 0; i < length; ++i) {
    const Napi::HandleScope scope(fields.env());
    const Napi::Value entry = array.Get(i);
    if (!entry.IsArray() || entry.As<Napi::Array>().Length() != 2) throwInvalid(fields.env(), name, "an array of [token, bias]");
    const auto pair = entry.As<Napi::Array>();
    const double token = toInteger(pair.Get(0u), name, 0, std::numeric_limits<int32_t>::max());
    biases.emplace_back(static_cast<int32_t>(token), static_cast<float>(toNumber(pair.Get(1u), name, -LargestFloat, LargestFloat)));
  }
  return biases;
}

sched::PassageLimit readLimit(const Napi::Value& value) {
  const Fields fields(value, "limit");
  return {
    .tokens = fields.integer("tokens", 0),
    .begin = fields.tokenList("begin", MostLimitTokens),
    .end = fields.tokenList("end", MostLimitTokens),
    .forced = fields.tokenList("forced", MostLimitTokens),
  };
}

std::string readPath(const Fields& fields) {
  const Napi::Value value = fields.get("path");
  std::string path = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
  if (path.empty() || path.find('\0') != std::string::npos) throwInvalid(fields.env(), "path", "the path of a file");
  return path;
}

model::KvType readKvType(const Fields& fields) {
  const Napi::Value value = fields.get("kvType");
  const std::string name = value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
  if (name == "f16") return model::KvType::F16;
  if (name == "f32") return model::KvType::F32;
  throwInvalid(fields.env(), "kvType", "\"f16\" or \"f32\"");
}

} // namespace

LoadArguments readLoadOptions(const Napi::Value& options) {
  const Fields fields(options, "options");
  LoadArguments arguments;
  arguments.load.path = readPath(fields);
  arguments.load.threads = fields.integer("threads", 0, 1024);
  arguments.context.slots = fields.integer("slots", 1, 1024);
  arguments.context.contextLength = fields.integer("contextLength", 0, std::numeric_limits<int32_t>::max());
  arguments.context.kvType = readKvType(fields);
  arguments.context.batchTokens = fields.integer("batchTokens", arguments.context.slots, 65536);
  return arguments;
}

sched::Request readRequest(const Napi::Value& request, const RequestLimits& limits) {
  const Fields fields(request, "request");
  return {
    .id = readId(fields.get("id")),
    .tokens = fields.tokens("tokens", limits.contextLength),
    .maxTokens = fields.integer("maxTokens", 1),
    .sampling = {
      .temperature = fields.number("temperature", 0, LargestFloat),
      .topK = fields.integer("topK", 0),
      .topP = fields.number("topP", 0, 1),
      .minP = fields.number("minP", 0, 1),
      .repetitionPenalty = fields.number("repetitionPenalty", std::numeric_limits<float>::min(), LargestFloat),
      .frequencyPenalty = fields.number("frequencyPenalty", -LargestFloat, LargestFloat),
      .presencePenalty = fields.number("presencePenalty", -LargestFloat, LargestFloat),
      .repetitionWindow = fields.integer("repetitionWindow", 0),
      .seed = static_cast<uint64_t>(toInteger(fields.get("seed"), "seed", 0, LargestSafeInteger)),
      .logitBias = readLogitBias(fields, limits.vocabularySize),
    },
    .stopTokens = fields.tokens("stopTokens", limits.vocabularySize),
    .minTokens = fields.has("minTokens") ? fields.integer("minTokens", 0) : 0,
    .topLogprobs = fields.has("topLogprobs") ? std::optional(fields.integer("topLogprobs", 0, sample::MostTopLogprobs)) : std::nullopt,
    .limit = fields.has("limit") ? std::optional(readLimit(fields.get("limit"))) : std::nullopt,
    .grammar = fields.has("grammar") ? fields.bytes("grammar") : std::vector<std::byte>(),
    .jumpAhead = !fields.has("jumpAhead") || fields.boolean("jumpAhead"),
    .greedySyntax = fields.has("greedySyntax") && fields.boolean("greedySyntax"),
  };
}

uint32_t readId(const Napi::Value& value) { return static_cast<uint32_t>(toInteger(value, "id", 0, LargestU32)); }

Napi::Function readFunction(const Napi::Value& value, const std::string& name) {
  if (!value.IsFunction()) throwInvalid(value.Env(), name, "a function");
  return value.As<Napi::Function>();
}

} // namespace mashbox::addon
