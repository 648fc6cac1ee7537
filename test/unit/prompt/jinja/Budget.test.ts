import { assert, describe, it } from "@effect/vitest"
import { JinjaTemplate } from "../../../../src/prompt/jinja/JinjaTemplate.ts"
import { mark } from "../../../../src/prompt/jinja/MarkedText.ts"
import { BudgetError } from "../../../../src/prompt/jinja/Run.ts"
import { JinjaError, type Value } from "../../../../src/prompt/jinja/Values.ts"
import { options } from "../golden.ts"

const limits = { ...options, steps: 300_000, textLength: 3_000_000 }
const long: ReadonlyArray<readonly [string, Value]> = [["u", mark("ab".repeat(50_000))], ["l", Array.from({ length: 10_000 }, (_, i) => i)]]

const failure = (template: string): unknown => {
  try {
    new JinjaTemplate(template).render(long, limits)
    return undefined
  } catch (cause) {
    return cause
  }
}

describe("hostile templates", () => {
  it.each([
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}x{% endfor %}{% endfor %}",
    "{% for a in range(1000) %}{% set x = l|sort %}{% endfor %}",
    "{% for a in range(1000) %}{% if l == l %}{% endif %}{% endfor %}",
    "{% for a in range(10000) %}{% if 'zz' in u %}{% endif %}{% endfor %}",
    "{% for a in range(10000) %}{% set x = u.split('a') %}{% endfor %}",
    "{% for a in range(10000) %}{% set x = u|upper %}{% endfor %}",
    "{% for a in range(10000) %}{% set x = l|tojson %}{% endfor %}",
    "{{ l|unique|list }}",
    "{% for a in range(90000) %}{% if u[a] == u[-1] %}{% endif %}{% endfor %}",
    "{% for a in range(90000) %}{% if u == u %}{% endif %}{% endfor %}",
    "{% for a in range(90000) %}{% if u < u %}{% endif %}{% endfor %}",
    "{% for a in range(90000) %}{% set x = l.copy() %}{% endfor %}",
    "{{ l|map('string')|list|map('list')|list|string }}{% for a in range(90000) %}{{ a is divisibleby(3) }}{{ a|string|int + a }}{% endfor %}"
  ])("run out of steps: %s", (template) => {
    const cause = failure(template)
    assert.instanceOf(cause, BudgetError)
    assert.match(String(cause), /runs for too long/)
  })

  it.each([
    "{{ 'x' * 1000000000 }}",
    "{{ u * 1000000000 }}",
    "{{ [1] * 1000000000 }}",
    "{% set ns = namespace(x='abcdefgh') %}{% for a in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='abcdefgh') %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x='abcdefgh') %}{% for a in range(100) %}{% set ns.x = [ns.x, ns.x]|join %}{% endfor %}",
    "{% set ns = namespace(x='ab') %}{% for a in range(100) %}{% set ns.x = ns.x.replace('a', ns.x) %}{% endfor %}",
    "{% set ns = namespace(x='ab') %}{% for a in range(100) %}{% set ns.x = '%s%s' % (ns.x, ns.x) %}{% endfor %}",
    "{% set ns = namespace(x='ab') %}{% for a in range(100) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
    "{{ 'x'.center(1000000000) }}",
    "{{ 'x'.zfill(1000000000) }}",
    "{% for a in range(1000) %}{{ u }}{% endfor %}",
    "{% for a in range(1000) %}{{ l }}{% endfor %}",
    "{% for a in range(1000) %}{{ u|indent(9999) }}{% endfor %}",
    "{{ '%0999999d' % 1 }}{{ '%0999999d' % 1 }}{{ '%0999999d' % 1 }}{{ '%0999999d' % 1 }}"
  ])("produce too much: %s", (template) => {
    const cause = failure(template)
    assert.instanceOf(cause, BudgetError)
    assert.match(String(cause), /too much text|runs for too long/)
  })

  it.each([
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
    "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{{ 2 ** 1000000000 }}",
    "{% set ns = namespace(x=3) %}{% for a in range(1000) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{{ (2 ** 90000) ** 90000 }}",
    "{% set ns = namespace(x=[]) %}{% for a in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[]) %}{% for a in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson }}",
    "{% set ns = namespace(x=[], y=[]) %}{% for a in range(99999) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}"
  ])("fail without harm: %s", (template) => assert.instanceOf(failure(template), JinjaError))

  it("have a size", () => {
    assert.throws(() => new JinjaTemplate("x".repeat(300_000)), /longer than/)
    assert.throws(() => new JinjaTemplate(`{{ 1 }}${" ".repeat(100_000)}`), /white-space/)
    assert.throws(() => new JinjaTemplate("{% raw %}".repeat(20_000)), /endraw/)
  })
})
