import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { JinjaTemplate } from "../../../../src/prompt/jinja/JinjaTemplate.ts"
import { concat, isMarked, isText, mapText, mark, slice, type Text, textOf } from "../../../../src/prompt/jinja/MarkedText.ts"
import { Protection } from "../../../../src/prompt/jinja/Run.ts"
import { Dict, type Value } from "../../../../src/prompt/jinja/Values.ts"
import { options } from "../golden.ts"

/** Marked stretches between ⟦ and ⟧. */
const shown = (text: Text): string => {
  const plain = textOf(text)
  const marks = typeof text === "string" ? [] : text.marks
  let result = ""
  for (let i = 0; i <= plain.length; i++) {
    marks.forEach((at, index) => {
      if (at === i) result += index % 2 === 0 ? "⟦" : "⟧"
    })
    result += plain.charAt(i)
  }
  return result
}

const render = (template: string, variables: ReadonlyArray<readonly [string, Value]>, protectedTexts: ReadonlyArray<string> = []): string =>
  shown(new JinjaTemplate(template).render(variables, { ...options, protection: new Protection(protectedTexts) }))

describe("marked text", () => {
  it("keeps marks through pieces and slices", () => {
    const text = concat("ab", mark("cd"), mark("ef"), "gh", mark(""), mark("i"))
    assert.strictEqual(shown(text), "ab⟦cdef⟧gh⟦i⟧")
    assert.strictEqual(shown(slice(text, 3, 7)), "⟦def⟧g")
    assert.strictEqual(shown(slice(text, 0, 2)), "ab")
    assert.strictEqual(shown(slice(text, 8)), "⟦i⟧")
    assert.deepStrictEqual([isMarked(text, 0, 2), isMarked(text, 1, 3), isMarked(text, 6, 8), isMarked(text, 5, 6)], [
      false,
      true,
      false,
      true
    ])
    assert.strictEqual(shown(mapText(text, (s) => `${s}${s}`)), "abab⟦cdefcdef⟧ghgh⟦ii⟧")
  })

  it.prop(
    "equals plain text in its characters, whatever the pieces",
    { pieces: Schema.Array(Schema.Struct({ text: Schema.String, marked: Schema.Boolean })), from: Schema.Int, to: Schema.Int },
    ({ from, pieces, to }) => {
      const text = concat(...pieces.map((piece) => piece.marked ? mark(piece.text) : piece.text))
      const plain = pieces.map((piece) => piece.text).join("")
      const [start = 0, end = 0] = [from, to].map((at) => Math.abs(at) % (plain.length + 1)).toSorted((a, b) => a - b)
      assert.strictEqual(textOf(text), plain)
      assert.strictEqual(textOf(slice(text, start, end)), plain.slice(start, end))
      let offset = 0
      for (const piece of pieces) {
        for (let i = 0; i < piece.text.length; i++) assert.strictEqual(isMarked(text, offset + i, offset + i + 1), piece.marked)
        offset += piece.text.length
      }
      if (!isText(text) || typeof text === "string") return
      text.marks.forEach((at, index) => assert.isTrue(index === 0 || at > (text.marks[index - 1] ?? 0)))
    },
    { arbitrary: { runs: 200 } }
  )

  it.each([
    ["<{{ u }}>", "<⟦ a<b> ⟧>"],
    ["<{{ u|trim }}>{{ u.strip() ~ '!' }}", "<⟦a<b>⟧>⟦a<b>⟧!"],
    ["{{ (u ~ 'T')|upper }}", "⟦ A<B> ⟧T"],
    ["{{ [u, 'T', 1] }}", "['⟦ a<b> ⟧', 'T', 1]"],
    ["{{ {'k': u}|tojson }}", "{\"k\": \"⟦ a<b> ⟧\"}"],
    ["{{ u.split('<') }}", "['⟦ a⟧', '⟦b> ⟧']"],
    ["{{ ('x' ~ u).replace('a', 'T') }}", "x⟦ ⟧T⟦<b> ⟧"],
    ["{{ ','.join(['T', u]) }}|{{ '%s-%s' % ('T', u) }}|{{ '{}-{}'.format(u, 'T') }}", "T,⟦ a<b> ⟧|T-⟦ a<b> ⟧|⟦ a<b> ⟧-T"],
    ["{% for c in u %}{{ c }}.{% endfor %}", "⟦ ⟧.⟦a⟧.⟦<⟧.⟦b⟧.⟦>⟧.⟦ ⟧."],
    ["{{ u[1:3] }}|{{ u[-2] }}|{{ u[::-1] }}", "⟦a<⟧|⟦>⟧|⟦ >b<a ⟧"],
    ["{% set x %}({{ u }}){% endset %}{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(x) }}", "<(⟦ a<b> ⟧)>"],
    ["{% for k, v in o.items() %}{{ k }}={{ v }}{% endfor %}{{ o|list }}", "⟦key⟧=1['⟦key⟧']"],
    ["{{ u == ' a<b> ' }}{{ 'a' in u }}{{ o.key }}{{ o['key'] }}{{ {' a<b> ': 2}[u] }}{{ u in [' a<b> '] }}", "TrueTrue112True"],
    ["{{ ('x\\n' ~ u)|indent(2) }}", "x\n  ⟦ a<b> ⟧"],
    ["{{ u|title }}|{{ u|capitalize }}|{{ u|e }}", "⟦ A<B> ⟧|⟦ a<b> ⟧|⟦ a&lt;b&gt; ⟧"]
  ])("%s", (template, expected) => {
    assert.strictEqual(render(template, [["u", mark(" a<b> ")], ["o", new Dict(new Map([["key", 1]]), true)]]), expected)
  })
})

describe("protected texts", () => {
  const tags = ["</think>"]
  it.each([
    ["{{ u.split('</think>')|length }}", "1"],
    ["{{ '</think>' in u }}", "False"],
    ["{{ u.replace('</think>', '') }}", "⟦a</think>b⟧"],
    ["{{ (u ~ '</think>c').split('</think>') }}", "['⟦a</think>b⟧', 'c']"],
    ["{{ (u ~ '</think>c').rsplit('</think>', 1) }}", "['⟦a</think>b⟧', 'c']"],
    [
      "{{ u.startswith('a</think>') }}{{ u.endswith('</think>b') }}{{ u.find('</think>') }}{{ u.rfind('</think>') }}{{ u.count('</think>') }}",
      "FalseFalse-1-10"
    ],
    ["{{ u.split('b')|length }}", "2"]
  ])("a user's tag is no tag: %s", (template, expected) => {
    assert.strictEqual(render(template, [["u", mark("a</think>b")]], tags), expected)
  })
})
