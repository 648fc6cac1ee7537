/** What a template takes; found by probing it. */
export interface Preparation {
  /** How it wants text: as it is, or as a list of one text part. */
  readonly content: "string" | "parts"
  /** Whether it knows "developer" as a role of its own. */
  readonly developer: boolean
  /** Whether it prints a system message before the first turn, several of them, one between turns, and any where the last turn is not the user's. */
  readonly system: { readonly leading: boolean; readonly several: boolean; readonly late: boolean; readonly always: boolean }
  /** Whether it takes several messages of the user, or several answers, in a row. */
  readonly repeats: { readonly user: boolean; readonly assistant: boolean }
  /** Whether it takes an answer without any text. */
  readonly emptyAnswers: boolean
  /** Whether it prints the tools, and what it takes where there are none. */
  readonly tools: boolean
  readonly noTools: "null" | "empty"
  /** Whether it needs every tool to have a description and parameters. */
  readonly completeTools: boolean
  /** Whether a parameter's type may be a list of types. */
  readonly unionTypes: boolean
  /** Whether it takes `<think>…</think>` at the start of an answer's text for reasoning. */
  readonly takesInlineReasoning: boolean
  readonly calls: {
    /** A call's arguments as a mapping or as JSON text; "text": it prints no calls, so they become part of the content. */
    readonly arguments: "object" | "string" | "text"
    /** The content of a message that has nothing but calls. */
    readonly emptyContent: "absent" | "" | null
    readonly parallel: boolean
    /** Whether it loses the calls of a message that also has text. */
    readonly apartFromText: boolean
    /** Whether reasoning beside text and calls fails. */
    readonly withReasoning: boolean
    /** Whether ids have to be nine letters or digits. */
    readonly shortIds: boolean
  }
  /** Whether it prints messages of the role "tool", and those that no earlier call led to. */
  readonly results: boolean
  readonly orphans: boolean
}
