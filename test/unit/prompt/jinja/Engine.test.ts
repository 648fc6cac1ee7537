import { assert, describe, it } from "@effect/vitest"
import { JinjaTemplate } from "../../../../src/prompt/jinja/JinjaTemplate.ts"
import { committed, field, list, load, options, outcome, text, variables } from "../golden.ts"

/** One-line templates on which this engine may differ from Python's Jinja, with the reason. */
const knownDifferences: Readonly<Record<string, string>> = {}

const engine = load(`${committed}/engine.json`)
const vars = variables(field(engine, "vars"))

describe("one-line templates against Python's Jinja", () => {
  const cases = list(field(engine, "cases"))
  it("has all cases", () => assert.strictEqual(cases.length, 136))
  it.each(cases.map((each) => [text(field(each, "template")), each] as const))("%s", (template, each) => {
    const got = outcome(() => new JinjaTemplate(template).render(vars, options))
    const same = field(each, "text") === undefined
      ? typeof got !== "string" && got.error.startsWith("JinjaError: ")
      : got === field(each, "text")
    if (knownDifferences[template] === undefined) assert.isTrue(same, JSON.stringify(got))
    else assert.isFalse(same, "is no longer a difference")
  })
})

const render = (template: string, given: ReadonlyArray<readonly [string, string | number | null]> = []) =>
  outcome(() => new JinjaTemplate(template).render(given, options))

