import "@huggingface/tokenizers"

// The package's declarations use relative imports without extensions, which Node's ESM resolution does not follow: its classes come out as
// `any` or not at all. These are the ones that tests compare with (version 0.2.0).
declare module "@huggingface/tokenizers" {
  export class BPE {
    constructor(config: {
      readonly type: "BPE"
      readonly vocab: Readonly<Record<string, number>>
      readonly merges: ReadonlyArray<readonly [string, string]>
      readonly ignore_merges: boolean
      readonly byte_fallback: boolean
      readonly fuse_unk: boolean
      readonly unk_token?: string
    })
    tokens_to_ids: Map<string, number>
    unk_token_id?: number
    unk_token?: string
    readonly byte_fallback: boolean
    readonly ignore_merges: boolean
    bpe(token: string): Array<string>
    encode(pieces: ReadonlyArray<string>): Array<string>
  }
}
