import { type Fail, parse, type Pattern, type PatternOptions } from "./PatternSyntax.ts"
import * as Regular from "./Regular.ts"

type Language = Regular.Regular

/**
 * What a pattern matches from some place on, by what else it demands: bit 0, that the text begins at this place; bit 1, that it ends with the match.
 * Anchors are then no part of the languages themselves.
 */
type Variants = readonly [Language, Language, Language, Language]

const atStart = 1
const atEnd = 2

const variants = (entries: ReadonlyArray<readonly [demands: number, language: Language]>): Variants => {
  const of = (demands: number) => Regular.choice(entries.flatMap(([own, language]) => own === demands ? [language] : []))
  return [of(0), of(1), of(2), of(3)]
}

const entriesOf = (all: Variants): ReadonlyArray<readonly [demands: number, language: Language]> =>
  all.flatMap((language, demands) => Regular.isNever(language) ? [] : [[demands, language] as const])

const union = (all: ReadonlyArray<Variants>): Variants => variants(all.flatMap(entriesOf))

const concat = (first: Variants, second: Variants): Variants => {
  const entries: Array<readonly [number, Language]> = []
  for (const [before, left] of entriesOf(first)) {
    for (const [after, right] of entriesOf(second)) {
      const [ends, starts] = [(before & atEnd) !== 0, (after & atStart) !== 0]
      if ((ends && !Regular.isNullable(right)) || (starts && !Regular.isNullable(left))) continue
      const demands = (starts ? atStart : before & atStart) | (ends ? atEnd : after & atEnd)
      entries.push([demands, Regular.sequence([...(starts ? [] : [left]), ...(ends ? [] : [right])])])
    }
  }
  return variants(entries)
}

const nothing: Variants = variants([[0, Regular.empty]])

const hasAssertion = (pattern: Pattern, tags: ReadonlySet<Pattern["_tag"]>): boolean => {
  switch (pattern._tag) {
    case "Sequence":
    case "Choice":
      return pattern.items.some((item) => hasAssertion(item, tags))
    case "Repeat":
      return hasAssertion(pattern.item, tags)
    default:
      return tags.has(pattern._tag)
  }
}

const looks: ReadonlySet<Pattern["_tag"]> = new Set(["Look"])

/** Repetitions of a group with an assertion that are written out one by one. */
const mostCopies = 8

class Compiler {
  readonly #fail: Fail

  constructor(fail: Fail) {
    this.#fail = fail
  }

  /** What `pattern` and then `rest` match, where `rest` is all that follows. */
  before(pattern: Pattern, rest: Variants): Variants {
    if (!hasAssertion(pattern, looks)) return concat(this.#variants(pattern), rest)
    switch (pattern._tag) {
      case "Sequence":
        return pattern.items.reduceRight((after, item) => this.before(item, after), rest)
      case "Choice":
        return union(pattern.items.map((item) => this.before(item, rest)))
      case "Repeat": {
        const { item, max, min } = pattern
        if (max > mostCopies) return this.#fail("Unsupported", "a lookahead that is repeated cannot be enforced", 0)
        let after = rest
        for (let copy = max; copy > 0; copy--) after = copy > min ? union([rest, this.before(item, after)]) : this.before(item, after)
        return after
      }
      case "Look":
        return this.#look(pattern.item, pattern.negative, rest)
      default:
        return concat(this.#variants(pattern), rest)
    }
  }

  #look(item: Pattern, negative: boolean, rest: Variants): Variants {
    const ahead = entriesOf(this.before(item, nothing))
    if (ahead.some(([demands]) => (demands & atStart) !== 0)) {
      return this.#fail("Unsupported", "a lookahead for the start of the text cannot be enforced", 0)
    }
    const seen = Regular.choice(ahead.map(([demands, language]) => toTheEnd(demands, language)))
    const condition = negative ? Regular.not(seen) : seen
    return variants(entriesOf(rest).map(([demands, language]) => [demands | atEnd, Regular.and([toTheEnd(demands, language), condition])]))
  }

  #variants(pattern: Pattern): Variants {
    switch (pattern._tag) {
      case "Plain":
        return variants([[0, pattern.language]])
      case "Start":
        return variants([[atStart, Regular.empty]])
      case "End":
        return variants([[atEnd, Regular.empty]])
      case "Sequence":
        return pattern.items.reduceRight<Variants>((after, item) => concat(this.#variants(item), after), nothing)
      case "Choice":
        return union(pattern.items.map((item) => this.#variants(item)))
      case "Repeat":
        return this.#repeat(this.#variants(pattern.item), pattern.min, pattern.max)
      case "Look":
        return this.before(pattern, nothing)
    }
  }

  #repeat(item: Variants, min: number, max: number): Variants {
    const [free] = item
    const anchored = entriesOf(item).some(([demands]) => demands !== 0)
    if (!anchored) return variants([[0, Regular.repeat(free, min, max)]])
    const once = concat(concat(item, variants([[0, Regular.star(free)]])), union([nothing, item]))
    if (max === Infinity && min <= 1) return min === 0 ? union([nothing, once]) : once
    const copies = max === Infinity ? min : max
    if (copies > mostCopies) return this.#fail("Unsupported", "an anchor that is repeated cannot be enforced", 0)
    let all = max === Infinity ? union([nothing, once]) : nothing
    for (let copy = copies; copy > 0; copy--) all = copy > min ? union([nothing, concat(item, all)]) : concat(item, all)
    return all
  }
}

const toTheEnd = (demands: number, language: Language): Language =>
  (demands & atEnd) !== 0 ? language : Regular.sequence([language, Regular.everything])

/** The texts in which a pattern is found, as JSON Schema's `pattern` and `RegExp.test` look for it. */
export const containing = (source: string, options: PatternOptions, fail: Fail): Language =>
  Regular.choice(
    entriesOf(new Compiler(fail).before(parse(source, options, fail), nothing)).map(([demands, language]) =>
      (demands & atStart) !== 0
        ? toTheEnd(demands, language)
        : Regular.sequence([Regular.everything, toTheEnd(demands, language)])
    )
  )

/** The texts that a pattern matches as a whole. */
export const whole = (source: string, options: PatternOptions, fail: Fail): Language =>
  Regular.choice(
    entriesOf(new Compiler(fail).before(parse(source, options, fail), variants([[atEnd, Regular.empty]]))).map(([, language]) => language)
  )
