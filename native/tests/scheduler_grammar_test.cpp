#include "fake_decoder.hpp"
#include "grammar/matcher.hpp"
#include "grammar_ir.hpp"

#include <cmath>
#include <map>
#include <string>

namespace {

using namespace mashbox;
using namespace mashbox::test;

constexpr int32_t End = 89;

/// One or two characters each; the last tokens are not text.
std::vector<grammar::TokenText> texts() {
  std::vector<grammar::TokenText> result;
  const std::string characters = "0123456789[],:{}\"abcdefgh";
  for (const char c : characters) result.push_back({std::string(1, c)});
  for (const char* more : {"12", "34", "567", "],", "[1", "\":", "{\"", "\",", "ab", "abc", "[[", "]]"}) result.push_back({more});
  while (result.size() < Known) result.push_back({"", false});
  return result;
}

std::vector<std::byte> bytesOf(const std::string& text) {
  const auto bytes = irBytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Lists of lists of numbers.
std::string lists() {
  IrWriter ir;
  const auto number = ir.lexeme(ir.repeat(ir.set({{'0', '9'}}), 1, 6));
  const auto item = ir.choice({number, ir.rule("list")});
  ir.define("list", ir.sequence({ir.text("["), item, ir.repeat(ir.sequence({ir.text(","), item}), 0, 3), ir.text("]")}));
  return ir.finish("list");
}

std::string rigid() {
  IrWriter ir;
  return ir.only(ir.sequence({ir.text("{\"abcdefgh\":["), ir.set({{'0', '9'}}), ir.text(",567,567,567]}")}));
}

Request constrained(uint32_t id, size_t prompt, uint32_t maxTokens, const std::string& ir, float temperature = 1) {
  Request r = request(id, prompt, maxTokens, temperature);
  r.stopTokens = {End};
  r.grammar = bytesOf(ir);
  return r;
}

std::string textOf(const std::vector<int32_t>& tokens) {
  static const auto all = texts();
  std::string text;
  for (const int32_t token : tokens) text += all[static_cast<size_t>(token)].bytes;
  return text;
}

/// The output is the beginning of a text of the grammar, and a whole one where it ended by itself.
void checkWithin(const Outcome& outcome, const std::string& ir) {
  check(outcome.done.has_value(), outcome.failed ? outcome.failed->message : "not done");
  grammar::Matcher matcher(compile(ir, std::make_shared<grammar::Vocabulary>(texts())));
  for (const int32_t token : outcome.tokens) check(matcher.accept(token), textOf(outcome.tokens));
  if (outcome.done->reason == FinishReason::Stop) check(matcher.accepting() && outcome.stopToken == End, textOf(outcome.tokens));
}

const FakeDecoder::Options withTexts{.slots = 8, .batchTokens = 128, .blocks = 128, .texts = texts()};

const Test within{"scheduler: outputs keep to their grammar, greedy and sampled, whatever the bias; batches do not change them", test::threaded, [] {
  std::map<uint32_t, std::vector<int32_t>> expected;
  const auto make = [](uint32_t id) {
    Request r = constrained(id, 5 + id * 3, 60, lists(), id % 2 == 0 ? 0.0f : 1.5f);
    r.sampling.topP = 1;
    for (int32_t token = 17; token < 25; ++token) r.sampling.logitBias.emplace_back(token, 1e9f); // letters
    if (id % 3 == 0) r.sampling.repetitionPenalty = 1.3f;
    return r;
  };
  int stopped = 0;
  for (uint32_t id = 1; id <= 8; ++id) {
    const auto outcome = alone(make(id), withTexts);
    checkWithin(outcome, lists());
    stopped += outcome.done->reason == FinishReason::Stop;
    expected[id] = outcome.tokens;
  }
  check(stopped > 0, "some end by themselves");
  Held held(withTexts);
  for (uint32_t id = 1; id <= 8; ++id) held.engine.submit(make(id));
  held.gate->open();
  for (uint32_t id = 1; id <= 8; ++id) check(held.engine.wait(id).tokens == expected[id], "request " + std::to_string(id));
}};

const Test usedUp{"scheduler: an output that uses up its grammar fails alone; the next one with the same grammar begins afresh", test::threaded, [] {
  IrWriter ir;
  // After n letters there are 2ⁿ stacks.
  for (const auto& [name, other] : {std::pair("ways", "others"), {"others", "ways"}})
    ir.define(name, ir.choice({ir.sequence({ir.text("a"), ir.rule(name), ir.text("1")}), ir.sequence({ir.text("a"), ir.rule(other), ir.text("2")}), ir.text("a")}));
  ir.define("root", ir.choice({ir.rule("ways"), ir.repeat(ir.set({{'b', 'c'}}), 1)}));
  const std::string grammar = ir.finish("root");
  const auto leaning = [&](uint32_t id, int32_t token, uint32_t maxTokens) {
    Request r = constrained(id, 8, maxTokens, grammar, 0);
    r.sampling.logitBias.emplace_back(token, 1e6f);
    return r;
  };
  auto options = withTexts;
  options.slots = 1;
  constexpr int32_t a = 17, b = 18;
  Held held(options);
  // All of them are given the one grammar before the first one has run.
  for (uint32_t id = 1; id <= 4; ++id) held.engine.submit(leaning(id, id % 2 == 1 ? a : b, id % 2 == 1 ? 60 : 20));
  held.gate->open();
  for (uint32_t id = 1; id <= 4; ++id) {
    const auto outcome = held.engine.wait(id);
    if (id % 2 == 0) check(outcome.done && outcome.tokens.size() == 20, "request " + std::to_string(id) + ": " + (outcome.failed ? outcome.failed->message : "short"));
    else check(outcome.failed && outcome.failed->kind == ErrorKind::TooComplex, "request " + std::to_string(id) + " uses it up: " + (outcome.failed ? outcome.failed->message : textOf(outcome.tokens)));
  }
}};

const Test ahead{"scheduler: what must come is not drawn: the same text in fewer steps", test::threaded, [] {
  const auto run = [](bool jumpAhead, std::optional<uint32_t> logprobs) {
    auto log = std::make_shared<FakeDecoder::Log>();
    Engine engine(std::make_unique<FakeDecoder>(withTexts, log));
    Request r = constrained(1, 10, 100, rigid(), 0);
    r.jumpAhead = jumpAhead;
    r.topLogprobs = logprobs;
    engine.submit(std::move(r));
    auto outcome = engine.wait(1);
    checkWithin(outcome, rigid());
    check(outcome.done->reason == FinishReason::Stop && outcome.done->generatedTokens == outcome.tokens.size(), "ended");
    return std::pair(outcome, log->steps.size());
  };
  const auto [jumped, few] = run(true, {});
  const auto [drawn, many] = run(false, {});
  const auto [scored, scoredSteps] = run(true, 2);
  check(textOf(jumped.tokens).size() == textOf(drawn.tokens).size() && textOf(jumped.tokens).substr(0, 13) == textOf(drawn.tokens).substr(0, 13), textOf(jumped.tokens));
  check(few < many / 2, std::to_string(few) + " steps instead of " + std::to_string(many));
  check(scored.tokens == drawn.tokens && scoredSteps == many, "drawn tokens have log probabilities");
  check(textOf(alone([&] { Request r = constrained(1, 10, 4, rigid(), 0); return r; }(), withTexts).tokens).size() >= 4, "maxTokens holds");
  check(alone(constrained(1, 10, 4, rigid(), 0), withTexts).tokens.size() == 4, "maxTokens counts them");
}};

const Test probabilities{"scheduler: log probabilities are those of the tokens that the grammar allows", test::threaded, [] {
  IrWriter ir;
  const std::string digit = ir.only(ir.repeat(ir.set({{'0', '2'}}), 3, 3));
  Request r = constrained(1, 10, 3, digit);
  r.topLogprobs = 20;
  const auto outcome = alone(std::move(r), withTexts);
  check(outcome.logprobs.size() == outcome.tokens.size() && !outcome.tokens.empty(), "one for each");
  for (size_t i = 0; i < outcome.tokens.size(); ++i) {
    double sum = 0;
    bool found = false;
    for (const auto& [logprob, token] : outcome.logprobs[i].top) {
      const std::string text = textOf({token});
      check(text.find_first_not_of("012") == std::string::npos, text);
      sum += std::exp(logprob);
      found |= token == outcome.tokens[i] && logprob == outcome.logprobs[i].chosen;
    }
    check(found && std::abs(sum - 1) < 1e-4, "they add up to " + std::to_string(sum));
  }
}};

const Test greedy{"scheduler: syntax is drawn greedily on request, content as the sampling says", test::threaded, [] {
  IrWriter ir;
  const auto digit = ir.content(ir.set({{'0', '9'}}));
  const std::string grammar = ir.only(ir.repeat(ir.sequence({digit, ir.set({{'a', 'h'}})}), 8, 8));
  const auto run = [&](uint32_t id, bool greedySyntax, float temperature) {
    Request r = constrained(id, 10, 40, grammar, temperature);
    r.sampling.topP = 1;
    r.sampling.seed = id;
    r.greedySyntax = greedySyntax;
    r.topLogprobs = 1;
    auto outcome = alone(std::move(r), withTexts);
    checkWithin(outcome, grammar);
    check(outcome.tokens.size() == 16, textOf(outcome.tokens));
    return outcome;
  };
  /// Of the drawn tokens at odd or even places, those that are not the likeliest.
  const auto unlikely = [](const Outcome& outcome, size_t first) {
    int count = 0;
    for (size_t i = first; i < outcome.tokens.size(); i += 2) count += outcome.logprobs[i].top.front().token != outcome.tokens[i];
    return count;
  };
  int content = 0, drawn = 0;
  for (uint32_t id = 1; id <= 8; ++id) {
    const auto held = run(id, true, 2), free = run(id, false, 2);
    check(unlikely(held, 1) == 0, "syntax of " + textOf(held.tokens));
    content += unlikely(held, 0);
    drawn += unlikely(free, 1);
    check(held.tokens.front() == free.tokens.front(), "the first content is the seed's");
    check(run(id, true, 2).tokens == held.tokens, "the seed holds");
    check(run(id, true, 0).tokens == run(id, false, 0).tokens, "at temperature 0 it makes no difference");
  }
  check(content > 0 && drawn > 0, std::to_string(content) + " and " + std::to_string(drawn) + " are not the likeliest");
}};

const Test minimum{"scheduler: a minimum of tokens does not break the grammar", test::threaded, [] {
  IrWriter ir;
  const std::string abc = ir.only(ir.text("abc"));
  Request r = constrained(1, 10, 50, abc);
  r.minTokens = 40;
  const auto outcome = alone(std::move(r), withTexts);
  check(textOf(outcome.tokens) == "abc" && outcome.done->reason == FinishReason::Stop, textOf(outcome.tokens));
  Request endless = constrained(2, 10, 50, abc);
  endless.stopTokens.clear();
  const auto complete = alone(std::move(endless), withTexts);
  check(textOf(complete.tokens) == "abc" && complete.done->reason == FinishReason::Stop && !complete.stopToken, "without a stop token the end of the text is the end");
}};

const Test passage{"scheduler: the forced end of a passage waits for what the grammar lets through", test::threaded, [] {
  IrWriter ir;
  const auto thought = ir.repeat(ir.sequence({ir.text("["), ir.set({{'a', 'h'}}), ir.text("]")}), 1);
  const std::string grammar = ir.only(ir.sequence({thought, ir.text("\":"), ir.repeat(ir.set({{'0', '9'}}), 2, 4)}));
  Request r = constrained(1, 10, 60, grammar);
  r.limit = PassageLimit{.tokens = 4, .begin = {}, .end = {30}, .forced = {30}}; // `":`
  const auto outcome = alone(std::move(r), withTexts);
  checkWithin(outcome, grammar);
  check(outcome.done->reason == FinishReason::Stop && textOf(outcome.tokens).find("\":") <= 9, textOf(outcome.tokens));
}};

const Test failures{"scheduler: grammars that are wrong, too costly or lead nowhere end their requests alone", test::threaded, [] {
  Engine engine(fake(withTexts));
  IrWriter undefined;
  undefined.define("root", undefined.rule("missing"));
  engine.submit(constrained(1, 10, 20, undefined.finish("root")));
  IrWriter unspellable;
  engine.submit(constrained(2, 10, 20, unspellable.only(unspellable.text("12xyz"))));
  IrWriter deep;
  auto node = deep.text("a");
  for (int i = 0; i < 3000; ++i) node = deep.repeat(deep.sequence({node, deep.text("b")}), 0, 3);
  engine.submit(constrained(3, 10, 20, deep.only(node)));
  engine.submit(constrained(4, 10, 20, lists()));
  engine.submit(request(5, 10, 20));
  check(engine.wait(1).failed->kind == ErrorKind::Rejected && engine.wait(1).failed->message.find("\"missing\"") != std::string::npos, "a missing rule");
  check(engine.wait(2).failed->kind == ErrorKind::DeadEnd && textOf(engine.wait(2).tokens) == "12", "a text without tokens");
  check(engine.wait(3).failed->kind == ErrorKind::TooComplex, "nested too deep");
  checkWithin(engine.wait(4), lists());
  check(engine.wait(5).tokens.size() == 20, "others run on");
  for (uint32_t id = 1; id <= 5; ++id) check(engine.wait(id).afterEnd == 0, "one end");
}};

const Test unknown{"scheduler: a model without token texts refuses grammars", test::threaded, [] {
  const auto outcome = alone(constrained(1, 10, 20, lists()));
  check(outcome.failed && outcome.failed->kind == ErrorKind::Rejected, "refused");
}};

} // namespace
