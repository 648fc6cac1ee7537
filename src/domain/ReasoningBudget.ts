/** Efforts in the order of how much they reason; "none" reasons not at all. */
const tiers: ReadonlyMap<string, number> = new Map([["minimal", 512], ["low", 1024], ["medium", 8192], ["high", 24_576]])

/** Tokens of reasoning that an effort stands for where a model's template does not know efforts; undefined: as many as the model likes. */
export const effortBudget = (effort: unknown): number | undefined => typeof effort === "string" ? tiers.get(effort) : undefined

/** A budget as clients write it: negative ones (opencode sends -1) and those beyond 32 bits are none. */
export const tokenBudget = (tokens: number | null | undefined): number | undefined =>
  tokens === null || tokens === undefined || tokens < 0 || tokens >= 2 ** 31 ? undefined : Math.floor(tokens)
