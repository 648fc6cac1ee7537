import { assert, it } from "@effect/vitest"
import { Result } from "effect"
import type { GrammarError } from "../../../src/grammar/GrammarError.ts"
import type { Grammar } from "../../../src/grammar/Ir.ts"
import { GrammarMatcher } from "../../support/GrammarMatcher.ts"

/** Compiles grammars that are written in one language. */
export type Compile = (text: string) => Result.Result<Grammar, GrammarError>

export type LanguageCase = readonly [name: string, text: string, accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>]

/** Line and column are 0 where the error has no place. */
export type ErrorCase = readonly [text: string, reason: string, line: number, column: number]

export const checkLanguage = (compile: Compile, text: string, accepted: ReadonlyArray<string>, refused: ReadonlyArray<string>): void => {
  const matcher = new GrammarMatcher(Result.getOrThrow(compile(text)))
  for (const one of accepted) assert.isTrue(matcher.matches(one), `${text.slice(0, 50)} ${JSON.stringify(one)}`)
  for (const one of refused) assert.isFalse(matcher.matches(one), `${text.slice(0, 50)} ${JSON.stringify(one)}`)
}

/** A test for each. */
export const itMatches = (compile: Compile, cases: ReadonlyArray<LanguageCase>): void => {
  for (const [name, text, accepted, refused] of cases) it(name, () => checkLanguage(compile, text, accepted, refused))
}

/** A test for each: the reason, and the place, which the message names. */
export const itRefuses = (compile: Compile, cases: ReadonlyArray<ErrorCase>): void => {
  for (const [text, reason, line, column] of cases) {
    it(`${reason} at ${line}:${column}: ${JSON.stringify(text.slice(0, 50))}`, () => {
      const result = compile(text)
      if (Result.isSuccess(result)) return assert.fail("it compiled")
      const { failure } = result
      assert.deepStrictEqual([failure.reason, failure.line ?? 0, failure.column ?? 0], [reason, line, column], failure.message)
      if (line > 0) assert.isTrue(failure.message.startsWith(`line ${line}, column ${column}: `), failure.message)
    })
  }
}
