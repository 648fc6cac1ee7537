#include "grammar/matcher.hpp"
#include "grammar_ir.hpp"
#include "grammar_random.hpp"
#include "test.hpp"

#include <set>
#include <string>
#include <vector>

namespace mashbox::test {
namespace {

using grammar::Grammar;
using grammar::Matcher;
using grammar::Vocabulary;

bool has(const std::vector<uint64_t>& mask, size_t token) { return mask[token / 64] >> token % 64 & 1; }

/// Bytes, and tokens of up to `longest` letters, some cut inside a character, some twice.
std::shared_ptr<const Vocabulary> randomVocabulary(Random& random, uint32_t words, uint32_t longest) {
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < words; ++i) {
    std::string text;
    do text = randomText(random, longest);
    while (text.empty());
    if (below(random, 4) == 0) text.pop_back();
    if (below(random, 6) == 0) text += letters()[3 + below(random, 2)].substr(0, 1);
    if (text.empty()) text = "a";
    tokens.push_back(text);
    if (below(random, 10) == 0) tokens.push_back(text);
  }
  return byteVocabulary(tokens);
}

/// A token of the mask, drawn evenly; -1 where it is empty.
int32_t draw(const std::vector<uint64_t>& mask, Random& random) {
  std::vector<int32_t> tokens;
  for (size_t token = 0; token < mask.size() * 64; ++token)
    if (has(mask, token)) tokens.push_back(static_cast<int32_t>(token));
  return tokens.empty() ? -1 : tokens[below(random, static_cast<uint32_t>(tokens.size()))];
}

/// Walks at random as long as the grammar is not spent; at every place the mask has exactly the tokens that are accepted there, and some unless the output
/// may end.
void walk(const std::shared_ptr<const Grammar>& grammar, Random& random, int steps, const std::string& name) {
  Matcher matcher(grammar);
  std::vector<uint64_t> mask(matcher.maskWords()), spent(matcher.maskWords());
  for (int step = 0; step < steps; ++step) {
    if (!matcher.mask(mask)) return;
    for (uint32_t token = 0; token < grammar->vocabulary().size(); ++token) {
      Matcher copy = matcher;
      const bool accepted = copy.accept(static_cast<int32_t>(token));
      // A text that can be read in too many ways has used up the grammar.
      if (accepted != has(mask, token) && !copy.mask(spent)) return;
      check(accepted == has(mask, token), name + ", step " + std::to_string(step) + ": token " + std::to_string(token) + " is " + (accepted ? "" : "not ") + "accepted");
    }
    const int32_t token = draw(mask, random);
    if (token < 0) {
      check(matcher.accepting(), name + ": a dead end");
      return;
    }
    check(matcher.accept(token), name);
  }
}

const Test regular{"grammar: masks of random regular grammars have exactly the tokens that are accepted", [] {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    IrWriter ir;
    const auto node = randomRegular(ir, random, 1 + below(random, 14));
    const auto grammar = Grammar::compile(irBytes(ir.only(node)), randomVocabulary(random, 100, 6));
    if (grammar) walk(*grammar, random, 8, "seed " + std::to_string(seed));
  }
}};

const Test recursive{"grammar: masks of random recursive grammars have exactly the tokens that are accepted", [] {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const auto grammar = Grammar::compile(irBytes(randomRecursive(random)), randomVocabulary(random, 100, 8));
    if (grammar) walk(*grammar, random, 8, "seed " + std::to_string(seed));
  }
}};

