import type { Budget } from "./Budget.ts"
import * as CodePoints from "./CodePoints.ts"
import * as Regular from "./Regular.ts"

type Language = Regular.Regular

/** The texts that follow `point` in texts of the language (Brzozowski's derivative). */
export const derivative = (language: Language, point: number): Language => {
  switch (language._tag) {
    case "Text": {
      const first = language.text.codePointAt(0)
      return first === point ? Regular.text(language.text.slice(point > 0xffff ? 2 : 1)) : Regular.never
    }
    case "Class":
      return CodePoints.has(language.points, point) ? Regular.empty : Regular.never
    case "Sequence": {
      const branches: Array<Language> = []
      for (const [index, item] of language.items.entries()) {
        const first = derivative(item, point)
        if (!Regular.isNever(first)) branches.push(Regular.sequence([first, ...language.items.slice(index + 1)]))
        if (!Regular.isNullable(item)) break
      }
      return distinct(branches)
    }
    case "Choice":
      return distinct(language.items.map((item) => derivative(item, point)))
    case "Repeat":
      return Regular.sequence([
        derivative(language.item, point),
        Regular.repeat(language.item, Math.max(0, language.min - 1), language.max - 1)
      ])
    case "And":
      return Regular.and(language.items.map((item) => derivative(item, point)))
    case "Not":
      return Regular.not(derivative(language.item, point))
  }
}

const keys = new WeakMap<Language, string>()

/** Structural identity, so that equal states are met again. */
export const keyOf = (language: Language): string => {
  const known = keys.get(language)
  if (known !== undefined) return known
  const key = describe(language)
  keys.set(language, key)
  return key
}

const describe = (language: Language): string => {
  switch (language._tag) {
    case "Text":
      return JSON.stringify(language.text)
    case "Class":
      return `[${language.points.map(([first, last]) => `${first}-${last}`).join()}]`
    case "Sequence":
      return `(${language.items.map(keyOf).join(" ")})`
    case "Choice":
      return `(${[...new Set(language.items.map(keyOf))].toSorted().join("|")})`
    case "Repeat":
      return `${keyOf(language.item)}{${language.min},${language.max}}`
    case "And":
      return `(${[...new Set(language.items.map(keyOf))].toSorted().join("&")})`
    case "Not":
      return `!${keyOf(language.item)}`
  }
}

/** A choice without repetitions, so that equal derivatives cannot pile up. */
const distinct = (items: ReadonlyArray<Language>): Language => {
  const all = Regular.choice(items)
  return all._tag === "Choice" ? Regular.choice([...new Map(all.items.map((item) => [keyOf(item), item])).values()]) : all
}

/** States, and characters of their keys, after which a search gives up. */
const mostStates = 500
const mostKeyCharacters = 400_000

/** Whether a text is in the language. */
export const matches = (language: Language, text: string, budget?: Budget): boolean => {
  let state = language
  for (const character of text) {
    budget?.check()
    state = derivative(state, character.codePointAt(0) ?? 0)
    if (Regular.isNever(state)) return false
  }
  return Regular.isNullable(state)
}

/** One code point of each set that the language's first characters tell apart. */
export const representatives = (language: Language): ReadonlyArray<number> => {
  const starts = new Set<number>([0])
  const visit = (item: Language): void => {
    switch (item._tag) {
      case "Text": {
        const first = item.text.codePointAt(0)
        if (first !== undefined) starts.add(first).add(first + 1)
        break
      }
      case "Class":
        for (const [first, last] of item.points) starts.add(first).add(last + 1)
        break
      case "Sequence":
        for (const part of item.items) {
          visit(part)
          if (!Regular.isNullable(part)) break
        }
        break
      case "Choice":
      case "And":
        item.items.forEach(visit)
        break
      case "Repeat":
      case "Not":
        visit(item.item)
    }
  }
  visit(language)
  return [...starts].filter((point) => CodePoints.has(CodePoints.all, point))
}

/** Whether no text is in the language: "unknown" where the search for one takes too long. */
export const isNever = (language: Language, budget?: Budget): boolean | "unknown" => {
  const seen = new Set([keyOf(language)])
  const queue = [language]
  let keyCharacters = 0
  for (const state of queue) {
    budget?.check()
    if (Regular.isNullable(state)) return false
    for (const point of representatives(state)) {
      const next = derivative(state, point)
      if (Regular.isNever(next)) continue
      const key = keyOf(next)
      if (seen.has(key)) continue
      keyCharacters += key.length
      if (seen.size >= mostStates || keyCharacters > mostKeyCharacters) return "unknown"
      seen.add(key)
      queue.push(next)
    }
  }
  return true
}
