import { randomUUID } from "node:crypto"

/** A seed below 2^53, as the engine takes them. */
export const randomSeed = () => Number.parseInt(randomUUID().slice(-12), 16)
