#include "json.hpp"
#include "model/model.hpp"
#include "test.hpp"

#include <algorithm>

using namespace mashbox;
using test::check;
using test::Test;

namespace {

Result<void> load(const std::string& path) {
  const auto model = model::Model::load({path, 1, cpu::Isa::Scalar, {}});
  return model ? Result<void>() : Result<void>(model.error());
}

bool isOneLineOfAscii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

/// The class of a result as index.json has it. It has no class of its own for what is not there or is no file.
std::string classOf(const Result<void>& result) {
  if (result) return "ok";
  return result.error().kind == ErrorKind::NotFound ? "invalid" : errorCode(result.error().kind);
}

/// Why the result is wrong for this case; empty when it is right.
std::string complaint(const test::Json& expected, const Result<void>& result) {
  const std::string found = classOf(result);
  const auto& classes = expected["expect"].list();
  if (std::none_of(classes.begin(), classes.end(), [&](const test::Json& name) { return name.string() == found; }))
    return "is " + found + (result ? "" : " (" + result.error().message + ")") + ", expected " + classes.front().string();
  if (result) return "";
  const Error& error = result.error();
  if (!isOneLineOfAscii(error.message)) return "has a message that is not one line of ASCII";
  if (!expected["name"].isNull() && error.message.find(expected["name"].string()) == std::string::npos)
    return "does not name " + expected["name"].string() + ": " + error.message;
  return "";
}

const Test brokenFiles{"gguf: every broken file gets its class of error and the name of what is wrong", [] {
  const auto folder = test::golden("broken/index.json").parent_path();
  const auto index = test::Json::load(folder / "index.json");
  check(index["cases"].size() >= 150, "index.json lists its cases");
  std::string complaints;
  for (const auto& entry : index["cases"].list()) {
    const std::string file = entry["file"].string();
    const auto result = load((folder / file).string());
    if (const std::string text = complaint(entry, result); !text.empty()) complaints += "\n        " + file + " " + text;
  }
  check(complaints.empty(), "wrong:" + complaints);
}};

const Test baseFile{"gguf: the file that the broken ones were made from loads", [] {
  const auto result = load(test::golden("broken/base.gguf").string());
  check(bool(result), result ? "" : result.error().message);
}};

} // namespace