/** Expected texts are Python 3's and Jinja 3.1's. */
describe("what the one-line templates leave out", () => {
  it.each([
    ["{% for z in [1,2,3] %}<{{ z }}{% if z == 2 %}{% break %}{% endif %}>{% endfor %}", "<1><2"],
    ["{% for z in [1,2,3] %}<{{ z }}{% if z == 2 %}{% continue %}{% endif %}>{% else %}none{% endfor %}", "<1><2<3>"],
    ["{% for z in [1] %}{% break %}{% else %}none{% endfor %}", "none"],
    [
      "{% for x in [[1,[2,3]],[4,[5]]] recursive %}{% if x is sequence %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}",
      "(1@2(2@33@3))(4@2(5@3))"
    ],
    ["{% set x = 1 %}{% with x = 2, y = [x, 3] %}{{ x }}{{ y }}{% endwith %}{{ x }}", "2[1, 3]1"],
    ["{% for i in [1,2] %}{% if loop.first %}{% set q = 1 %}{% endif %}[{{ q }}]{% endfor %}", "[1][]"],
    ["a\n  {% raw %}\n {{ x }}{% if %}\n  {% endraw %}\nb", "a\n\n {{ x }}{% if %}\nb"],
    [
      "{{ 5 is divisibleby(5) }} {{ 5 is not divisibleby 2 }} {{ 3 is in [1, 3] and true }} {{ 'a' is eq('a') or false }}",
      "True True True True"
    ],
    ["{{ 'x' if 1 is defined else 'y' }}", "x"],
    ["{{ 1e-7 }} {{ 2.5E3 }} {{ 1e22 }} {{ 123456789012345680.0 }}", "1e-07 2500.0 1e+22 1.2345678901234568e+17"],
    [
      "{{ 0.1 + 0.2 }} {{ 1/3 }} {{ 1e16 }} {{ 9999999999999998.0 }} {{ -0.0 }}",
      "0.30000000000000004 0.3333333333333333 1e+16 9999999999999998.0 -0.0"
    ],
    [
      "{{ 2**70 }} {{ 2**70 - 2**70 + 1 }} {{ 10**18 // 7 }} {{ -7 // 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",
      "1180591620717411303424 1 142857142857142857 -4 3.0 0.5"
    ],
    ["{{ [1, 'a\\'b', \"a\\\"b\", 'é\\n\\t', (1,), {}, none] }}", "[1, \"a'b\", 'a\"b', 'é\\n\\t', (1,), {}, None]"],
    ["{{ '\u200b\u00a0' }}|{{ ['\u200b\u00a0\ud83d\ude00'] }}", "\u200b\u00a0|['\\u200b\\xa0\ud83d\ude00']"],
    ["{{ '%05.1f|%-4d|%+d|%x|%s|%r|%%' % (3.14159, 7, 5, 255, none, 'q') }}", "003.1|7   |+5|ff|None|'q'|%"],
    ["{{ '{0}-{name}-{1:>5}-{2:.2f}-{3!r}-{{}}'.format(1, 'a', 2.5, 'r', name='n') }}", "1-n-    a-2.50-'r'-{}"],
    ["{{ 'a-b-c'.rsplit('-', 1) }} {{ 'a-b-c'.rpartition('-') }} {{ 'x'.partition('-') }}", "['a-b', 'c'] ('a-b', '-', 'c') ('x', '', '')"],
    ["{{ 'abcabc'.rfind('b') }} {{ 'abc'.find('z') }} {{ 'a😀b'.find('b') }} {{ '7'.zfill(3) }} {{ '-7'.zfill(4) }}", "4 -1 2 007 -007"],
    ["{{ 'ab'.center(5, '*') }} {{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4) }}", "**ab* ab  |  ab"],
    ["{{ {'b': 1, 'a': 2}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }}", "[('a', 2), ('b', 1)] [('b', 1), ('a', 2)]"],
    ["{{ ['b', 'A', 'c']|sort }} {{ ['b', 'A', 'c']|sort(case_sensitive=true, reverse=true) }}", "['A', 'b', 'c'] ['c', 'b', 'A']"],
    ["{{ [{'k': 2}, {'k': 1}]|sort(attribute='k')|map(attribute='k')|list }} {{ ['a', 'A', 'b']|unique|list }}", "[1, 2] ['a', 'b']"],
    [
      "{% for g in [{'k': 'x', 'v': 1}, {'k': 'y', 'v': 2}, {'k': 'x', 'v': 3}]|groupby('k') %}{{ g[0] }}{{ g[1]|length }}{% endfor %}",
      "x2y1"
    ],
    ["{% set g = [1]|select('odd') %}{{ 'yes' if []|select('odd') else 'no' }}{{ g|list }}{{ g|list }}", "yes[1][]"],
    ["{% macro m(a, b=a) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2, 3, c=4) }}", "11(){}12(3,){'c': 4}"],
    ["{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ m() }}{% endfor %}", "1"],
    ["{% macro m(n) %}<{{ caller(n) }}>{% endmacro %}{% call(k) m(3) %}{{ k + 1 }}{% endcall %}", "<4>"],
    ["{{ (1,) }}{{ () }}{{ (1, 2,)[1] }}{{ ((1)) + 1 }}{{ 'b'.startswith(('a', 'b',)) }}", "(1,)()22True"],
    ["{% set x | upper %}a{{ 'b' }}{% endset %}{{ x }}", "AB"],
    ["{{ {'a': none}.a }} {{ {'a': none}.get('a', 1) }} {{ none|default('d') }} {{ [none]|first }}", "None None None None"],
    [
      "{{ 'aXbX'|replace('X', '-', 1) }} {{ '\\n a b \\n'|trim }} {{ 3.0|int }} {{ '0x1f'|int(0, 16) }} {{ 2.5|round }} {{ 3.5|round|int }}",
      "a-bX a b 3 31 2.0 4"
    ],
    ["{{ [1,2,3][:-1] }} {{ (1,2,3)[1:] }} {{ 'abc'[::-2] }} {{ [1,2,3][-1:-3:-1] }} {{ 'abc'[5:] }}|", "[1, 2] (2, 3) ca [3, 2] |"],
    ["{{ {'a': 1.0, 'b': [2.50, 1e100]}|tojson }}", "{\"a\": 1.0, \"b\": [2.5, 1e+100]}"]
  ])("%s", (template, expected) => assert.strictEqual(render(template), expected))

  it.each([
    "{{ 1 + 'a' }}",
    "{{ 'a' < 1 }}",
    "{{ 1 // 0 }}",
    "{{ [1] + (2,) }}",
    "{{ {}['a']['b'] }}",
    "{{ nothing() }}",
    "{{ 'a'|nosuch }}",
    "{{ 'a' is nosuch }}",
    "{{ {'a': 1}.update({'b': 2}) }}",
    "{% for a, b in [[1]] %}{% endfor %}",
    "{{ range(1000000) }}",
    "{{ 1 in 'a' }}"
  ])("%s fails", (template) => assert.match(JSON.stringify(render(template)), /"JinjaError: /))

  it.each([
    "{{ a",
    "{% if a %}",
    "{% nosuch %}",
    "{{ 'a }}",
    "{% for %}{% endfor %}",
    "{% raw %}",
    "{% with a %}{% endwith %}"
  ])(
    "does not parse: %s",
    (template) => assert.throws(() => new JinjaTemplate(template), /^[^\n]+$/)
  )

  it("does not parse ten thousand open brackets", () => {
    assert.throws(() => new JinjaTemplate(`{{ ${"(".repeat(10_000)} }}`), /^[^\n]+$/)
  })
})