/// A repeat of something random with counts near and far from what a token takes, perhaps within another one or beside it, or under a limit of
/// characters.
IrWriter::Node randomCounted(IrWriter& ir, Random& random, int depth) {
  const auto part = [&] { return depth > 0 && below(random, 3) == 0 ? randomCounted(ir, random, depth - 1) : randomRegular(ir, random, 1 + below(random, 3)); };
  const auto counted = [&](IrWriter::Node item, uint32_t least) {
    const uint32_t min = below(random, 3) == 0 ? below(random, 12) : below(random, 3);
    return ir.repeat(item, min, std::max(min, least) + below(random, below(random, 2) == 0 ? 8 : 60));
  };
  const auto node = counted(part(), 1);
  switch (below(random, 5)) {
    case 0: return ir.both({ir.repeat(part()), counted(ir.set({}, true), 1)});
    case 1: return ir.both({counted(part(), 1), counted(ir.set({}, true), 1), ir.complement(ir.sequence({ir.repeat(ir.set({}, true)), ir.text("bb")}))});
    case 2: return ir.sequence({part(), node, part()});
    case 3: return ir.choice({ir.sequence({node, ir.text("a")}), ir.sequence({counted(part(), 1), part()})});
    default: return ir.sequence({ir.text("\""), ir.lexeme(node), ir.text("\"")});
  }
}

const Test counted{"grammar: masks of random grammars with large counts have exactly the tokens that are accepted", [] {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    IrWriter ir;
    const auto node = randomCounted(ir, random, 2);
    const auto grammar = Grammar::compile(irBytes(ir.only(node)), randomVocabulary(random, 80, 14));
    if (!grammar) continue;
    for (int times = 0; times < 2; ++times) walk(*grammar, random, 14, "seed " + std::to_string(seed));
  }
}};

/// Tokens of printable characters, so many of which are alike to most grammars that slices of the vocabulary are used.
std::shared_ptr<const Vocabulary> wideVocabulary(Random& random) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (uint32_t rest = 1 + below(random, i % 7 == 0 ? 30 : 6); rest > 0; --rest) {
      const uint32_t kind = below(random, 24);
      if (kind == 0) text += "\"";
      else if (kind == 1) text += "é";
      else if (kind == 2) text += "😀";
      else if (kind == 3) text += "\\n\\\\\""[below(random, 5)];
      else if (kind == 4) text += "<,: {}["[below(random, 7)];
      else text += static_cast<char>('a' + below(random, 26));
    }
    if (i % 9 == 0) text.pop_back();
    if (!text.empty()) tokens.push_back(text);
  }
  return byteVocabulary(tokens);
}

using Node = IrWriter::Node;

