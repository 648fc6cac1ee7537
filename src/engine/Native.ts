/**
 * The addon's surface, as `native/addon` implements it. Every call validates its arguments and throws an `Error` with a `code`
 * (an `ErrorKind` of the core: "not_found", "truncated", "invalid", "unsupported", "inconsistent", "out_of_memory", "rejected",
 * "too_complex", "dead_end") and, where one thing is to blame, a `subject` (a metadata key, tensor or field).
 */
export interface Native {
  info(): NativeInfo
  /** Everything that loading checks before it reads the weights. */
  inspect(options: NativeLoadOptions): NativeInspection
  /** Loads on a thread of its own. `onFrame` gets one binary frame per engine step (layout: `Frames.ts`), already on the JS thread. */
  load(options: NativeLoadOptions, onProgress: (fraction: number) => void, onFrame: (frame: Uint8Array) => void): Promise<NativeEngine>
}

/** What loading a model would take, which need not fit. */
export interface NativeInspection {
  readonly architecture: string
  readonly layers: number
  /** Blocks for multi-token prediction behind the layers, which are kept aside. */
  readonly predictionBlocks: number
  readonly vocabularySize: number
  readonly trainedContextLength: number
  /** Tokens per slot. */
  readonly contextLength: number
  readonly slots: number
  /** Bytes. */
  readonly memory: { readonly weights: number; readonly kvCache: number; readonly scratch: number }
  /** Bytes that the machine can give now; a tenth is left to others. */
  readonly availableMemory: number
  /** The longest context that fits with these slots, and the most slots that fit with this context. */
  readonly largestContext: number
  readonly largestSlots: number
  readonly fits: boolean
}

export interface NativeInfo {
  readonly version: string
  readonly isa: "scalar" | "avx2" | "avx512"
  readonly threads: number
  readonly cuda: {
    readonly built: boolean
    /** Why there is no device; empty when there is one. */
    readonly reason: string
    readonly devices: ReadonlyArray<{ readonly name: string; readonly memoryBytes: number; readonly computeCapability: string }>
  }
}

export interface NativeLoadOptions {
  readonly path: string
  /** 0: every available core. */
  readonly threads: number
  readonly slots: number
  /** Tokens per slot; 0: the model's own, lowered to what fits. */
  readonly contextLength: number
  readonly kvType: "f16" | "f32"
  /** Most rows of one engine step. */
  readonly batchTokens: number
}

export interface NativeSubmit {
  readonly id: number
  readonly tokens: Int32Array
  readonly maxTokens: number
  readonly stopTokens: Int32Array
  /** No stop token is drawn before this many tokens. Default 0. */
  readonly minTokens?: number
  /** Report the log probability of every token and of this many (≤ 20) of the likeliest; absent: none. */
  readonly topLogprobs?: number
  readonly limit?: PassageLimit
  /** Bytes of the grammar that the output keeps to (native/GRAMMAR.md); absent: none. */
  readonly grammar?: Uint8Array
  /** What the grammar leaves no choice about is not drawn, unless log probabilities are asked for. Default true. */
  readonly jumpAhead?: boolean
  /** What is neither content nor free text in the grammar is drawn as at temperature 0. Default false. */
  readonly greedySyntax?: boolean
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly minP: number
  readonly repetitionPenalty: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  readonly repetitionWindow: number
  /** 0 ≤ seed < 2^53 */
  readonly seed: number
  readonly logitBias: ReadonlyArray<readonly [token: number, bias: number]>
}

/** Ends the first passage of the output of its kind, such as reasoning, that has become too long. At most 1024 tokens in each list. */
export interface PassageLimit {
  /** Of the passage, before its end is forced. */
  readonly tokens: number
  /** What begins it; empty: the output begins inside it. */
  readonly begin: ReadonlyArray<number>
  /** What ends it, at least one token. */
  readonly end: ReadonlyArray<number>
  /** Put in place of what would be drawn, once the limit is reached; holds `end`. */
  readonly forced: ReadonlyArray<number>
}

export interface NativeEngine {
  readonly model: NativeModelInfo
  submit(request: NativeSubmit): void
  cancel(id: number): void
  stats(): {
    readonly running: number
    readonly waiting: number
    /** KV blocks of the layers that see the whole sequence. */
    readonly freeBlocks: number
    readonly totalBlocks: number
    /** KV blocks of sliding-window layers; 0 without any. */
    readonly freeWindowBlocks: number
    readonly windowBlocks: number
    readonly steps: number
  }
  /** Stops the scheduler, joins its thread and frees the model. Idempotent. */
  close(): void
}

export interface NativeModelInfo {
  readonly architecture: string
  readonly vocabularySize: number
  readonly layers: number
  readonly contextLength: number
  readonly trainedContextLength: number
  readonly slots: number
  readonly isa: string
  readonly threads: number
  /** Bytes of each kind of memory the engine holds. */
  readonly memory: { readonly weights: number; readonly kvCache: number; readonly scratch: number }
  readonly experts: NativeExpertPaths | null
}

/** How the stacks of routed experts (gate, up and down of every layer) are multiplied. */
export interface NativeExpertPaths {
  /** That the instruction tier has a kernel for. */
  readonly kernelSites: number
  /** That run the scalar reference or are dequantized first. */
  readonly exactSites: number
  readonly exactReasons: ReadonlyArray<string>
}
