import type { Usage } from "./Usage.ts"

/** What a generation says, in order: any number of deltas, then one `Finish`. Failures travel in the error channel. */
export type OutputEvent =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly text: string }
  | Finish

export interface Finish {
  readonly _tag: "Finish"
  readonly reason: "stop" | "length"
  /** The stop string that ended the output, where one did. */
  readonly stopString?: string
  readonly usage: Usage
}
