import { Arguments } from "./Arguments.ts"
import { textOf } from "./MarkedText.ts"
import { iterate } from "./PythonEquality.ts"
import { stringOf } from "./PythonText.ts"
import type { Run } from "./Run.ts"
import { strftime } from "./Strftime.ts"
import { Callable, Dict, JinjaError, Namespace, type Value } from "./Values.ts"

const entries = (run: Run, args: Arguments): Array<readonly [Value, Value]> => {
  const [source] = args.positional
  const pairs = source === undefined
    ? []
    : source instanceof Dict
    ? source.items().map((item) => [item.items[0] ?? null, item.items[1] ?? null] as const)
    : iterate(source, run).map((pair) => {
      const [key = null, value = null] = iterate(pair, run)
      return [key, value] as const
    })
  return [...pairs, ...args.keywords]
}

const dict = (run: Run, args: Arguments): Value => {
  const result = new Dict()
  for (const [key, value] of entries(run, args)) result.set(key, value)
  return result
}

const namespace = (run: Run, args: Arguments): Value => {
  const result = new Namespace()
  for (const [key, value] of entries(run, args)) result.entries.set(textOf(stringOf(key, run)), value)
  return result
}

const range = (run: Run, args: Arguments): Value => {
  const [start, stop] = args.positional.length < 2
    ? [0, args.integer(0, "stop") ?? 0]
    : [args.integer(0, "start") ?? 0, args.integer(1, "stop") ?? 0]
  const step = args.integer(2, "step") ?? 1
  if (step === 0) throw new JinjaError("range() arg 3 must not be zero")
  const count = Math.max(0, Math.ceil((stop - start) / step))
  // MAX_RANGE of Jinja's sandbox
  if (count > 100_000) throw new JinjaError("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).")
  run.step(count)
  return Array.from({ length: count }, (_, index) => start + index * step)
}

const raise = (run: Run, args: Arguments): Value => {
  throw new JinjaError(textOf(stringOf(args.required(0, "message"), run)))
}

const builtin = (name: string, call: (run: Run, args: Arguments) => Value): readonly [string, Value] => [
  name,
  new Callable(name, (run, args, keywords) => call(run, new Arguments(name, args, keywords)))
]

/** Functions that every template sees: Jinja's own and those that transformers adds. */
export const globals: ReadonlyMap<string, Value> = new Map([
  builtin("dict", dict),
  builtin("namespace", namespace),
  builtin("raise_exception", raise),
  builtin("range", range),
  builtin("strftime_now", (run, args) => strftime(run.now, args.word(0, "format")))
])
