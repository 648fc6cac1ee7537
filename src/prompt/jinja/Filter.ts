import type { Arguments } from "./Arguments.ts"
import type { Run } from "./Run.ts"
import type { Value } from "./Values.ts"

export type Filter = (run: Run, value: Value, args: Arguments) => Value

/** `value`, which may be None, or the other where there is none. */
export const orElse = (value: Value | undefined, other: Value): Value => value === undefined ? other : value