Node stringBody(IrWriter& ir, uint32_t min, uint32_t max) {
  const Node plain = ir.set({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true);
  const Node escape = ir.sequence({ir.text("\\"), ir.set({{'n', 'n'}, {'"', '"'}, {'\\', '\\'}})});
  return ir.repeat(ir.choice({plain, escape}), min, max);
}

Node quoted(IrWriter& ir, Node body) { return ir.lexeme(ir.sequence({ir.text("\""), body, ir.text("\"")})); }

const std::vector<std::pair<const char*, std::string (*)()>>& shapes() {
  static const std::vector<std::pair<const char*, std::string (*)()>> all{
    {"any JSON", [] {
      IrWriter ir;
      const Node value = ir.rule("value"), comma = ir.text(",");
      ir.define("string", quoted(ir, stringBody(ir, 0, IrWriter::Unbounded)));
      const Node member = ir.sequence({ir.rule("string"), ir.text(":"), value});
      const auto list = [&](const char* open, Node item, const char* close) {
        return ir.sequence({ir.text(open), ir.repeat(ir.sequence({item, ir.repeat(ir.sequence({comma, item}))}), 0, 1), ir.text(close)});
      };
      ir.define("value", ir.choice({ir.rule("string"), list("[", value, "]"), list("{", member, "}"), ir.text("null")}));
      return ir.finish("value");
    }},
    {"a text of 3 to 40 characters", [] {
      IrWriter ir;
      return ir.only(quoted(ir, stringBody(ir, 3, 40)));
    }},
    {"a text of at most 900 characters in a list", [] {
      IrWriter ir;
      return ir.only(ir.repeat(ir.sequence({quoted(ir, stringBody(ir, 0, 900)), ir.text(",")}), 1, 700));
    }},
    {"a short name, then anything", [] {
      IrWriter ir;
      return ir.only(ir.sequence({ir.lexeme(ir.repeat(ir.set({{'a', 'z'}}), 1, 5)), ir.lexeme(ir.repeat(ir.set({{'a', 'z'}, {'<', '<'}, {0xe9, 0xe9}}), 2)), ir.text("{}")}));
    }},
    {"at most 12 words with a space after each", [] {
      IrWriter ir;
      const Node word = ir.repeat(ir.set({{'a', 'z'}}), 1);
      return ir.only(ir.sequence({ir.text("\""), ir.repeat(ir.sequence({word, ir.set({{' ', ' '}})}), 0, 12), ir.text("\"")}));
    }},
    {"a pattern of words, 2 to 30 characters", [] {
      IrWriter ir;
      const Node word = ir.repeat(ir.set({{'a', 'z'}}), 1);
      const Node pattern = ir.sequence({word, ir.repeat(ir.sequence({ir.set({{' ', ' '}, {',', ','}}), word}))});
      return ir.only(ir.lexeme(ir.sequence({ir.text("\""), ir.both({pattern, ir.repeat(ir.set({}, true), 2, 30)}), ir.text("\"")})));
    }},
    {"a text without some texts", [] {
      IrWriter ir;
      const Node any = ir.set({}, true);
      const Node has = ir.sequence({ir.repeat(any), ir.choice({ir.text("ab"), ir.text("\"")}), ir.repeat(any)});
      return ir.only(ir.sequence({ir.text("\""), ir.both({ir.complement(has), ir.repeat(any, 2, 25)}), ir.text("\"")}));
    }},
    {"free text up to a trigger", [] {
      IrWriter ir;
      const Node call = ir.sequence({quoted(ir, stringBody(ir, 0, 9)), ir.text("<")});
      return ir.only(ir.choice({ir.free({}, {"<{"}), ir.sequence({ir.free({{"<{", {}}, {"[:", {}}}), call, ir.free({})})}));
    }},
    {"members in any order", [] {
      IrWriter ir;
      std::vector<IrWriter::Item> items;
      for (const char* key : {"a", "abc", "b", "q"})
        items.push_back({ir.sequence({ir.text(std::string("\"") + key + "\":"), quoted(ir, stringBody(ir, 0, IrWriter::Unbounded))}), key[0] == 'b'});
      return ir.only(ir.sequence({ir.text("{"), ir.permutation(items, ir.text(",")), ir.text("}")}));
    }},
    {"many words", [] {
      IrWriter ir;
      std::vector<Node> words;
      for (int i = 0; i < 2000; ++i) words.push_back(ir.text(std::string(1, static_cast<char>('a' + i % 26)) + static_cast<char>('a' + i / 26 % 26) + std::to_string(i)));
      words.push_back(ir.text(""));
      return ir.only(ir.sequence({ir.choice(words), ir.text(",")}));
    }},
  };
  return all;
}

const Test wide{"grammar: masks with slices of the vocabulary have exactly the tokens that are accepted", [] {
  for (const auto& [name, write] : shapes()) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Random random(seed);
      const auto grammar = compile(write(), wideVocabulary(random));
      for (int times = 0; times < 2; ++times) walk(grammar, random, 25, std::string(name) + ", seed " + std::to_string(seed));
    }
  }
}};

const Test caches{"grammar: what is remembered does not change masks", [] {
  // With as good as no memory for masks and walks, all is computed anew each time.
  grammar::Limits small = Patient;
  small.maskBytes = 1;
  small.walkEntries = 1 << 14;
  for (const auto& [name, write] : shapes()) {
    Random random(7);
    const auto vocabulary = wideVocabulary(random);
    const std::string ir = write();
    const auto remembering = compile(ir, vocabulary), forgetting = compile(ir, vocabulary, small);
    for (int times = 0; times < 4; ++times) {
      Matcher a(remembering), b(forgetting);
      std::vector<uint64_t> left(a.maskWords()), right(a.maskWords());
      for (int step = 0; step < 40; ++step) {
        check(static_cast<bool>(a.mask(left)), name);
        if (!b.mask(right)) break; // one walk alone does not fit
        check(left == right, std::string(name) + ", step " + std::to_string(step));
        const int32_t token = draw(left, random);
        if (token < 0) break;
        check(a.accept(token) && b.accept(token), name);
      }
    }
  }
}};

/// Tokens whose bytes spell the text, cut at random.
std::vector<int32_t> randomTokens(const Vocabulary& vocabulary, const std::string& text, Random& random) {
  std::vector<int32_t> tokens;
  for (size_t from = 0; from < text.size();) {
    std::vector<int32_t> fitting;
    for (uint32_t token = 0; token < vocabulary.size(); ++token) {
      const auto bytes = vocabulary.bytes(static_cast<int32_t>(token));
      if (!bytes.empty() && std::string_view(text).substr(from).starts_with(bytes)) fitting.push_back(static_cast<int32_t>(token));
    }
    tokens.push_back(fitting[below(random, static_cast<uint32_t>(fitting.size()))]);
    from += vocabulary.bytes(tokens.back()).size();
  }
  return tokens;
}

const Test complete{"grammar: however a text of the language is cut into tokens, each of them is allowed", [] {
  Random random(3);
  const auto vocabulary = wideVocabulary(random);
  for (const auto& [name, write] : shapes()) {
    const auto grammar = compile(write(), vocabulary);
    for (int times = 0; times < 6; ++times) {
      // A text of the language: a random walk over single bytes that ends where it may.
      Matcher bytes(grammar);
      std::string text, ended;
      std::vector<uint64_t> mask(bytes.maskWords());
      for (int step = 0; step < 400; ++step) {
        if (bytes.accepting()) ended = text;
        check(static_cast<bool>(bytes.mask(mask)), name);
        for (size_t token = 256; token < mask.size() * 64; ++token) mask[token / 64] &= ~(uint64_t{1} << token % 64);
        const int32_t token = draw(mask, random);
        if (token < 0) break;
        text.push_back(static_cast<char>(token));
        check(bytes.accept(token), name);
      }
      for (int cut = 0; cut < 4; ++cut) {
        Matcher matcher(grammar);
        for (const int32_t token : randomTokens(*vocabulary, ended, random)) {
          check(static_cast<bool>(matcher.mask(mask)), name);
          check(has(mask, static_cast<size_t>(token)), std::string(name) + ": a token of \"" + ended + "\" is missing");
          check(matcher.accept(token), name);
        }
        check(matcher.accepting() || ended.empty(), name);
      }
    }
  }
}};

const Test special{"grammar: masks hold special tokens where the grammar has them", [] {
  const auto vocabulary = byteVocabulary({"<call>", "x<"}, 3);
  IrWriter ir;
  const Node body = ir.choice({ir.token({258}), ir.sequence({ir.text("x"), ir.token({256, 259})})});
  ir.define("inner", ir.choice({body, ir.sequence({ir.text("("), ir.rule("inner"), ir.text(")")})}));
  ir.define("outer", ir.sequence({ir.free({{"", {259}}}), ir.rule("inner"), ir.repeat(ir.token({260}), 0, 1)}));
  const auto grammar = compile(ir.finish("outer"), vocabulary);
  Random random(1);
  for (int times = 0; times < 20; ++times) walk(grammar, random, 30, "walk " + std::to_string(times));
  Matcher matcher(grammar);
  for (const int token : {int{'a'}, 259, int{'('}, int{'x'}, 259, int{')'}, 260}) check(matcher.accept(token), std::to_string(token));
  check(matcher.accepting(), "the end");
}};

} // namespace
} // namespace mashbox::test
